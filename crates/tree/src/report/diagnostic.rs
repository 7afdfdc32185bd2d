//! Failures, warnings and notices as values. `cli` turns them into words.

use std::path::{Path, PathBuf};

use engines::Errno;
use engines::profile::{Mistake, Problem};

use super::attribute::Loss;
use crate::fs::Place;

/// The result of a step in the copy of an entry.
pub(crate) type Result<T, E = Diagnostic> = std::result::Result<T, E>;

/// A failure, a warning or a notice.
///
/// Fields have the same meaning in all variants: `src` is the source, `dst` the destination, `path`
/// the file in question, and `errno` the error of the failed call.
#[expect(missing_docs, reason = "the fields are explained above or with their variant")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnostic {
    /// One call on one file failed.
    Failed { action: Action, path: PathBuf, errno: Errno },
    /// Copying the data failed in a call on both files, which does not say on which side.
    Copy { src: PathBuf, dst: PathBuf, errno: Errno },
    /// A clone failed for another reason than missing support, or was required.
    Clone { src: PathBuf, dst: PathBuf, errno: Errno },
    /// The hard link `dst` to `src` could not be created.
    HardLink { src: PathBuf, dst: PathBuf, errno: Errno },
    /// The symbolic link `dst` to `src` could not be created.
    SymbolicLink { src: PathBuf, dst: PathBuf, errno: Errno },
    /// The destination has only the first `bytes` of the data, after an error that was reported
    /// before. The source had `bytes_expected` when it was opened.
    Incomplete { dst: PathBuf, bytes: u64, bytes_expected: u64 },
    /// A partner could not copy or verify a range of the file, which it has reported.
    RangeFailed { dst: PathBuf },
    /// The source became shorter, or ended before its own length, while it was copied. `bytes` were
    /// copied; it had `bytes_expected` when it was opened.
    Shrank { src: PathBuf, bytes: u64, bytes_expected: u64 },
    /// The source's length or modification time changed while it was copied.
    Changed { src: PathBuf },
    /// The run was interrupted while this file was written. It has `bytes` of the data.
    Interrupted { dst: PathBuf, bytes: u64 },
    /// A copy differs from its source. `at` is the offset of the first byte that differs or that
    /// only one of them has.
    Differs { src: PathBuf, dst: PathBuf, at: u64 },
    /// This file cannot be read a second time, so that the copy cannot be verified.
    Unverifiable { path: PathBuf },
    /// The run was interrupted while a copy was verified. The copy is complete but not verified.
    InterruptedUnverified { dst: PathBuf },
    /// The run was interrupted before the copy was complete. Its name was not changed.
    InterruptedBefore { dst: PathBuf },
    /// The target of the symbolic link `dst` has no name that a new file could take, as in /proc.
    NameUnknown { dst: PathBuf },
    /// A file was replaced by one without an attribute of the old file, which is `lost`.
    NotTakenOver { lost: Loss, dst: PathBuf },
    /// The file `path`, which this run or a killed one created beside a destination, could not be
    /// removed.
    LeftOver { path: PathBuf, errno: Errno },
    /// The source was replaced by another file between looking at it and opening it.
    SourceReplaced { src: PathBuf },
    /// The destination was replaced by another file between looking at it and opening it.
    DestinationReplaced { dst: PathBuf },
    /// A directory was moved away, or replaced by another, while the copy was below it.
    DirectoryMoved { path: PathBuf },
    /// A directory was found without `--recursive`.
    OmittingDirectory { src: PathBuf },
    /// Source and destination are one file.
    SameFile { src: PathBuf, dst: PathBuf },
    /// A directory would be copied into itself. `src` is the operand, `dst` its destination.
    IntoItself { src: PathBuf, dst: PathBuf },
    /// An operand of a process on another host than the first is on a file system of that host alone.
    LocalToHost { path: PathBuf },
    /// The target of the followed symbolic link `src` is a directory that contains the link.
    CyclicSymlink { src: PathBuf },
    /// The destination of another file is an existing directory.
    DirectoryInTheWay { src: PathBuf, dst: PathBuf },
    /// The destination of a directory is another existing file.
    NonDirectoryInTheWay { src: PathBuf, dst: PathBuf },
    /// The destination is the record of the run.
    Record { src: PathBuf, dst: PathBuf },
    /// The source is the record of the run, which grows while it is copied.
    SourceIsRecord { src: PathBuf },
    /// Two operands have the same destination. `src` is the second one.
    JustCreated { src: PathBuf, dst: PathBuf },
    /// The destination is a symbolic link that was created during the run.
    JustCreatedSymlink { src: PathBuf, dst: PathBuf },
    /// The destination in a directory is a symbolic link that belongs neither to the caller nor to
    /// root.
    ForeignSymlink { dst: PathBuf },
    /// The destination is a dangling symbolic link.
    DanglingSymlink { dst: PathBuf },
    /// An operand, a file or a `directory`, is given twice.
    SourceTwice { src: PathBuf, directory: bool },
    /// A directory would be copied a second time, and directories have no hard links. `first` is
    /// its first destination, `dst` the second one.
    DirectoryTwice { dst: PathBuf, first: PathBuf },
    /// The backup of the destination would replace the source.
    BackupDestroysSource { src: PathBuf, dst: PathBuf },
    /// The backup of the destination would replace the file `backup` that this run created.
    BackupDestroysCopy { dst: PathBuf, backup: PathBuf },
    /// The relative symbolic link `dst` can be created in the working directory only.
    RelativeSymlinkElsewhere { dst: PathBuf },
    /// The destination exists, and `--update=none-fail` was given.
    NotReplacing { dst: PathBuf },
    /// The source has an unknown file type.
    UnknownKind { src: PathBuf },
    /// The target of several sources or of `-t` is not a directory. `named`: it was given with
    /// `-t`, not as the last operand.
    Target { path: PathBuf, errno: Errno, named: bool },
    /// `--parents` was given without a target directory.
    ParentsNeedDirectory,
    /// A part of a `--parents` path below the target directory is not a directory.
    ParentNotDirectory { path: PathBuf },
    /// The extended attribute `name` could not be set. `required`: the option named extended
    /// attributes.
    Xattr { name: Vec<u8>, dst: PathBuf, errno: Errno, required: bool },
    /// The profile `path` cannot be used; the rule decides.
    ProfileUnusable { path: PathBuf, problem: Problem },
    /// A line of the profile `path` is unusable and ignored.
    ProfileLine { path: PathBuf, mistake: Mistake },
    /// Nothing in the profile `path` was measured on this machine.
    ProfileForeign { path: PathBuf },
    /// A line of the profile is used although the system has changed since it was measured.
    /// `changes` says how, in words.
    ProfileStale { changes: Vec<String> },
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
            | Diagnostic::LeftOver { .. }
            | Diagnostic::ProfileUnusable { .. }
            | Diagnostic::Xattr { required: false, .. } => Severity::Warning,
            Diagnostic::ProfileLine { .. }
            | Diagnostic::ProfileForeign { .. }
            | Diagnostic::ProfileStale { .. } => Severity::Notice,
            _ => Severity::Failure,
        }
    }

    /// Whether the copy of a file fails in the same way when it is made again, or may not go on from what is
    /// there. Errors of space, media, servers and permissions may pass.
    pub(crate) fn recurs(&self) -> bool {
        match self {
            Diagnostic::Differs { .. } => true,
            Diagnostic::Failed { errno, .. } | Diagnostic::Copy { errno, .. } => matches!(
                *errno,
                Errno::FBIG | Errno::INVAL | Errno::OVERFLOW | Errno::OPNOTSUPP | Errno::XDEV
            ),
            _ => false,
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
    /// Storing the name of a new file as it is given.
    KeepName,
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
