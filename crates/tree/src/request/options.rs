//! The options of a copy. Which option of a command line overrides another is decided by `cli`.

use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};

use engines::Variant;
use engines::profile::Location;

use super::filter::Filter;
use crate::fs::FileId;

/// How to copy. The default is GNU cp without options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Copy directories with their entries, and re-create special files.
    pub recursive: bool,
    /// Which symbolic links of the source are followed.
    pub follow: Follow,
    /// What is created for a source that is not a directory.
    pub make: Make,
    /// When recursive, read fifos and devices instead of re-creating them.
    pub copy_contents: bool,
    /// Which attributes the copy takes over.
    pub preserve: Preserve,
    /// What happens to an existing destination that is not a directory.
    pub existing: Existing,
    /// Ask before an existing destination is replaced.
    pub ask: bool,
    /// If an existing destination cannot be opened, remove it and try again.
    pub force: bool,
    /// Remove an existing destination before opening it.
    pub remove_destination: bool,
    /// Make a backup of a file that is replaced.
    pub backup: Option<Backup>,
    /// Where the copy gets holes.
    pub sparse: Sparse,
    /// Whether files are cloned.
    pub reflink: Reflink,
    /// Append the whole source name to the destination directory.
    pub parents: bool,
    /// Remove trailing slashes from sources that are copied into a directory.
    pub strip_trailing_slashes: bool,
    /// Copy a directory into the target of a symbolic link at its destination.
    pub keep_directory_symlink: bool,
    /// Copy a directory that is an operand to a new name only: EEXIST if its destination exists.
    pub new_directory: bool,
    /// Write through a destination operand that is a dangling symbolic link (POSIX), which is
    /// otherwise refused.
    pub through_dangling_symlink: bool,
    /// Do not enter other file systems.
    pub one_file_system: bool,
    /// The security context of new files.
    pub context: Context,
    /// Announce each file copied.
    pub verbose: bool,
    /// Announce how each file was copied and which were skipped.
    pub debug: bool,
    /// The number of workers, for entries of a tree and for parts of a large file. By default one
    /// for each processor that the process may use; for the entries of a tree up to eight times as
    /// many, if they are measured to help.
    pub jobs: Option<NonZeroUsize>,
    /// The variant that copies data, where it works. By default the fastest for the file.
    pub engine: Option<Variant>,
    /// Variants that handle SIGBUS for the whole process may be used. Otherwise they are left out, also
    /// where a profile names them.
    pub sigbus_handler: bool,
    /// The user's profile.
    pub profile: Location,
    /// A name stands for the old file or for the complete new one at every moment.
    pub atomic: bool,
    /// Continue a copy that was killed. Needs `atomic` and preserved times.
    pub resume: bool,
    /// Read every copy back and compare it with its source.
    pub verify: bool,
    /// Sync every copy and every name before the run ends.
    pub durable: bool,
    /// Leave the page cache as it was.
    pub no_cache: bool,
    /// Report what would be done, and change nothing. Questions count as answered with yes.
    /// Excludes receipts and [`durable`](Options::durable).
    pub dry_run: bool,
    /// Bytes of data a second, at most, of all workers together. Clones are not counted.
    pub limit_rate: Option<NonZeroU64>,
    /// What is left out of directories that are copied.
    pub filter: Filter,
    /// The file of the record of the run, which no copy replaces or writes to.
    pub record: Option<FileId>,
}

impl Options {
    /// Whether a copy waits until its data is on the medium.
    #[must_use]
    pub fn waits_for_medium(&self) -> bool {
        (self.durable || self.verify || self.no_cache) && !self.dry_run
    }

    /// Whether a symbolic link at a destination may be followed.
    pub(crate) fn may_write_through(&self) -> bool {
        let copies = matches!(self.make, Make::Copy | Make::AttributesOnly);
        self.backup.is_none() && !self.remove_destination && (copies || self.keep_directory_symlink)
    }

    /// Whether entries are copied one after the other: messages and questions come in order. A
    /// backup, or the target of a symbolic link to a directory, may have the name of another entry;
    /// then the order decides the result.
    pub(crate) fn copies_in_order(&self) -> bool {
        self.verbose
            || self.dry_run
            || self.debug
            || self.ask
            || self.backup.is_some()
            || self.keep_directory_symlink
    }

    /// `cp -a`: trees, links as links, every attribute.
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

/// Which symbolic links of the source are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// None.
    Never,
    /// Symbolic links named on the command line.
    CommandLine,
    /// All.
    #[default]
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

/// What is created for a source that is not a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Make {
    /// A copy of data and attributes.
    #[default]
    Copy,
    /// A file without the source's data, with the attributes asked for.
    AttributesOnly,
    /// A hard link to the source.
    HardLink,
    /// A symbolic link to the source.
    SymbolicLink,
}

/// The attributes that are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Do not report contexts and extended attributes that could not be kept, unless they are
    /// [`Keep::Required`].
    pub quiet: bool,
}

/// The mode of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModeRule {
    /// The source's permissions less the umask for new files; an existing file keeps its own.
    #[default]
    Umask,
    /// The source's mode, exactly.
    Preserve,
    /// That of a new file without a source.
    Fresh,
}

/// Whether to keep an attribute that not every file system supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Do not copy it.
    #[default]
    No,
    /// Keep it where possible; failing to does not change the exit status.
    IfPossible,
    /// The user named it: a failure is an error.
    Required,
}

/// What happens to an existing destination that is not a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    #[default]
    Replace,
    /// Replace it if it is older than the source, else keep it.
    ReplaceOlder,
    /// Keep it, without a message.
    Skip,
    /// Keep it, and report a failure.
    Fail,
}

/// Backups of what is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The kind of the names.
    pub kind: BackupKind,
    /// The suffix of simple backups: not empty, without a slash.
    pub suffix: OsString,
}

/// The kind of the names of backups.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sparse {
    /// Where the source has them.
    #[default]
    Auto,
    /// Wherever a block is all zeros.
    Always,
    /// Nowhere.
    Never,
}

/// Whether files are cloned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reflink {
    /// Where the file system can.
    #[default]
    Auto,
    /// Always; otherwise the copy fails.
    Always,
    /// Never, and the kernel does not copy by other calls either.
    Never,
}

/// The security context of new files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// The kernel's.
    #[default]
    Inherit,
    /// The default of the destination's path, which the kernel's policy gives new files.
    Default,
    /// This one.
    Named(OsString),
}

/// What to copy, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names of sources, as the user wrote them.
    pub sources: Vec<OsString>,
    /// The destination.
    pub destination: Destination,
}

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Into this directory.
    Directory(OsString),
    /// Into it if it is a directory; otherwise the only source is copied to this name.
    Last(OsString),
    /// The only source is copied to this name.
    Exact(OsString),
}
