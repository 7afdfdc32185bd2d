//! What happened to a span: the exact bytes, why it stopped, and on which side.

use rustix::io::Errno;

/// The descriptor that an error belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Reading the source failed.
    Src,
    /// Writing the destination failed.
    Dst,
    /// One call served both sides and its errno does not say which failed.
    Pair,
}

/// Why an engine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The whole span was moved.
    Done,
    /// The source ended before the span did, proved by a `read` that returned 0.
    Eof,
    /// This engine cannot go on here, yet another may: exactly the bytes reported were taken from
    /// the source and written to the destination. Within the span, beyond those, workers and rings
    /// may have written some already; whoever goes on writes them once more.
    Refused(Errno),
    /// A real error. The bytes reported are written; nothing is known of what lies beyond.
    Failed {
        /// The side it happened on.
        side: Side,
        /// The error of the call that failed.
        errno: Errno,
    },
}

/// The outcome of moving a span. The count is exact: those bytes, counted from the span's start
/// and without a gap, were taken from the source and accepted by the destination.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Bytes moved.
    pub bytes: u64,
    /// Why it went no further.
    pub stop: Stop,
}

impl Moved {
    /// Refused by `errno` before anything was moved.
    pub fn refused(errno: Errno) -> Moved {
        Moved { bytes: 0, stop: Stop::Refused(errno) }
    }

    /// Failed with `errno` on `side` before anything was moved.
    pub fn failed(side: Side, errno: Errno) -> Moved {
        Moved { bytes: 0, stop: Stop::Failed { side, errno } }
    }
}

/// Whether `errno` says "not this way, not here" rather than "your data is in danger": only such an
/// error lets another engine try. EIO, ENOSPC, EDQUOT, ESTALE and the like end the copy.
#[must_use]
pub fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        // The kernel lacks the call, or the file system has no such operation.
        Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOTTY
        // The two files do not share a file system (or, for a clone, a volume).
        | Errno::XDEV
        // Alignment, file kind or flags that this call does not take.
        | Errno::INVAL | Errno::SPIPE
        // Seccomp filters answer EPERM for calls they do not know.
        | Errno::PERM
        // A swap file, for copy_file_range.
        | Errno::TXTBSY
        // O_APPEND on the destination, for copy_file_range.
        | Errno::BADF
    )
}

/// Why an engine stops that met `errno` on `side`, with every byte it took from the source and has not
/// written still there to be read again.
pub(crate) fn stop_for(side: Side, errno: Errno) -> Stop {
    if is_refusal(errno) { Stop::Refused(errno) } else { Stop::Failed { side, errno } }
}

/// Whether a refusal holds for every further file of the same two file systems, so that asking
/// again is a wasted call. An engine that met a trait of one file must not give these.
#[must_use]
pub fn refuses_for_good(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOTTY | Errno::XDEV)
}
