//! Failures, warnings and notices as values. `cli` turns them into words.

use std::path::{Path, PathBuf};

use engines::Errno;
use engines::profile::{Mistake, Problem};

use crate::fs::Place;

/// A failure, a warning or a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnostic {
    /// One call on one file failed.
    Failed {
        /// The action that failed.
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
    /// A clone failed for another reason than missing support, or was required.
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
        /// The target of the link.
        src: PathBuf,
        /// The link.
        dst: PathBuf,
        /// The error.
        errno: Errno,
    },
    /// A symbolic link to the source could not be made.
    SymbolicLink {
        /// The target of the link.
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
    /// The source's length or modification time changed while it was copied.
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
    /// A copy differs from its source.
    Differs {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
        /// The offset of the first byte that differs or that only one of them has.
        at: u64,
    },
    /// This file cannot be read a second time, so that the copy cannot be verified.
    Unverifiable {
        /// The source or the destination.
        path: PathBuf,
    },
    /// The run was interrupted while a copy was verified.
    InterruptedUnverified {
        /// The destination, which is complete but not verified.
        dst: PathBuf,
    },
    /// The run was interrupted before the copy was complete. Its name was not changed.
    InterruptedBefore {
        /// The destination.
        dst: PathBuf,
    },
    /// The target of a symbolic link has no name that a new file could take, as in /proc.
    NameUnknown {
        /// The link.
        dst: PathBuf,
    },
    /// A file was replaced by one without some of its attributes.
    NotTakenOver {
        /// The lost attribute.
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
    /// A directory was found without `--recursive`.
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
        /// Its destination.
        dst: PathBuf,
    },
    /// The target of a followed symbolic link is a directory that contains the link.
    CyclicSymlink {
        /// The link.
        src: PathBuf,
    },
    /// The destination of another file is an existing directory.
    DirectoryInTheWay {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// The destination of a directory is another existing file.
    NonDirectoryInTheWay {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// The destination is the record of the run.
    Record {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// The source is the record of the run, which grows while it is copied.
    SourceIsRecord {
        /// The source.
        src: PathBuf,
    },
    /// Two operands have the same destination.
    JustCreated {
        /// The second source.
        src: PathBuf,
        /// The destination of both.
        dst: PathBuf,
    },
    /// The destination is a symbolic link that was created during the run.
    JustCreatedSymlink {
        /// The source.
        src: PathBuf,
        /// The link.
        dst: PathBuf,
    },
    /// The destination in a directory is a symbolic link that belongs neither to the caller nor to
    /// root.
    ForeignSymlink {
        /// The link.
        dst: PathBuf,
    },
    /// The destination is a dangling symbolic link.
    DanglingSymlink {
        /// The link.
        dst: PathBuf,
    },
    /// An operand is given twice.
    SourceTwice {
        /// The operand.
        src: PathBuf,
        /// It is a directory.
        directory: bool,
    },
    /// A directory would be copied a second time, and directories have no hard links.
    DirectoryTwice {
        /// The second destination.
        dst: PathBuf,
        /// The first destination.
        first: PathBuf,
    },
    /// The backup of the destination would replace the source.
    BackupDestroysSource {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// The backup of the destination would replace a file that this run created.
    BackupDestroysCopy {
        /// The destination.
        dst: PathBuf,
        /// The name of the backup.
        backup: PathBuf,
    },
    /// A relative symbolic link can be created in the working directory only.
    RelativeSymlinkElsewhere {
        /// The link.
        dst: PathBuf,
    },
    /// The destination exists, and `--update=none-fail` was given.
    NotReplacing {
        /// The destination.
        dst: PathBuf,
    },
    /// The source has an unknown file type.
    UnknownKind {
        /// The source.
        src: PathBuf,
    },
    /// The target of several sources or of `-t` is not a directory.
    Target {
        /// The operand.
        path: PathBuf,
        /// Why.
        errno: Errno,
        /// It was given with `-t`, not as the last operand.
        named: bool,
    },
    /// `--parents` was given without a target directory.
    ParentsNeedDirectory,
    /// A part of a `--parents` path below the target directory is not a directory.
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
        /// The option required the attribute.
        required: bool,
    },
    /// The profile cannot be used; the built-in one is used.
    ProfileUnusable {
        /// The profile.
        path: PathBuf,
        /// Why.
        problem: Problem,
    },
    /// A line of the profile is unusable and ignored.
    ProfileLine {
        /// The profile.
        path: PathBuf,
        /// The line, and why.
        mistake: Mistake,
    },
    /// Nothing in the profile was measured on this machine.
    ProfileForeign {
        /// The profile.
        path: PathBuf,
    },
    /// A line of the profile is used although the system has changed since it was measured.
    ProfileStale {
        /// What has changed, in words.
        changes: Vec<String>,
    },
}

/// An attribute that a new file gets from the file that it replaces.
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
    /// The exit status does not change.
    Warning,
    /// The exit status does not change, and the copy is as asked for.
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

/// The action on a file that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// stat(2) of the source or the destination.
    Stat,
    /// Opening a parent directory of the source for `--parents`.
    ParentAttributes,
    /// Opening a regular file or a stream for reading.
    OpenForReading,
    /// fstat(2) of an open file.
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
    /// Truncating a file before it is written.
    Truncate,
    /// Extending a file by a hole at its end.
    Extend,
    /// Syncing it.
    Sync,
    /// Closing a file, when some file systems report failed writes.
    Close,
    /// Creating a regular file or opening it for writing.
    CreateRegular,
    /// Creating a directory.
    CreateDirectory,
    /// Creating a directory of `--parents`.
    CreateParent,
    /// Creating a symbolic link as a copy of one.
    CreateSymlink,
    /// Creating a fifo.
    CreateFifo,
    /// Creating a socket or a device.
    CreateSpecial,
    /// Renaming a new file over the old one.
    Replace,
    /// Removing an existing destination.
    Remove,
    /// Renaming an existing destination to its backup.
    Backup,
    /// Renaming a backup back.
    UnBackup,
    /// Setting owner and group.
    Ownership,
    /// Setting permissions or an access control list.
    Permissions,
    /// Setting times.
    Times,
    /// Setting the security context.
    Context,
}

/// Makes the diagnostic of a failed call on the file at `place`.
pub(crate) fn failed<'p>(
    action: Action,
    place: &'p Place<'p>,
) -> impl FnOnce(Errno) -> Diagnostic + use<'p> {
    move |errno| Diagnostic::Failed { action, path: place.path(), errno }
}

/// Makes the diagnostic of a failed call on `path`.
pub(crate) fn failed_at(action: Action, path: &Path) -> impl FnOnce(Errno) -> Diagnostic + use<> {
    let path = path.to_owned();
    move |errno| Diagnostic::Failed { action, path, errno }
}
