//! What went wrong with a file: path, operation and errno.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use engines::{Errno, Variant};
use tree::{Action, BadGlob, Diagnostic, Severity};

use crate::totals::Copied;

/// A failure or a warning about one file.
///
/// The text is one line: what could not be done, with which file, and why. The words of GNU cp are
/// those of the command line; [`diagnostic`](Error::diagnostic) has what a program needs to choose
/// its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<What>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Diagnostic(Diagnostic),
    /// Of the copy of one file, and what was copied before.
    OfFile(Diagnostic, Copied),
    Call {
        operation: Operation,
        path: Option<PathBuf>,
        errno: Errno,
    },
    BadGlob(BadGlob),
    HandlesSigbus(Variant),
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
    pub(crate) fn of(diagnostic: Diagnostic) -> Error {
        Error(Box::new(What::Diagnostic(diagnostic)))
    }

    pub(crate) fn of_file(diagnostic: Diagnostic, copied: Copied) -> Error {
        Error(Box::new(What::OfFile(diagnostic, copied)))
    }

    pub(crate) fn of_call(operation: Operation, path: Option<&Path>, errno: Errno) -> Error {
        let path = path.map(Path::to_owned);
        Error(Box::new(What::Call { operation, path, errno }))
    }

    pub(crate) fn bad_glob(bad: BadGlob) -> Error {
        Error(Box::new(What::BadGlob(bad)))
    }

    pub(crate) fn handles_sigbus(variant: Variant) -> Error {
        Error(Box::new(What::HandlesSigbus(variant)))
    }

    /// What could not be done.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match &*self.0 {
            What::Diagnostic(diagnostic) | What::OfFile(diagnostic, _) => {
                facts(diagnostic).operation
            }
            What::Call { operation, .. } => *operation,
            What::BadGlob(_) | What::HandlesSigbus(_) => Operation::Prepare,
        }
    }

    /// The file. Of an error that concerns two files, the one that could not be read or written; the
    /// destination, if that is not known.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &*self.0 {
            What::Diagnostic(diagnostic) | What::OfFile(diagnostic, _) => facts(diagnostic).path,
            What::Call { path, .. } => path.as_deref(),
            What::BadGlob(bad) => bad.place.as_ref().map(|(path, _)| path.as_path()),
            What::HandlesSigbus(_) => None,
        }
    }

    /// The errno of the call that failed. For a rule of the copier it is the one that a system call
    /// would return for the same reason, such as EEXIST for a file that is not to be replaced, and
    /// ECANCELED for a copy that was cancelled.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match &*self.0 {
            What::Diagnostic(diagnostic) | What::OfFile(diagnostic, _) => {
                facts(diagnostic).errno.raw_os_error()
            }
            What::Call { errno, .. } => errno.raw_os_error(),
            What::BadGlob(_) | What::HandlesSigbus(_) => Errno::INVAL.raw_os_error(),
        }
    }

    /// The same as a value with the fields of its kind; `None` if the copy did not start.
    #[must_use]
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        match &*self.0 {
            What::Diagnostic(diagnostic) | What::OfFile(diagnostic, _) => Some(diagnostic),
            _ => None,
        }
    }

    /// What was copied before, if the error is that of [`copy_file`](crate::copy_file) or one of the functions
    /// beside it and the copy had started. The [`Report`](crate::Report) tells it of other copies.
    #[must_use]
    pub fn copied(&self) -> Option<Copied> {
        match &*self.0 {
            What::OfFile(_, copied) => Some(*copied),
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
            What::Diagnostic(diagnostic) | What::OfFile(diagnostic, _) => {
                let facts = facts(diagnostic);
                let reason = facts.reason.unwrap_or_else(|| words(facts.errno).into());
                line(f, facts.verb, facts.path, &reason)
            }
            What::Call { operation, path, errno } => {
                line(f, operation.verb(), path.as_deref(), &words(*errno))
            }
            What::BadGlob(BadGlob { place, glob, reason }) => {
                write!(f, "cannot use the pattern '{}'", glob.display())?;
                if let Some((path, number)) = place {
                    write!(f, " in line {number} of '{}'", path.display())?;
                }
                write!(f, ": {reason}")
            }
            What::HandlesSigbus(variant) => write!(
                f,
                "cannot use {variant}: it handles SIGBUS for the whole process, which was not allowed"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Error {
        Error::of(diagnostic)
    }
}

impl From<Error> for io::Error {
    /// With the kind of its errno.
    fn from(error: Error) -> io::Error {
        let kind = io::Error::from_raw_os_error(error.errno()).kind();
        io::Error::new(kind, error)
    }
}

fn line(f: &mut fmt::Formatter<'_>, verb: &str, path: Option<&Path>, reason: &str) -> fmt::Result {
    match path {
        Some(path) => write!(f, "cannot {verb} '{}': {reason}", path.display()),
        None => write!(f, "cannot {verb}: {reason}"),
    }
}

/// The words of strerror(3) without the number that the standard library appends.
fn words(errno: Errno) -> String {
    let text = io::Error::from(errno).to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}

impl Operation {
    fn verb(self) -> &'static str {
        match self {
            Operation::Look => "look at",
            Operation::Open => "open",
            Operation::List => "list",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Copy => "copy to",
            Operation::Clone => "clone to",
            Operation::Create => "create",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::SetAttribute => "set an attribute of",
            Operation::Sync => "sync",
            Operation::Close => "close",
            Operation::Verify => "verify",
            Operation::Check => "copy to",
            Operation::Finish => "finish",
            Operation::ReadProfile => "use the profile",
            Operation::Prepare => "start the copy",
        }
    }
}

/// What all diagnostics have.
struct Facts<'d> {
    operation: Operation,
    verb: &'static str,
    path: Option<&'d Path>,
    errno: Errno,
    /// In place of the words of the errno.
    reason: Option<Cow<'d, str>>,
}

