//! The errors of the lab, with the path or the variant that each is about.

use std::path::PathBuf;

use engines::{Errno, Side, describe};

/// Why an experiment could not be carried out, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call on a file of the source failed.
    #[error("{action} '{}': {}", .path.display(), describe(*.errno))]
    Path {
        /// What was being done, as "cannot open".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },
    /// No directory for the lab's own files can be made.
    #[error(
        "cannot create a directory in '{}': {}; {}",
        .dir.display(), describe(*.errno), instead_of(*.errno)
    )]
    NoScratch {
        /// The directory that the user named.
        dir: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },
    /// The source has no bytes.
    #[error("there is nothing to copy: '{}' {why}", .path.display())]
    Empty {
        /// The source.
        path: PathBuf,
        /// What is missing: a verb phrase that continues the path.
        why: &'static str,
    },
    /// The source was changed under the experiment.
    #[error("'{}' changed during the race, which makes its figures worthless", .0.display())]
    SourceChanged(PathBuf),
    /// The destination's file system is too full.
    #[error(
        "not enough room in '{}': {} are needed and {} are free; make room, or name a directory on another \
         file system",
        .dir.display(), crate::words::bytes(*.needed_bytes), crate::words::bytes(*.free_bytes)
    )]
    NoSpace {
        /// The destination directory.
        dir: PathBuf,
        /// What the race needs there.
        needed_bytes: u64,
        /// What is there.
        free_bytes: u64,
    },
    /// A copy failed with a real error, which is no sample.
    #[error("{variant} failed {}: {}", side_words(*.side), describe(*.errno))]
    CopyFailed {
        /// The variant.
        variant: String,
        /// The side it happened on.
        side: Side,
        /// What the kernel said.
        errno: Errno,
    },
    /// A copy differs from its source: the experiment is worthless and the engine has a bug.
    #[error("{variant} copied wrongly: its copy of '{}' {how}; the race is void", .path.display())]
    WrongCopy {
        /// The variant.
        variant: String,
        /// The source file.
        path: PathBuf,
        /// What differs.
        how: String,
    },
    /// What a variant made is not what it has to be.
    #[error("{variant} is wrong: {how}; the experiment is void")]
    Wrong {
        /// The variant.
        variant: String,
        /// What is wrong.
        how: String,
    },
    /// A command that was to be measured did not do its work.
    #[error("'{command}' {how}{}", said(.words))]
    Command {
        /// The line of the command.
        command: String,
        /// How it ended.
        how: String,
        /// What it said.
        words: String,
    },
    /// What is explained by its words alone.
    #[error("{0}")]
    Unknown(String),
    /// No variant was left to race.
    #[error("none of the variants works here: {0}")]
    NothingToRace(String),
}

impl Error {
    pub(crate) fn path<E: Into<std::io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Error {
        let path = path.into();
        move |error| {
            let errno = Errno::from_io_error(&error.into()).unwrap_or(Errno::IO);
            Error::Path { action, path, errno }
        }
    }
}

/// What a user can do where no directory can be made.
fn instead_of(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => "name a directory that you may write to",
        Errno::NOSPC | Errno::DQUOT => "make room there, or name one on another file system",
        _ => "name a directory that takes new files",
    }
}

fn said(words: &str) -> String {
    match words.trim() {
        "" => String::new(),
        words => format!(": {words}"),
    }
}

fn side_words(side: Side) -> &'static str {
    match side {
        Side::Src => "reading",
        Side::Dst => "writing",
        Side::Pair => "copying",
    }
}
