//! What went wrong with a file: path, operation and errno.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use engines::Errno;
use tree::{Action, BadGlob, Diagnostic, Options, Severity, words_of_error};

use crate::totals::Copied;

/// A failure or a warning about one file.
///
/// The text is one line, in the words of GNU cp: what could not be done, with which file, and why.
/// [`diagnostic`](Error::diagnostic) has what a program needs to choose its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<What>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// With what was copied before, of the copy of one file.
    Diagnostic(Diagnostic, Option<Copied>),
    /// The copy did not start, for this reason.
    NotStarted(Operation, Option<PathBuf>, Errno, String),
}

/// What could not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Look at a file: stat(2), fstat(2).
    Look,
    /// Open a file or a directory.
    Open,
    /// List a directory.
    List,
    /// Read data, or the target of a symbolic link.
    Read,
    /// Write data, truncate or extend a file.
    Write,
    /// Move data by a call on both files, which does not say on which side it failed.
    Copy,
    /// Share the blocks of a file.
    Clone,
    /// Create a file, a directory, a link or a special file.
    Create,
    /// Rename a file: over an old one, to its backup or back.
    Rename,
    /// Remove a file.
    Remove,
    /// Set an attribute, or take one over.
    SetAttribute,
    /// Sync a file.
    Sync,
    /// Close a file.
    Close,
    /// Compare a copy with its source.
    Verify,
    /// Keep a rule of the copier, such as not to copy a directory into itself.
    Check,
    /// Go on: the copy was cancelled.
    Finish,
    /// Read the profile.
    ReadProfile,
    /// Prepare the copy: a pattern or an engine that cannot be used, a thread that cannot be started.
    Prepare,
}

impl Error {
    pub(crate) fn of_file(diagnostic: Diagnostic, copied: Copied) -> Error {
        Error(Box::new(What::Diagnostic(diagnostic, Some(copied))))
    }

    /// An ignore file that cannot be read.
    pub(crate) fn ignore_file(path: PathBuf, error: &io::Error) -> Error {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        let words = format!("cannot read '{}': {}", path.display(), words_of_error(&errno.into()));
        Error(Box::new(What::NotStarted(Operation::Read, Some(path), errno, words)))
    }

    /// The thread of the copy cannot be started.
    pub(crate) fn thread(error: &io::Error) -> Error {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::AGAIN);
        let words = format!("cannot start the copy: {}", words_of_error(&errno.into()));
        Error(Box::new(What::NotStarted(Operation::Prepare, None, errno, words)))
    }

    pub(crate) fn bad_glob(BadGlob { glob, reason }: BadGlob) -> Error {
        Error::unusable(format!("the pattern '{}': {reason}", glob.display()))
    }

    fn unusable(words: String) -> Error {
        let words = format!("cannot use {words}");
        Error(Box::new(What::NotStarted(Operation::Prepare, None, Errno::INVAL, words)))
    }

    /// An engine that handles SIGBUS needs the permission to: a handler is the whole process's.
    pub(crate) fn unless_allowed(options: &Options) -> Result<(), Error> {
        match &options.engine {
            Some(variant) if variant.handles_sigbus() && !options.sigbus_handler => {
                let why = "it handles SIGBUS for the whole process, which was not allowed";
                Err(Error::unusable(format!("{variant}: {why}")))
            }
            _ => Ok(()),
        }
    }

    /// What could not be done.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.facts().0
    }

    /// The file. Of an error that concerns two files, the one that could not be read or written; the
    /// destination, if that is not known.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.facts().1
    }

    /// The errno of the call that failed. For a rule of the copier it is the one that a system call
    /// would return for the same reason, such as EEXIST for a file that is not to be replaced, and
    /// ECANCELED for a copy that was cancelled.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.facts().2.raw_os_error()
    }

    fn facts(&self) -> (Operation, Option<&Path>, Errno) {
        match &*self.0 {
            What::Diagnostic(diagnostic, _) => facts(diagnostic),
            What::NotStarted(operation, path, errno, _) => (*operation, path.as_deref(), *errno),
        }
    }

    /// The error as a value with the fields of its kind; `None` if the copy did not start.
    #[must_use]
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        match &*self.0 {
            What::Diagnostic(diagnostic, _) => Some(diagnostic),
            _ => None,
        }
    }

    /// What was copied before, if the error is that of [`copy_file`](crate::copy_file) or one of the functions
    /// beside it and the copy had started. The [`Report`](crate::Report) tells it of other copies.
    #[must_use]
    pub fn copied(&self) -> Option<Copied> {
        match &*self.0 {
            What::Diagnostic(_, copied) => *copied,
            _ => None,
        }
    }

    /// Whether the copy is as asked for all the same.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.diagnostic().is_some_and(|of| of.severity() != Severity::Failure)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            What::Diagnostic(diagnostic, _) => diagnostic.fmt(f),
            What::NotStarted(.., words) => f.write_str(words),
        }
    }
}

impl std::error::Error for Error {}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Error {
        Error(Box::new(What::Diagnostic(diagnostic, None)))
    }
}

impl From<Error> for io::Error {
    /// With the kind of its errno.
    fn from(error: Error) -> io::Error {
        let kind = io::Error::from_raw_os_error(error.errno()).kind();
        io::Error::new(kind, error)
    }
}