fn of<'d>(operation: Operation, path: &'d Path, errno: Errno) -> Facts<'d> {
    Facts { operation, verb: operation.verb(), path: Some(path), errno, reason: None }
}

/// A rule of the copier, with the errno that a call would return for the same reason.
fn rule<'d>(path: &'d Path, errno: Errno, reason: impl Into<Cow<'d, str>>) -> Facts<'d> {
    Facts { reason: Some(reason.into()), ..of(Operation::Check, path, errno) }
}

fn with_reason<'d>(facts: Facts<'d>, reason: impl Into<Cow<'d, str>>) -> Facts<'d> {
    Facts { reason: Some(reason.into()), ..facts }
}

#[expect(clippy::too_many_lines, reason = "one arm for each diagnostic")]
fn facts(diagnostic: &Diagnostic) -> Facts<'_> {
    use Operation as Op;
    match diagnostic {
        Diagnostic::Failed { action, path, errno } => {
            let (operation, verb) = of_action(*action);
            Facts { verb, ..of(operation, path, *errno) }
        }
        Diagnostic::Copy { dst, errno, .. } => of(Op::Copy, dst, *errno),
        Diagnostic::Clone { dst, errno, .. } => of(Op::Clone, dst, *errno),
        Diagnostic::HardLink { dst, errno, .. } => {
            Facts { verb: "create the hard link", ..of(Op::Create, dst, *errno) }
        }
        Diagnostic::SymbolicLink { dst, errno, .. } => {
            Facts { verb: "create the symbolic link", ..of(Op::Create, dst, *errno) }
        }
        Diagnostic::Incomplete { dst, bytes, bytes_expected } => with_reason(
            Facts { verb: "complete", ..of(Op::Write, dst, Errno::IO) },
            format!("it has {bytes} of {bytes_expected} bytes"),
        ),
        Diagnostic::RangeFailed { dst } => with_reason(
            Facts { verb: "complete", ..of(Op::Write, dst, Errno::IO) },
            "another rank failed at a range of it",
        ),
        Diagnostic::Shrank { src, bytes, bytes_expected } => with_reason(
            of(Op::Read, src, Errno::IO),
            format!("it became shorter: {bytes} of {bytes_expected} bytes were copied"),
        ),
        Diagnostic::Changed { src } => with_reason(
            Facts { verb: "take a consistent copy of", ..of(Op::Read, src, Errno::AGAIN) },
            "it changed while it was copied",
        ),
        Diagnostic::Interrupted { dst, bytes } => with_reason(
            of(Op::Finish, dst, Errno::CANCELED),
            format!("the copy was cancelled; it has {bytes} bytes"),
        ),
        Diagnostic::InterruptedUnverified { dst } => with_reason(
            Facts { verb: "verify", ..of(Op::Finish, dst, Errno::CANCELED) },
            "the copy was cancelled",
        ),
        Diagnostic::InterruptedBefore { dst } => with_reason(
            of(Op::Finish, dst, Errno::CANCELED),
            "the copy was cancelled; the name was not changed",
        ),
        Diagnostic::Differs { dst, at, .. } => with_reason(
            of(Op::Verify, dst, Errno::IO),
            format!("it differs from its source at offset {at}"),
        ),
        Diagnostic::Unverifiable { path } => {
            with_reason(of(Op::Verify, path, Errno::SPIPE), "it cannot be read a second time")
        }
        Diagnostic::NameUnknown { dst } => {
            rule(dst, Errno::LOOP, "the target of the link has no name that a new file could take")
        }
        Diagnostic::NotTakenOver { dst, errno, .. } => {
            Facts { verb: "keep an attribute of", ..of(Op::SetAttribute, dst, *errno) }
        }
        Diagnostic::LeftOver { path, errno } => {
            Facts { verb: "remove the left-over", ..of(Op::Remove, path, *errno) }
        }
        Diagnostic::SourceReplaced { src } => with_reason(
            of(Op::Open, src, Errno::STALE),
            "it was replaced by another file during the copy",
        ),
        Diagnostic::DestinationReplaced { dst } => with_reason(
            of(Op::Open, dst, Errno::STALE),
            "it was replaced by another file during the copy",
        ),
        Diagnostic::DirectoryMoved { path } => {
            with_reason(of(Op::Open, path, Errno::STALE), "the directory was moved during the copy")
        }
        Diagnostic::OmittingDirectory { src } => Facts {
            verb: "copy",
            ..rule(src, Errno::ISDIR, "it is a directory, and the copy is not recursive")
        },
        Diagnostic::SameFile { dst, .. } => {
            rule(dst, Errno::INVAL, "source and destination are one file")
        }
        Diagnostic::IntoItself { dst, .. } => {
            rule(dst, Errno::INVAL, "a directory cannot be copied into itself")
        }
        Diagnostic::LocalToHost { path } => {
            rule(path, Errno::REMOTE, "it is on a local file system of this host")
        }
        Diagnostic::CyclicSymlink { src } => {
            Facts { verb: "copy", ..rule(src, Errno::LOOP, "it leads to a directory above it") }
        }
        Diagnostic::DirectoryInTheWay { dst, .. } => {
            rule(dst, Errno::ISDIR, "it is an existing directory")
        }
        Diagnostic::NonDirectoryInTheWay { dst, .. } => {
            rule(dst, Errno::NOTDIR, "it exists and is no directory")
        }
        Diagnostic::Record { dst, .. } => rule(dst, Errno::BUSY, "it is the record of the copy"),
        Diagnostic::SourceIsRecord { src } => {
            Facts { verb: "copy", ..rule(src, Errno::BUSY, "it is the record of the copy") }
        }
        Diagnostic::JustCreated { dst, .. } => {
            rule(dst, Errno::EXIST, "it was created by the same copy")
        }
        Diagnostic::JustCreatedSymlink { dst, .. } => {
            rule(dst, Errno::LOOP, "it is a symbolic link that was created by the same copy")
        }
        Diagnostic::ForeignSymlink { dst } => {
            rule(dst, Errno::LOOP, "it is a symbolic link of another user")
        }
        Diagnostic::DanglingSymlink { dst } => {
            rule(dst, Errno::LOOP, "it is a symbolic link to a file that does not exist")
        }
        Diagnostic::SourceTwice { src, .. } => {
            Facts { verb: "copy", ..rule(src, Errno::EXIST, "it is given twice") }
        }
        Diagnostic::DirectoryTwice { dst, .. } => {
            rule(dst, Errno::EXIST, "the directory was copied before, and has no hard links")
        }
        Diagnostic::BackupDestroysSource { dst, .. } => {
            rule(dst, Errno::BUSY, "its backup would replace the source")
        }
        Diagnostic::BackupDestroysCopy { dst, .. } => {
            rule(dst, Errno::BUSY, "its backup would replace a file of the same copy")
        }
        Diagnostic::RelativeSymlinkElsewhere { dst } => rule(
            dst,
            Errno::INVAL,
            "relative symbolic links can be created in the working directory only",
        ),
        Diagnostic::NotReplacing { dst } => rule(dst, Errno::EXIST, "it exists"),
        Diagnostic::UnknownKind { src } => {
            Facts { verb: "copy", ..rule(src, Errno::OPNOTSUPP, "its type is unknown") }
        }
        Diagnostic::Target { path, errno, .. } => {
            Facts { verb: "copy into", ..of(Op::Open, path, *errno) }
        }
        Diagnostic::ParentsNeedDirectory => Facts {
            path: None,
            ..rule(Path::new(""), Errno::NOTDIR, "whole names can be appended to a directory only")
        },
        Diagnostic::ParentNotDirectory { path } => {
            rule(path, Errno::NOTDIR, "it exists and is no directory")
        }
        Diagnostic::Xattr { name, dst, errno, .. } => with_reason(
            Facts { verb: "set an extended attribute of", ..of(Op::SetAttribute, dst, *errno) },
            format!("{}: {}", String::from_utf8_lossy(name), words(*errno)),
        ),
        Diagnostic::ProfileUnusable { path, problem } => {
            with_reason(of(Op::ReadProfile, path, Errno::INVAL), problem.to_string())
        }
        Diagnostic::ProfileLine { path, mistake } => {
            with_reason(of(Op::ReadProfile, path, Errno::INVAL), mistake.to_string())
        }
        Diagnostic::ProfileForeign { path } => with_reason(
            of(Op::ReadProfile, path, Errno::NOENT),
            "nothing in it was measured on this machine",
        ),
        Diagnostic::ProfileStale { changes } => Facts {
            path: None,
            ..with_reason(
                of(Op::ReadProfile, Path::new(""), Errno::STALE),
                format!("since it was measured: {}", changes.join(", ")),
            )
        },
    }
}

