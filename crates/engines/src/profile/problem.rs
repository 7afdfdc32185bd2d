//! Why a profile cannot be used.

use rustix::io::Errno;

use super::choices::VERSION;

/// Why a file cannot be used as a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be opened or read.
    #[error("{0}")]
    Errno(Errno),
    /// The file is a directory, a fifo or the like.
    #[error("it is no regular file")]
    NotAFile,
    /// The file is longer than the maximum, 8 MiB.
    #[error("it is longer than {LONGEST_BYTES} bytes")]
    TooLong,
    /// The profile has another version.
    #[error("version {0} is not known here, expected {VERSION}")]
    Version(i64),
    /// The profile has an error in a line.
    #[error(transparent)]
    Mistake(#[from] Mistake),
}

/// An error in a line of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Mistake {
    /// The number of the line, from 1.
    pub line: usize,
    /// The error, and what was expected.
    pub problem: String,
}

/// The maximum length of a profile in bytes: several hundred pairs of file systems.
pub(super) const LONGEST_BYTES: u64 = 8 << 20;
