//! Everything that a copy has to complain of, as values. `cli` alone turns them into words.

use std::path::PathBuf;

use engines::Errno;
use engines::profile::{Mistake, Problem};

/// Something that went wrong, or that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnostic {
    /// One call on one file failed.
    Failed {
        /// What was tried.
        action: Action,
        /// The file.
        path: PathBuf,
        /// The call's error.
        errno: Errno,
    },
    /// Copying the data failed in a call that serves both files, which does not say on which side.
    Copy {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
        /// The error.
        errno: Errno,
    },
    /// The blocks could not be shared, for a reason other than that it is not supported, or nothing
    /// but sharing would do.
    Clone {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
        /// The error.
        errno: Errno,
    },
    /// A hard link could not be made.
    HardLink {
        /// What was to be linked to.
        src: PathBuf,
        /// The link.
        dst: PathBuf,
        /// The error.
        errno: Errno,
    },
    /// A symbolic link to the source could not be made.
    SymbolicLink {
        /// What was to be linked to.
        src: PathBuf,
        /// The link.
        dst: PathBuf,
        /// The error.
        errno: Errno,
    },
    /// The destination holds only part of the data, after an error that was reported before.
    Incomplete {
        /// The destination.
        dst: PathBuf,
        /// Bytes that it holds, counted from the start.
        bytes: u64,
        /// Bytes that the source had when it was opened.
        bytes_expected: u64,
    },
    /// The source became shorter, or ended before its own length, while it was copied.
    Shrank {
        /// The source.
        src: PathBuf,
        /// Bytes copied.
        bytes: u64,
        /// Bytes that it had when it was opened.
        bytes_expected: u64,
    },
    /// The source's length or time of modification moved while it was copied.
    Changed {
        /// The source.
        src: PathBuf,
    },
    /// The run was interrupted while this file was written.
    Interrupted {
        /// The destination, which is incomplete.
        dst: PathBuf,
        /// Bytes that it holds.
        bytes: u64,
    },
    /// A copy is not what its source is.
    Differs {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
        /// The first byte that differs, or that only one of them has, counted from 0.
        at: u64,
    },
    /// This cannot be read a second time, so that nobody can say whether the copy is right.
    Unverifiable {
        /// The source or the destination.
        path: PathBuf,
    },
    /// The run was interrupted while a copy was read back.
    InterruptedUnverified {
        /// The destination, which is complete as far as is known.
        dst: PathBuf,
    },
    /// The run was interrupted before the copy was whole, and its name is as it was.
    InterruptedBefore {
        /// The destination.
        dst: PathBuf,
    },
    /// A symbolic link leads to a file whose name only the kernel knows, so that no other can take
    /// it over.
    NameUnknown {
        /// The link.
        dst: PathBuf,
    },
    /// A file was replaced by one that lacks something of what it had.
    NotTakenOver {
        /// What is lost.
        what: OldAttribute,
        /// The destination.
        dst: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// The source was replaced by another file between looking at it and opening it.
    SourceReplaced {
        /// The source.
        src: PathBuf,
    },
    /// The destination was replaced by another file between looking at it and opening it.
    DestinationReplaced {
        /// The destination.
        dst: PathBuf,
    },
    /// A directory was moved away, or replaced by another, while the copy was below it.
    DirectoryMoved {
        /// The directory.
        path: PathBuf,
    },
    /// A directory is met without leave to copy directories.
    OmittingDirectory {
        /// The directory.
        src: PathBuf,
    },
    /// Source and destination are one file.
    SameFile {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// A directory would be copied into itself.
    IntoItself {
        /// The operand.
        src: PathBuf,
        /// What is being made of it.
        dst: PathBuf,
    },
    /// A followed symbolic link leads to a directory that it is in.
    CyclicSymlink {
        /// The link.
        src: PathBuf,
    },
    /// A directory stands where something else is to go.
    DirectoryInTheWay {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// Something else stands where a directory is to go.
    NonDirectoryInTheWay {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// The record of the run is kept at the destination.
    Record {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// The source is where the record of the run is kept, and grows while it is copied.
    SourceIsRecord {
        /// The source.
        src: PathBuf,
    },
    /// Two operands would go to one name.
    JustCreated {
        /// The second source.
        src: PathBuf,
        /// The destination of both.
        dst: PathBuf,
    },
    /// The destination is a symbolic link that appeared while the copy ran.
    JustCreatedSymlink {
        /// The source.
        src: PathBuf,
        /// The link.
        dst: PathBuf,
    },
    /// The destination, inside a directory, is a symbolic link that belongs to neither the user who
    /// copies nor root.
    ForeignSymlink {
        /// The link.
        dst: PathBuf,
    },
    /// The destination is a symbolic link to nothing.
    DanglingSymlink {
        /// The link.
        dst: PathBuf,
    },
    /// A file operand stands twice.
    SourceTwice {
        /// The operand.
        src: PathBuf,
        /// It is a directory.
        directory: bool,
    },
    /// One directory was met twice, and directories have no hard links.
    DirectoryTwice {
        /// Where it would have gone.
        dst: PathBuf,
        /// Where it went before.
        first: PathBuf,
    },
    /// The backup of the destination would take the source's place.
    BackupDestroysSource {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// The backup of the destination would replace what this run has made.
    BackupDestroysCopy {
        /// The destination.
        dst: PathBuf,
        /// The name that its backup would have had.
        backup: PathBuf,
    },
    /// A relative symbolic link would lead nowhere from there.
    RelativeSymlinkElsewhere {
        /// The link that was to be made.
        dst: PathBuf,
    },
    /// The destination exists and that is an error.
    NotReplacing {
        /// The destination.
        dst: PathBuf,
    },
    /// The source is of no kind that is known.
    UnknownKind {
        /// The source.
        src: PathBuf,
    },
    /// The place where several sources or a `-t` should go is no directory.
    Target {
        /// The operand.
        path: PathBuf,
        /// Why.
        errno: Errno,
        /// It was named as a directory rather than being the last operand.
        named: bool,
    },
    /// Whole names of sources can only be appended to a directory.
    ParentsNeedDirectory,
    /// Part of the path to be made below the target directory is no directory.
    ParentNotDirectory {
        /// The part.
        path: PathBuf,
    },
    /// An extended attribute could not be set.
    Xattr {
        /// The attribute's name.
        name: Vec<u8>,
        /// The destination.
        dst: PathBuf,
        /// The error.
        errno: Errno,
        /// Without it the copy is a failure.
        required: bool,
    },
    /// The profile that says which ways are the fastest cannot be used; the copy goes by what is
    /// built in.
    ProfileUnusable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        problem: Problem,
    },
    /// A line of the profile is of no use and is passed over.
    ProfileLine {
        /// Where the profile is.
        path: PathBuf,
        /// The line, and why.
        mistake: Mistake,
    },
    /// Nothing in the profile was measured on this machine.
    ProfileForeign {
        /// Where it is.
        path: PathBuf,
    },
    /// A line of the profile is used although the system has changed since it was measured.
    ProfileStale {
        /// What has, in words.
        changes: Vec<String>,
    },
}

/// What a new file should have from the one that it replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OldAttribute {
    /// Owner, group or both.
    Ownership,
    /// Permissions.
    Permissions,
    /// An extended attribute or access control list, by its name.
    Xattr(Vec<u8>),
}

/// Whether a diagnostic makes the run fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The exit status is 1.
    Failure,
    /// The exit status is what it would have been.
    Warning,
    /// The same, and the copy is what was asked for: a person may want to know, a script need not.
    Notice,
}

impl Diagnostic {
    /// Whether it makes the run fail.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Diagnostic::SourceTwice { .. }
            | Diagnostic::Changed { .. }
            | Diagnostic::NotTakenOver { .. }
            | Diagnostic::ProfileUnusable { .. }
            | Diagnostic::Xattr { required: false, .. } => Severity::Warning,
            Diagnostic::ProfileLine { .. }
            | Diagnostic::ProfileForeign { .. }
            | Diagnostic::ProfileStale { .. } => Severity::Notice,
            _ => Severity::Failure,
        }
    }
}

