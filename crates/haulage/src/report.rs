//! What a copy has done, also if it failed.

use std::fmt;
use std::io;
use std::time::Duration;

use engines::Errno;
use tree::ProgressTracker;

use crate::error::Error;
use crate::totals::{Kind, Outcome, RunTotals};

/// How many errors, and how many warnings, a [`Report`] keeps. Further ones are counted.
pub const ERRORS_KEPT_MAX: usize = 1000;

/// What a copy has done.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Entries by type and outcome, bytes, and the variants of engines that moved them.
    pub totals: RunTotals,
    /// The duration of the copy.
    pub elapsed: Duration,
    /// The first [`ERRORS_KEPT_MAX`] errors, in the order in which they occurred.
    pub failures: Vec<Error>,
    /// All errors. An entry that fails may have two: what failed, and how much its copy has.
    pub failure_count: u64,
    /// The first [`ERRORS_KEPT_MAX`] warnings: the copy is as asked for all the same.
    pub warnings: Vec<Error>,
    /// Errors for which a callback returned [`Control::Skip`](crate::Control::Skip).
    pub skipped_errors: u64,
    pub(crate) tracker: ProgressTracker,
}

impl Report {
    /// Regular files that were copied. Hard links among copies count as linked, not as copied.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.totals.count(Kind::File, Outcome::Copied)
    }

    /// Bytes of data that the kernel has now still to write to the medium, at most: it counts dirty pages of
    /// all programs together. 0 if the copy waited for them (`durable`, `verify`, `no_cache`), and on file
    /// systems of which the kernel does not know. `syncfs` of the destination waits for them.
    #[must_use]
    pub fn unwritten_bytes(&self) -> u64 {
        self.tracker.progress().unwritten_bytes
    }

    /// Bytes of data that were moved or shared, without holes.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.totals.data_bytes
    }
}

/// A copy that is not complete: an entry failed, or it was cancelled. What was done, and every error,
/// is in the report.
#[derive(Clone, Debug)]
pub struct CopyFailed {
    /// What was done.
    pub report: Box<Report>,
    /// The copy was cancelled, by its token or by a callback.
    pub cancelled: bool,
}

impl CopyFailed {
    /// The first error, if there is one: a copy that was cancelled between two files has none.
    #[must_use]
    pub fn first(&self) -> Option<&Error> {
        self.report.failures.first()
    }
}

impl fmt::Display for CopyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first(), self.report.failure_count) {
            (None, _) => f.write_str("the copy was cancelled"),
            (Some(first), 0 | 1) => first.fmt(f),
            (Some(first), count) => write!(f, "{first} (and {} more errors)", count - 1),
        }
    }
}

impl std::error::Error for CopyFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.first().map(|first| first as _)
    }
}

impl From<CopyFailed> for io::Error {
    /// With the kind of the first error; with that of ECANCELED, if there is none. It is not
    /// [`Interrupted`](io::ErrorKind::Interrupted), after which programs repeat a call.
    fn from(failed: CopyFailed) -> io::Error {
        let errno = failed.first().map_or(Errno::CANCELED.raw_os_error(), Error::errno);
        io::Error::new(io::Error::from_raw_os_error(errno).kind(), failed)
    }
}
