//! The attributes of a file that a copy keeps or loses.

use engines::Errno;

/// A kind of attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// Owner and group.
    Ownership,
    /// Permissions and access control lists.
    Permissions,
    /// Times of last access and modification.
    Times,
    /// Extended attributes.
    Xattr,
    /// The security context.
    Context,
    /// Being the same file as another name.
    Links,
}

impl Attribute {
    /// The attribute as a word for programs, as in receipts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Attribute::Ownership => "ownership",
            Attribute::Permissions => "permissions",
            Attribute::Times => "times",
            Attribute::Xattr => "xattr",
            Attribute::Context => "context",
            Attribute::Links => "links",
        }
    }
}

/// An attribute that was asked for and could not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Owner, group or both.
    Ownership(Errno),
    /// Permissions or an access control list.
    Permissions(Errno),
    /// Times.
    Times(Errno),
    /// The extended attribute of this name.
    Xattr(Vec<u8>, Errno),
    /// The security context.
    Context(Errno),
    /// The copy is a file of its own, and no hard link to another copy of its source.
    Links(Errno),
}

impl Loss {
    /// What kind of attribute it is.
    #[must_use]
    pub fn attribute(&self) -> Attribute {
        match self {
            Loss::Ownership(_) => Attribute::Ownership,
            Loss::Permissions(_) => Attribute::Permissions,
            Loss::Times(_) => Attribute::Times,
            Loss::Xattr(..) => Attribute::Xattr,
            Loss::Context(_) => Attribute::Context,
            Loss::Links(_) => Attribute::Links,
        }
    }

    /// Why it was lost.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Loss::Ownership(errno)
            | Loss::Permissions(errno)
            | Loss::Times(errno)
            | Loss::Xattr(_, errno)
            | Loss::Context(errno)
            | Loss::Links(errno) => *errno,
        }
    }
}