/// What was tried on a file when a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Looking at it, source or destination.
    Stat,
    /// Looking at a parent of the source whose attributes are to be copied.
    ParentAttributes,
    /// Opening a regular file or a stream for reading.
    OpenForReading,
    /// Looking at what was opened.
    Fstat,
    /// Opening a directory of the source.
    EnterDirectory,
    /// Opening a directory of the destination.
    EnterDestination,
    /// Listing a directory.
    List,
    /// Reading a symbolic link.
    ReadLink,
    /// Reading data.
    Read,
    /// Writing data.
    Write,
    /// Emptying a file before it is written.
    Truncate,
    /// Giving a file the length that a hole at its end makes.
    Extend,
    /// Waiting until it is on the medium.
    Sync,
    /// Closing a file, which is when some file systems tell of failed writes.
    Close,
    /// Making a regular file or opening it for writing.
    CreateRegular,
    /// Making a directory.
    CreateDirectory,
    /// Making a directory on the way to the destination.
    CreateParent,
    /// Making a symbolic link that is a copy of one.
    CreateSymlink,
    /// Making a fifo.
    CreateFifo,
    /// Making a socket or a device.
    CreateSpecial,
    /// Giving a new file the name of the old one.
    Replace,
    /// Removing an existing destination.
    Remove,
    /// Renaming an existing destination to its backup.
    Backup,
    /// Renaming a backup back.
    UnBackup,
    /// Setting owner and group.
    Ownership,
    /// Setting permissions or an access control list to the source's.
    Permissions,
    /// Setting times.
    Times,
    /// Setting the security context.
    Context,
}
