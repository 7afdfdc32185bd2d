//! Every knob of a copy, typed. Which option of a command line wins over which is settled by
//! whoever fills these in.

use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};

use engines::Variant;
use engines::profile::Location;

use super::filter::Filter;
use crate::fs::FileId;

/// How to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Copy directories with what is in them, and re-create special files.
    pub recursive: bool,
    /// Which symbolic links of the source stand for what they point to.
    pub follow: Follow,
    /// What is made of a source that is no directory.
    pub make: Make,
    /// When recursive, read fifos and devices instead of re-creating them.
    pub copy_contents: bool,
    /// Which attributes the copy takes over.
    pub preserve: Preserve,
    /// What happens to a destination that exists and is no directory.
    pub existing: Existing,
    /// Having decided to replace an existing destination, ask first.
    pub ask: bool,
    /// Where an existing destination cannot be opened, remove it and try again.
    pub force: bool,
    /// Remove an existing destination before opening it.
    pub remove_destination: bool,
    /// Keep what is about to be replaced under another name.
    pub backup: Option<Backup>,
    /// Where the copy gets holes.
    pub sparse: Sparse,
    /// Whether source and copy share their blocks.
    pub reflink: Reflink,
    /// Append the whole source name to the destination directory.
    pub parents: bool,
    /// Take slashes off the ends of sources that go into a directory.
    pub strip_trailing_slashes: bool,
    /// A destination that is a symbolic link to a directory may stand for a directory of the
    /// source.
    pub keep_directory_symlink: bool,
    /// A destination operand that is a dangling symbolic link is written through, as POSIX has it,
    /// which is otherwise refused.
    pub through_dangling_symlink: bool,
    /// Do not enter other file systems.
    pub one_file_system: bool,
    /// The security context of what is made.
    pub context: Context,
    /// Announce each file copied.
    pub verbose: bool,
    /// Announce how each file was copied and which were skipped.
    pub debug: bool,
    /// How many workers may copy at once: entries of a tree, and parts of a large file. Unless
    /// given, as many as the process may use processors; for the entries of a tree up to eight
    /// times as many, where it is measured that they help.
    pub jobs: Option<NonZeroUsize>,
    /// How data is moved, where that works; what suits the files best unless given.
    pub engine: Option<Variant>,
    /// Where it is written which ways were measured to be the fastest.
    pub profile: Location,
    /// A name stands for the old file or for the whole new one at every moment.
    pub atomic: bool,
    /// Go on where an earlier run of the same copy was killed. Needs `atomic` and preserved times.
    pub resume: bool,
    /// Read every copy back and compare it with its source.
    pub verify: bool,
    /// Success means that every copy, and every name of one, is on the medium.
    pub durable: bool,
    /// Leave the page cache as it was.
    pub no_cache: bool,
    /// Decide and tell what would be done, and make nothing. Nobody is asked: each answer would be
    /// yes. Neither receipts nor [`durable`](Options::durable) go with it.
    pub dry_run: bool,
    /// The most bytes of data a second, of all workers together. Shared blocks are not counted.
    pub limit_rate: Option<NonZeroU64>,
    /// What is left out of directories that are copied.
    pub filter: Filter,
    /// A file that no copy replaces or writes to: somebody keeps a record of the run there.
    pub record: Option<FileId>,
}

impl Default for Options {
    /// What GNU cp does without any option.
    fn default() -> Options {
        Options {
            recursive: false,
            follow: Follow::Always,
            make: Make::Copy,
            copy_contents: false,
            preserve: Preserve::default(),
            existing: Existing::Replace,
            ask: false,
            force: false,
            remove_destination: false,
            backup: None,
            sparse: Sparse::Auto,
            reflink: Reflink::Auto,
            parents: false,
            strip_trailing_slashes: false,
            keep_directory_symlink: false,
            through_dangling_symlink: false,
            one_file_system: false,
            context: Context::Inherit,
            verbose: false,
            debug: false,
            jobs: None,
            engine: None,
            profile: Location::None,
            atomic: false,
            durable: false,
            verify: false,
            resume: false,
            no_cache: false,
            dry_run: false,
            limit_rate: None,
            filter: Filter::default(),
            record: None,
        }
    }
}

