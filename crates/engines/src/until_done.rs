//! The one loop for short counts, interruptions and zeros. Every engine that makes one call after
//! another goes through it, so that no engine can forget a case.

use rustix::io::{self, Errno};

use crate::moved::{Moved, Side, Stop, is_refusal};
use crate::span::{Pair, Pos, Span};

/// What one step of an engine came to: bytes that reached the destination, and what cut the step
/// short, if anything did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) bytes: usize,
    pub(crate) halt: Option<Halt>,
}

/// What cut a step short.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Halt {
    /// A `read` returned 0: the source has ended.
    Eof,
    /// A call other than `read` moved nothing, which proves nothing: /proc files report length 0
    /// to the kernel's copy calls and yet can be read.
    Zero,
    /// A call failed. Nothing of the source is lost: what was not written can be read again.
    Error { side: Side, errno: Errno },
    /// A call failed and bytes taken from a source that cannot be read twice went with it.
    Lost { side: Side, errno: Errno },
}

impl Step {
    pub(crate) fn moved(bytes: usize) -> Step {
        Step { bytes, halt: None }
    }

    pub(crate) fn halted(halt: Halt) -> Step {
        Step { bytes: 0, halt: Some(halt) }
    }

    /// The step that a call serving both sides at once has made: a count, zero or an error.
    pub(crate) fn of_one_call(result: io::Result<usize>, side: Side) -> Step {
        match result {
            Ok(0) => Step::halted(Halt::Zero),
            Ok(bytes) => Step::moved(bytes),
            Err(errno) => Step::halted(Halt::Error { side, errno }),
        }
    }
}

/// Whether an engine's own errors may be refusals, or are always failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errors {
    /// Errors that [`is_refusal`] knows let the next engine try.
    MayRefuse,
    /// The engine uses nothing that a file could lack; its errors are the file's.
    AlwaysFail,
}

/// Calls `step` with what is left of `span`, at most `step_bytes_max` at a time, until the span is
/// done or something ends it.
///
/// # Panics
/// When a step claims more bytes than it was asked for.
pub(crate) fn until_done(
    pair: Pair<'_>,
    span: Span,
    step_bytes_max: usize,
    errors: Errors,
    mut step: impl FnMut(Pos, Pos, usize) -> Step,
) -> Moved {
    let mut bytes = 0;
    while bytes < span.len {
        let left = span.after(bytes);
        let want = usize::try_from(left.len).unwrap_or(usize::MAX).min(step_bytes_max);
        let Step { bytes: stepped, halt } = step(left.src, left.dst, want);
        assert!(stepped <= want, "a step moved {stepped} bytes of {want}");
        bytes += stepped as u64;
        let stop = match halt {
            None if stepped > 0 => continue,
            Some(Halt::Error { errno: Errno::INTR, .. }) => continue,
            Some(Halt::Eof) => Stop::Eof,
            None | Some(Halt::Zero) => {
                let doubted = doubt_zero(pair, span.after(bytes));
                bytes += doubted.bytes;
                doubted.stop
            }
            Some(Halt::Error { errno, .. }) if errors == Errors::MayRefuse && is_refusal(errno) => {
                Stop::Refused(errno)
            }
            Some(Halt::Error { side, errno } | Halt::Lost { side, errno }) => {
                Stop::Failed { side, errno }
            }
        };
        return Moved { bytes, stop };
    }
    Moved { bytes, stop: Stop::Done }
}

