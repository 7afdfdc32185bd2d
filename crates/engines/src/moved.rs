//! The outcome of a span: the exact bytes, why it stopped, and on which side.

use std::io;

use rustix::io::Errno;

/// The descriptor that an error belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Reading the source failed.
    Src,
    /// Writing the destination failed.
    Dst,
    /// One call served both sides, and its errno does not say which one failed.
    Pair,
}

/// Why an engine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The whole span was moved.
    Done,
    /// The source ended before the span did. A `read` that returned 0 proved it.
    Eof,
    /// This engine cannot continue here; another may. Exactly the reported bytes were read and
    /// written. Workers and rings may have written later parts of the span; the next engine writes
    /// those again.
    Refused(Errno),
    /// An error that ends the copy. The reported bytes are written. Later bytes of the destination
    /// are unspecified.
    Failed {
        /// The side on which it occurred.
        side: Side,
        /// The error of the call that failed.
        errno: Errno,
    },
}

impl Stop {
    /// The reason as a word for programs, as in receipts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Stop::Done => "done",
            Stop::Eof => "eof",
            Stop::Refused(_) => "refused",
            Stop::Failed { .. } => "failed",
        }
    }

    /// The error that stopped the engine; `None` if it was no error.
    #[must_use]
    pub fn errno(self) -> Option<Errno> {
        match self {
            Stop::Done | Stop::Eof => None,
            Stop::Refused(errno) | Stop::Failed { errno, .. } => Some(errno),
        }
    }
}

/// The outcome of moving a span. The count is exact: that many bytes, from the start of the span
/// and without a gap, were read from the source and accepted by the destination.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Bytes moved.
    pub bytes: u64,
    /// Why it stopped.
    pub stop: Stop,
}

impl Moved {
    /// Refused with `errno` before any byte was moved.
    pub fn refused(errno: Errno) -> Moved {
        Moved { bytes: 0, stop: Stop::Refused(errno) }
    }

    /// Failed with `errno` on `side` before any byte was moved.
    pub fn failed(side: Side, errno: Errno) -> Moved {
        Moved { bytes: 0, stop: Stop::Failed { side, errno } }
    }
}

/// Whether `errno` means that this technique does not work on these files, rather than that data is
/// at risk. Only such an error lets another engine try. EIO, ENOSPC, EDQUOT, ESTALE and the like
/// end the copy.
#[must_use]
pub fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        // The kernel lacks the call, or the file system lacks the operation.
        Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOTTY
        // The two files are not on one file system or, for a clone, not on one volume.
        | Errno::XDEV
        // The call does not accept the alignment, the file type or the flags.
        | Errno::INVAL | Errno::SPIPE
        // Seccomp filters return EPERM for calls that they do not know.
        | Errno::PERM
        // copy_file_range: a swap file.
        | Errno::TXTBSY
        // copy_file_range: O_APPEND on the destination.
        | Errno::BADF
    )
}

/// Why an engine stops that got `errno` on `side`. Every byte that it read and did not write can be
/// read from the source again.
pub(crate) fn stop_for(side: Side, errno: Errno) -> Stop {
    if is_refusal(errno) { Stop::Refused(errno) } else { Stop::Failed { side, errno } }
}

/// Whether a refusal holds for every further file of the same two file systems, so that another
/// attempt is a wasted call. An engine must not return these errors for a property of a single
/// file.
#[must_use]
pub fn refuses_for_good(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOTTY | Errno::XDEV)
}

/// The error of a copier that did not start.
pub(crate) fn errno_of(error: &io::Error) -> Errno {
    let named = match error.kind() {
        io::ErrorKind::OutOfMemory => Errno::NOMEM,
        io::ErrorKind::InvalidInput => Errno::INVAL,
        _ => Errno::OPNOTSUPP,
    };
    Errno::from_io_error(error).unwrap_or(named)
}
