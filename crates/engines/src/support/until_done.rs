//! The one loop for short counts, interruptions and zeros. Every engine that repeats one call uses
//! it, so that no engine omits a case.

use std::os::fd::BorrowedFd;

use rustix::io::{self, Errno};

use crate::moved::{Moved, Side, Stop, is_refusal};
use crate::span::{Pair, Pos, Span};
use sys::Page;

/// The most bytes that one call moves. Linux truncates every read, write and kernel copy to this
/// (MAX_RW_COUNT, read(2)), or with larger pages than 4 KiB to a whole number of those.
pub const CALL_BYTES_MAX: u64 = 0x7fff_f000;

/// The result of one step of an engine: the bytes that reached the destination, and the reason if
/// the step stopped early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) bytes: usize,
    pub(crate) halt: Option<Halt>,
}

/// Why a step stopped early.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Halt {
    /// A `read` returned 0: end of file.
    Eof,
    /// A call other than `read` moved 0 bytes. This does not prove the end of the file: /proc files
    /// report length 0 to the kernel's copy calls and can still be read.
    Zero,
    /// A call failed. No bytes of the source are lost: those that were not written can be read
    /// again.
    Error { side: Side, errno: Errno },
    /// The engine lacks what it needs for this file, whatever the errno: another engine may work.
    /// No bytes were read and left unwritten.
    Unfit(Errno),
    /// A call failed, and bytes were lost that had been read from a source that cannot be read
    /// twice.
    Lost { side: Side, errno: Errno },
}

impl Step {
    pub(crate) fn moved(bytes: usize) -> Step {
        Step { bytes, halt: None }
    }

    pub(crate) fn halted(halt: Halt) -> Step {
        Step { bytes: 0, halt: Some(halt) }
    }

    /// The step made by one call that serves both sides: a count, zero or an error.
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
    /// Errors that [`is_refusal`] accepts let the next engine try.
    MayRefuse,
    /// The engine needs nothing that a file could lack. Its errors are those of the file.
    AlwaysFail,
}

/// Calls `step` with the rest of `span`, at most `step_bytes_max` at a time, until the span is done
/// or a step stops it.
///
/// # Panics
/// If a step claims more bytes than were requested.
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
        pair.count(stepped);
        let stop = match halt {
            None if stepped > 0 => continue,
            Some(Halt::Error { errno: Errno::INTR, .. }) => continue,
            // The span is complete, whatever stopped the step.
            Some(Halt::Eof | Halt::Zero) if bytes == span.len => Stop::Done,
            Some(Halt::Eof) => Stop::Eof,
            None | Some(Halt::Zero) => {
                let doubted = doubt_zero(pair, span.after(bytes));
                bytes += doubted.bytes;
                pair.count(usize::try_from(doubted.bytes).unwrap_or(0));
                doubted.stop
            }
            Some(Halt::Unfit(errno)) => Stop::Refused(errno),
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

/// Determines by a `read` what a zero from another call meant. Bytes that are read are also
/// written, because a pipe would not return them again. They prove that the engine cannot see them,
/// so it refuses the rest.
pub(crate) fn doubt_zero(pair: Pair<'_>, left: Span) -> Moved {
    let mut page = Page::zeros();
    let buffer = &mut page.0;
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
            // EINVAL, because the engine cannot see the content or the growth of this file only.
            None | Some(Halt::Unfit(_)) => Stop::Refused(Errno::INVAL),
        };
        return Moved { bytes: step.bytes as u64, stop };
    }
}

/// One `read` into `buffer`, and as many `write`s as the bytes need.
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

/// Writes all of `taken`, bytes that were just read from `src`, at `dst`. If a write fails, the
/// source's cursor is moved back to the first byte not written. If it cannot be moved, those bytes
/// are lost.
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

/// The halt for a write that failed while `unwritten` bytes read from `src` were in memory.
pub(crate) fn after_failed_write(pair: Pair<'_>, src: Pos, unwritten: usize, errno: Errno) -> Halt {
    if put_back(pair, src, unwritten) {
        Halt::Error { side: Side::Dst, errno }
    } else {
        Halt::Lost { side: Side::Dst, errno }
    }
}

/// Moves the source back by `bytes`, so that they can be read again. False if it cannot: a pipe or
/// a socket.
pub(crate) fn put_back(pair: Pair<'_>, src: Pos, bytes: usize) -> bool {
    match src {
        Pos::At(_) => true,
        Pos::Here => {
            let back = i64::try_from(bytes).expect("a buffer is smaller than 8 EiB");
            rustix::fs::seek(pair.src, rustix::fs::SeekFrom::Current(-back)).is_ok()
        }
    }
}