/// Settles what a zero from a call other than `read` meant, by reading. Bytes that do come are
/// written, since a pipe would not give them twice; the engine has then been shown to be blind to
/// them and refuses the rest.
pub(crate) fn doubt_zero(pair: Pair<'_>, left: Span) -> Moved {
    let mut buffer = [0; 4096];
    let want = usize::try_from(left.len).unwrap_or(usize::MAX).min(buffer.len());
    loop {
        let step = read_then_write(pair, left.src, left.dst, &mut buffer[..want]);
        let stop = match step.halt {
            Some(Halt::Error { errno: Errno::INTR, .. }) if step.bytes == 0 => continue,
            Some(Halt::Error { side, errno } | Halt::Lost { side, errno }) => {
                Stop::Failed { side, errno }
            }
            Some(Halt::Eof | Halt::Zero) => Stop::Eof,
            None if step.bytes as u64 == left.len => Stop::Done,
            None => Stop::Refused(Errno::OPNOTSUPP),
        };
        return Moved { bytes: step.bytes as u64, stop };
    }
}

/// One `read` into `buffer`, and as many `write`s as it takes to pass on what came.
pub(crate) fn read_then_write(pair: Pair<'_>, src: Pos, dst: Pos, buffer: &mut [u8]) -> Step {
    match read_at(pair, src, buffer) {
        Ok(0) => Step::halted(Halt::Eof),
        Ok(got) => pass_on(pair, src, dst, &buffer[..got], |bytes, dst| write_at(pair, bytes, dst)),
        Err(errno) => Step::halted(Halt::Error { side: Side::Src, errno }),
    }
}

/// `pread`, or `read` at the cursor.
pub(crate) fn read_at(pair: Pair<'_>, src: Pos, buffer: &mut [u8]) -> io::Result<usize> {
    match src {
        Pos::At(offset) => io::pread(pair.src, buffer, offset),
        Pos::Here => io::read(pair.src, buffer),
    }
}

/// `pwrite`, or `write` at the cursor.
pub(crate) fn write_at(pair: Pair<'_>, bytes: &[u8], dst: Pos) -> io::Result<usize> {
    match dst {
        Pos::At(offset) => io::pwrite(pair.dst, bytes, offset),
        Pos::Here => io::write(pair.dst, bytes),
    }
}

/// Writes all of `taken`, bytes that were just read from `src`, at `dst`. When a write fails, the
/// source's cursor is put back to the first byte not written; where it cannot be, those are lost.
pub(crate) fn pass_on(
    pair: Pair<'_>,
    src: Pos,
    dst: Pos,
    taken: &[u8],
    write: impl FnMut(&[u8], Pos) -> io::Result<usize>,
) -> Step {
    let (written, result) = write_all(taken, dst, write);
    let Err(errno) = result else { return Step::moved(written) };
    Step { bytes: written, halt: Some(after_failed_write(pair, src, taken.len() - written, errno)) }
}

/// The halt for a write that failed while `unwritten` bytes taken from `src` were in hand.
pub(crate) fn after_failed_write(pair: Pair<'_>, src: Pos, unwritten: usize, errno: Errno) -> Halt {
    if put_back(pair, src, unwritten) {
        Halt::Error { side: Side::Dst, errno }
    } else {
        Halt::Lost { side: Side::Dst, errno }
    }
}

/// Has the source give its last `bytes` once more. False where it cannot: a pipe or a socket.
pub(crate) fn put_back(pair: Pair<'_>, src: Pos, bytes: usize) -> bool {
    match src {
        Pos::At(_) => true,
        Pos::Here => {
            let back = i64::try_from(bytes).expect("a buffer is smaller than 8 EiB");
            rustix::fs::seek(pair.src, rustix::fs::SeekFrom::Current(-back)).is_ok()
        }
    }
}

/// Writes all of `bytes` from `dst` on, over short counts and interruptions. Returns how many were
/// written, and the error that ended it. A write that takes nothing is an I/O error: it would be
/// asked for ever.
pub(crate) fn write_all(
    bytes: &[u8],
    dst: Pos,
    mut write: impl FnMut(&[u8], Pos) -> io::Result<usize>,
) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match write(&bytes[written..], dst.advanced(written as u64)) {
            Ok(0) => return (written, Err(Errno::IO)),
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(errno) => return (written, Err(errno)),
        }
    }
    (written, Ok(()))
}