impl Options {
    /// Whether an old destination that is a symbolic link can be one that is followed.
    pub(crate) fn may_write_through(&self) -> bool {
        let copies = matches!(self.make, Make::Copy | Make::AttributesOnly);
        self.backup.is_none() && !self.remove_destination && (copies || self.keep_directory_symlink)
    }

    /// Whether entries are copied one after the other. Users read the messages in order, or are
    /// asked. A backup may take the name of another entry, and so may the target of a symbolic link
    /// to a directory: then the order of the entries decides the result.
    pub(crate) fn copies_in_order(&self) -> bool {
        self.verbose
            || self.dry_run
            || self.debug
            || self.ask
            || self.backup.is_some()
            || self.keep_directory_symlink
    }

    /// What `cp -a` does: trees, links as links, every attribute.
    #[must_use]
    pub fn archive() -> Options {
        Options {
            recursive: true,
            follow: Follow::Never,
            preserve: Preserve {
                mode: ModeRule::Preserve,
                ownership: true,
                timestamps: true,
                links: true,
                context: Keep::IfPossible,
                xattr: Keep::IfPossible,
                quiet: true,
            },
            ..Options::default()
        }
    }
}

/// Which symbolic links of the source stand for what they point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// None.
    Never,
    /// Those named on the command line.
    CommandLine,
    /// All.
    Always,
}

impl Follow {
    /// Whether a symbolic link of the source is followed, which may be an operand.
    pub(crate) fn follows(self, is_operand: bool) -> bool {
        match self {
            Follow::Never => false,
            Follow::CommandLine => is_operand,
            Follow::Always => true,
        }
    }
}

/// What is made of a source that is no directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// A copy of data and attributes.
    Copy,
    /// A file without the source's data, with the attributes asked for.
    AttributesOnly,
    /// A hard link to the source.
    HardLink,
    /// A symbolic link to the source.
    SymbolicLink,
}

/// The attributes that a copy takes over from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preserve {
    /// Permission bits and access control lists.
    pub mode: ModeRule,
    /// Owner and group.
    pub ownership: bool,
    /// Times of last access and modification, in nanoseconds.
    pub timestamps: bool,
    /// Hard links among the files copied.
    pub links: bool,
    /// The SELinux security context.
    pub context: Keep,
    /// Extended attributes.
    pub xattr: Keep,
    /// Say nothing about contexts and extended attributes that could not be kept, unless they are
    /// [`Keep::Required`].
    pub quiet: bool,
}

impl Default for Preserve {
    /// Nothing but the permissions that the umask leaves.
    fn default() -> Preserve {
        Preserve {
            mode: ModeRule::Umask,
            ownership: false,
            timestamps: false,
            links: false,
            context: Keep::No,
            xattr: Keep::No,
            quiet: false,
        }
    }
}

/// How the mode of a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeRule {
    /// The source's permissions less the umask for new files; an existing file keeps its own.
    Umask,
    /// The source's mode, exactly.
    Preserve,
    /// What the umask gives a file made from nothing.
    Fresh,
}

/// How hard to try to keep an attribute that not every file system can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Leave it.
    No,
    /// Keep it where possible; failing to does not change the exit status.
    IfPossible,
    /// It was named: failing to keep it is an error.
    Required,
}

/// What happens to a destination that exists and is no directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    Replace,
    /// Replace it when it is older than the source, else leave it.
    ReplaceOlder,
    /// Leave it, without a word.
    Skip,
    /// Leave it, say so, and fail.
    Fail,
}

/// Backups of what is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// How the names of backups are made.
    pub kind: BackupKind,
    /// What a simple backup's name ends in: not empty, and without a slash.
    pub suffix: OsString,
}

/// How the names of backups are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupKind {
    /// The suffix.
    Simple,
    /// `.~1~`, `.~2~`, … where there is such a backup already, else the suffix.
    Existing,
    /// `.~1~`, `.~2~`, …
    Numbered,
}

/// Where the copy gets holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparse {
    /// Where the source has them.
    Auto,
    /// Wherever a block is all zeros.
    Always,
    /// Nowhere.
    Never,
}

/// Whether source and copy share their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reflink {
    /// Where the file system can.
    Auto,
    /// Yes, or the copy fails.
    Always,
    /// No, nor any other way of leaving the copying to the file system.
    Never,
}

/// The security context of what is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// As the kernel gives it.
    Inherit,
    /// The default of the destination's place, which is what the kernel's policy gives a new file.
    Default,
    /// This one.
    Named(OsString),
}