/// The operation that failed, the file, and the errno. A rule of the copier has the errno that a call would
/// return for the same reason.
fn facts(diagnostic: &Diagnostic) -> (Operation, Option<&Path>, Errno) {
    use Operation as Op;
    let (operation, path, errno) = match diagnostic {
        Diagnostic::Failed { action, path, errno } => (of_action(*action), path, *errno),
        Diagnostic::Copy { dst, errno, .. } => (Op::Copy, dst, *errno),
        Diagnostic::Clone { dst, errno, .. } => (Op::Clone, dst, *errno),
        Diagnostic::HardLink { dst, errno, .. } | Diagnostic::SymbolicLink { dst, errno, .. } => {
            (Op::Create, dst, *errno)
        }
        Diagnostic::Incomplete { dst, .. } | Diagnostic::RangeFailed { dst } => {
            (Op::Write, dst, Errno::IO)
        }
        Diagnostic::Shrank { src, .. } => (Op::Read, src, Errno::IO),
        Diagnostic::Changed { src } => (Op::Read, src, Errno::AGAIN),
        Diagnostic::Interrupted { dst, .. }
        | Diagnostic::InterruptedUnverified { dst }
        | Diagnostic::InterruptedBefore { dst } => (Op::Finish, dst, Errno::CANCELED),
        Diagnostic::Differs { dst, .. } => (Op::Verify, dst, Errno::IO),
        Diagnostic::Unverifiable { path } => (Op::Verify, path, Errno::SPIPE),
        Diagnostic::NotTakenOver { lost, dst } => (Op::SetAttribute, dst, lost.errno()),
        Diagnostic::Xattr { dst, errno, .. } => (Op::SetAttribute, dst, *errno),
        Diagnostic::LeftOver { path, errno } => (Op::Remove, path, *errno),
        Diagnostic::SourceReplaced { src: path }
        | Diagnostic::DestinationReplaced { dst: path }
        | Diagnostic::DirectoryMoved { path } => (Op::Open, path, Errno::STALE),
        Diagnostic::Target { path, errno, .. } => (Op::Open, path, *errno),
        Diagnostic::OmittingDirectory { src: path }
        | Diagnostic::DirectoryInTheWay { dst: path, .. } => (Op::Check, path, Errno::ISDIR),
        Diagnostic::SameFile { dst, .. }
        | Diagnostic::IntoItself { dst, .. }
        | Diagnostic::RelativeSymlinkElsewhere { dst } => (Op::Check, dst, Errno::INVAL),
        Diagnostic::LocalToHost { path } => (Op::Check, path, Errno::REMOTE),
        Diagnostic::CyclicSymlink { src: path }
        | Diagnostic::NameUnknown { dst: path }
        | Diagnostic::JustCreatedSymlink { dst: path, .. }
        | Diagnostic::ForeignSymlink { dst: path }
        | Diagnostic::DanglingSymlink { dst: path } => (Op::Check, path, Errno::LOOP),
        Diagnostic::NonDirectoryInTheWay { dst: path, .. }
        | Diagnostic::ParentNotDirectory { path } => (Op::Check, path, Errno::NOTDIR),
        Diagnostic::Record { dst: path, .. }
        | Diagnostic::SourceIsRecord { src: path }
        | Diagnostic::BackupDestroysSource { dst: path, .. }
        | Diagnostic::BackupDestroysCopy { dst: path, .. } => (Op::Check, path, Errno::BUSY),
        Diagnostic::JustCreated { dst: path, .. }
        | Diagnostic::SourceTwice { src: path, .. }
        | Diagnostic::DirectoryTwice { dst: path, .. }
        | Diagnostic::NotReplacing { dst: path } => (Op::Check, path, Errno::EXIST),
        Diagnostic::UnknownKind { src } => (Op::Check, src, Errno::OPNOTSUPP),
        Diagnostic::ParentsNeedDirectory => return (Op::Check, None, Errno::NOTDIR),
        Diagnostic::ProfileUnusable { path, .. } | Diagnostic::ProfileLine { path, .. } => {
            (Op::ReadProfile, path, Errno::INVAL)
        }
        Diagnostic::ProfileForeign { path } => (Op::ReadProfile, path, Errno::NOENT),
        Diagnostic::ProfileStale { .. } => return (Op::ReadProfile, None, Errno::STALE),
    };
    (operation, Some(path), errno)
}

fn of_action(action: Action) -> Operation {
    use Operation as Op;
    match action {
        Action::Stat | Action::Fstat => Op::Look,
        Action::ParentAttributes
        | Action::EnterDirectory
        | Action::EnterDestination
        | Action::OpenForReading => Op::Open,
        Action::List => Op::List,
        Action::ReadLink | Action::Read => Op::Read,
        Action::Write | Action::Truncate | Action::Extend => Op::Write,
        Action::Sync => Op::Sync,
        Action::Close => Op::Close,
        Action::CreateRegular
        | Action::CreateDirectory
        | Action::CreateParent
        | Action::CreateSymlink
        | Action::CreateFifo
        | Action::CreateSpecial
        | Action::KeepName => Op::Create,
        Action::Replace | Action::Backup | Action::UnBackup => Op::Rename,
        Action::Remove => Op::Remove,
        Action::Ownership | Action::Permissions | Action::Times | Action::Context => {
            Op::SetAttribute
        }
    }
}