/// Reads at `offset` of `src` until `buffer` is full or the file ends. Repeats short and
/// interrupted calls. Returns how many bytes were read.
///
/// # Errors
/// Those of pread(2). `buffer` then contains the bytes read before, whose number is not returned.
pub fn pread_full(src: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match io::pread(src, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

/// Writes all of `bytes` at `offset` of `dst`. Repeats short and interrupted calls. Returns how
/// many were written, and the error that stopped it.
pub fn pwrite_all(dst: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> (usize, io::Result<()>) {
    let mut at = offset;
    write_all(bytes, Pos::At(offset), |bytes, _| {
        let count = io::pwrite(dst, bytes, at)?;
        at += count as u64;
        Ok(count)
    })
}

/// Writes all of `bytes` from `dst` on. Repeats short and interrupted calls. Returns how many were
/// written, and the error that stopped it. A write that returns 0 is an I/O error: it would be
/// repeated without end.
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    const NOSPC: Halt = Halt::Error { side: Side::Dst, errno: Errno::NOSPC };
    const XDEV: Halt = Halt::Error { side: Side::Pair, errno: Errno::XDEV };
    const INTR: Halt = Halt::Error { side: Side::Src, errno: Errno::INTR };

    fn file_of(len: usize) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&testfs::random_bytes(len, 1), 0).unwrap();
        file
    }

    fn part(bytes: usize, halt: Halt) -> Step {
        Step { bytes, halt: Some(halt) }
    }

    /// Runs `script`, one step for each call, on a span of 30 bytes of a source of `src_len`, 10
    /// bytes at a time. Panics if there are more calls than steps.
    fn run(src_len: usize, errors: Errors, script: &[Step]) -> Moved {
        let (src, dst) = (file_of(src_len), file_of(0));
        let mut script = script.iter();
        let mut moved = 0;
        let pair = Pair::new(src.as_fd(), dst.as_fd());
        let span = Span { src: Pos::At(5), dst: Pos::At(7), len: 30 };
        let outcome = until_done(pair, span, 10, errors, |src, dst, want| {
            assert_eq!((src, dst), (Pos::At(5 + moved), Pos::At(7 + moved)));
            assert_eq!(want as u64, 10.min(30 - moved));
            let step = *script.next().expect("a step after the last");
            moved += step.bytes as u64;
            step
        });
        assert!(script.next().is_none(), "a step was never asked for");
        outcome
    }

    #[test]
    fn scripts() {
        let (moved, halted) = (Step::moved, Step::halted);
        let failed = |side, errno| Stop::Failed { side, errno };
        let cases: &[(&str, usize, &[Step], u64, Stop)] = &[
            ("whole", 35, &[moved(10), moved(10), moved(10)], 30, Stop::Done),
            ("short", 35, &[moved(1), moved(10), moved(9), moved(8), moved(2)], 30, Stop::Done),
            (
                "interrupted",
                35,
                &[halted(INTR), moved(10), halted(INTR), part(3, INTR), moved(10), moved(7)],
                30,
                Stop::Done,
            ),
            ("ended", 15, &[moved(10), halted(Halt::Eof)], 10, Stop::Eof),
            ("ended in a step", 19, &[moved(10), part(4, Halt::Eof)], 14, Stop::Eof),
            ("a true zero", 15, &[moved(10), halted(Halt::Zero)], 10, Stop::Eof),
            // A read finds the rest, which fits in the buffer of `doubt_zero`.
            ("a false zero", 35, &[moved(10), halted(Halt::Zero)], 30, Stop::Done),
            ("nothing at all", 35, &[moved(0)], 30, Stop::Done),
            ("zero, part there", 25, &[halted(Halt::Zero)], 20, Stop::Refused(Errno::INVAL)),
            ("zero at the end", 35, &[moved(10), moved(10), part(10, Halt::Zero)], 30, Stop::Done),
            ("end at the end", 35, &[moved(10), moved(10), part(10, Halt::Eof)], 30, Stop::Done),
            ("failed", 35, &[moved(9), halted(NOSPC)], 9, failed(Side::Dst, Errno::NOSPC)),
            ("failed in a step", 35, &[part(9, NOSPC)], 9, failed(Side::Dst, Errno::NOSPC)),
            (
                "unfit",
                35,
                &[moved(9), halted(Halt::Unfit(Errno::MFILE))],
                9,
                Stop::Refused(Errno::MFILE),
            ),
            ("refused", 35, &[moved(10), part(4, XDEV)], 14, Stop::Refused(Errno::XDEV)),
            (
                "lost",
                35,
                &[moved(10), part(4, Halt::Lost { side: Side::Dst, errno: Errno::XDEV })],
                14,
                failed(Side::Dst, Errno::XDEV),
            ),
        ];
        for (case, src_len, script, bytes, stop) in cases {
            let expected = Moved { bytes: *bytes, stop: *stop };
            assert_eq!(run(*src_len, Errors::MayRefuse, script), expected, "{case}");
        }
    }

    #[test]
    fn each_errno_at_each_call() {
        for errno in (1..=133).map(Errno::from_raw_os_error).filter(|&e| e != Errno::INTR) {
            for call in 0..3 {
                for side in [Side::Src, Side::Dst, Side::Pair] {
                    let mut script = vec![Step::moved(9); call];
                    script.push(Step::halted(Halt::Error { side, errno }));
                    let bytes = 9 * call as u64;
                    let failed = Moved { bytes, stop: Stop::Failed { side, errno } };
                    let refused = Moved { bytes, stop: Stop::Refused(errno) };
                    let either = if is_refusal(errno) { refused } else { failed };
                    assert_eq!(run(35, Errors::MayRefuse, &script), either, "{errno:?}");
                    assert_eq!(run(35, Errors::AlwaysFail, &script), failed, "{errno:?}");
                }
            }
        }
    }

    #[test]
    fn errors_that_endanger_data_are_no_refusals() {
        for errno in [
            Errno::IO,
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::STALE,
            Errno::FBIG,
            Errno::ROFS,
            Errno::PIPE,
            Errno::CONNRESET,
            Errno::NOMEM,
            Errno::TIMEDOUT,
        ] {
            assert!(!is_refusal(errno), "{errno:?}");
        }
    }

    #[test]
    fn a_zero_that_is_checked_loses_no_bytes() {
        let (src, dst) = (file_of(10_000), file_of(0));
        let pair = Pair::new(src.as_fd(), dst.as_fd());
        let moved = doubt_zero(pair, Span::at(1000, 9000));
        assert_eq!(moved, Moved { bytes: 4096, stop: Stop::Refused(Errno::INVAL) });
        let (mut right, mut found) = ([0; 4096], [1; 4096]);
        src.read_exact_at(&mut right, 1000).unwrap();
        dst.read_exact_at(&mut found, 1000).unwrap();
        assert_eq!(found, right);
        assert_eq!(
            doubt_zero(pair, Span::at(10_000, 5)),
            Moved { bytes: 0, stop: Stop::Eof },
            "past the end"
        );
        let full = File::options().write(true).open("/dev/full").unwrap();
        let pair = Pair::new(src.as_fd(), full.as_fd());
        assert_eq!(doubt_zero(pair, Span::whole(5)), Moved::failed(Side::Dst, Errno::NOSPC));
    }

    #[test]
    fn bytes_of_a_pipe_that_cannot_be_written_are_lost() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"once only").unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let pair = Pair::new(reader.as_fd(), full.as_fd());
        let step = read_then_write(pair, Pos::Here, Pos::Here, &mut [0; 100]);
        assert_eq!(step.bytes, 0);
        let lost = Some(Halt::Lost { side: Side::Dst, errno: Errno::NOSPC });
        assert_eq!(format!("{:?}", step.halt), format!("{lost:?}"));
    }

    #[test]
    fn writes_continue_until_all_bytes_are_written() {
        type Answers = &'static [io::Result<usize>];
        let cases: &[(Answers, usize, io::Result<()>)] = &[
            (&[Ok(10)], 10, Ok(())),
            (&[Ok(1), Err(Errno::INTR), Ok(4), Ok(5)], 10, Ok(())),
            (&[Ok(3), Ok(0)], 3, Err(Errno::IO)),
            (&[Err(Errno::NOSPC)], 0, Err(Errno::NOSPC)),
            (&[Ok(9), Err(Errno::DQUOT)], 9, Err(Errno::DQUOT)),
        ];
        for (answers, written, result) in cases {
            let mut answers = answers.iter();
            let mut taken = 0;
            let outcome = write_all(b"0123456789", Pos::At(40), |bytes, pos| {
                assert_eq!(bytes, &b"0123456789"[taken..]);
                assert_eq!(pos, Pos::At(40 + taken as u64));
                let answer = *answers.next().expect("a write after the last");
                taken += answer.unwrap_or(0);
                answer
            });
            assert_eq!(outcome, (*written, *result));
        }
    }
}