fn of_action(action: Action) -> (Operation, &'static str) {
    use Operation as Op;
    let verb = |operation: Op| (operation, operation.verb());
    match action {
        Action::Stat | Action::Fstat => verb(Op::Look),
        Action::ParentAttributes | Action::EnterDirectory | Action::EnterDestination => {
            verb(Op::Open)
        }
        Action::OpenForReading => (Op::Open, "open for reading"),
        Action::List => verb(Op::List),
        Action::ReadLink => (Op::Read, "read the symbolic link"),
        Action::Read => verb(Op::Read),
        Action::Write => verb(Op::Write),
        Action::Truncate => (Op::Write, "truncate"),
        Action::Extend => (Op::Write, "extend"),
        Action::Sync => verb(Op::Sync),
        Action::Close => verb(Op::Close),
        Action::CreateRegular => (Op::Create, "create the file"),
        Action::CreateDirectory | Action::CreateParent => (Op::Create, "create the directory"),
        Action::CreateSymlink => (Op::Create, "create the symbolic link"),
        Action::CreateFifo => (Op::Create, "create the fifo"),
        Action::CreateSpecial => (Op::Create, "create the special file"),
        Action::Replace => (Op::Rename, "replace"),
        Action::Remove => verb(Op::Remove),
        Action::Backup => (Op::Rename, "back up"),
        Action::UnBackup => (Op::Rename, "restore from its backup"),
        Action::Ownership => (Op::SetAttribute, "set the owner of"),
        Action::Permissions => (Op::SetAttribute, "set the permissions of"),
        Action::Times => (Op::SetAttribute, "set the times of"),
        Action::Context => (Op::SetAttribute, "set the security context of"),
    }
}
