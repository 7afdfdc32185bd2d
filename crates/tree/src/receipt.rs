//! What really happened to one entry.

use std::path::PathBuf;

use engines::{Errno, Moved, Span, Variant};
use rustix::fs::FileType;

/// One entry of the tree, after it was dealt with.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The source.
    pub src: PathBuf,
    /// The destination.
    pub dst: PathBuf,
    /// What the source is.
    pub kind: FileType,
    /// What was made of it.
    pub method: Method,
    /// Bytes of data moved or shared.
    pub data_bytes: u64,
    /// Bytes of the file's length that are holes in the copy.
    pub hole_bytes: u64,
    /// Each engine's attempt at the data, in order.
    pub attempts: Vec<Attempt>,
    /// Attributes that were asked for and could not be kept.
    pub lost: Vec<Loss>,
    /// The source changed while it was read.
    pub changed: bool,
    /// Offload, reflink and hole detection, for regular files.
    pub offload: Option<Offload>,
}

impl Receipt {
    pub(crate) fn new(src: PathBuf, dst: PathBuf, kind: FileType, method: Method) -> Receipt {
        Receipt {
            src,
            dst,
            kind,
            method,
            data_bytes: 0,
            hole_bytes: 0,
            attempts: Vec::new(),
            lost: Vec::new(),
            changed: false,
            offload: None,
        }
    }
}

/// What was made of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A new file, directory, link or node, or new contents in an old one.
    Copied,
    /// A hard link to another copy of the same source, or to the source itself.
    Linked,
    /// A symbolic link to the source.
    SymbolicLink,
    /// The destination was left as it was.
    Skipped,
    /// Nothing: it failed.
    Failed,
}

/// One engine's attempt at one span of a file's data.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The engine with its tuning.
    pub variant: Variant,
    /// What it was asked for.
    pub span: Span,
    /// What came of it.
    pub moved: Moved,
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
}

/// How a regular file's data went, in the terms of `cp --debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Whether the kernel copied, in the word for it.
    pub offload: &'static str,
    /// Whether blocks were shared.
    pub reflink: &'static str,
    /// How holes were looked for.
    pub sparse: SparseDetection,
}

/// How holes were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseDetection {
    /// Not at all.
    No,
    /// It did not come to that.
    Unknown,
    /// Zeros were looked for in the data.
    Zeros,
    /// The file system was asked.
    SeekHole,
    /// Both.
    SeekHoleAndZeros,
}
