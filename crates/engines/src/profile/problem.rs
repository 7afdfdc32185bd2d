//! Why a profile cannot be used.

use rustix::io::Errno;

use super::choices::VERSION;

/// Why a file cannot be used as a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It cannot be opened or read.
    #[error("{0}")]
    Errno(Errno),
    /// It is a directory, a fifo or the like.
    #[error("it is no regular file")]
    NotAFile,
    /// It is longer than any profile.
    #[error("it is longer than {LONGEST_BYTES} bytes")]
    TooLong,
    /// It is not of this version.
    #[error("version {0} is not known here, expected {VERSION}")]
    Version(i64),
    /// It is not written as it should be.
    #[error(transparent)]
    Mistake(#[from] Mistake),
}

/// What is wrong with a line of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub problem: String,
}

/// The longest profile, in bytes: several hundred pairs of file systems.
pub(super) const LONGEST_BYTES: u64 = 8 << 20;
