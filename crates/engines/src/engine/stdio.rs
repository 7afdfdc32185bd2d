//! `stdio`: the C library's streams, fread and fwrite.
//!
//! Calls `fread`/`fwrite` on streams over duplicates of the descriptors. An item of 1 byte is the
//! byte-at-a-time loop of textbooks. Shares the page cache. A byte is copied up to four times (page
//! cache, stream, item, stream, page cache), or twice if the item is as large as the stream's
//! buffer, because the library then bypasses that buffer. The library allocates the buffers of the
//! streams, unless `setvbuf` replaces them. The source needs positions: bytes that a stream read
//! ahead could not be returned to a pipe. A signal that interrupts a write fails the copy, because
//! the stream has then discarded its buffer. Loses to `read_write` with the same buffer, by the
//! bookkeeping of each item.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek, tell};
use rustix::io::Errno;

use crate::contract::{Copier, Ends, Engine, Facts, Kind};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::checked::appends;
use crate::support::cursor::with_src_at;
use crate::support::until_done::{Errors, Halt, Step, until_done};
use crate::tuning::{OFFSET_BYTES_MAX, Param, ParamKind};
use crate::{Moved, Pair, Side, Span, Stop, Tuning};
use sys::Buffer;
use sys::stream::{End, Stream, Transfer};

/// The table row.
pub(crate) static STDIO: Engine = Engine {
    name: "stdio",
    about: "the C library's fread and fwrite, item by item",
    shares: "page cache on both sides; every byte is copied up to four times",
    facts: Facts { positions: false, dst: Ends::STREAMS, ..Facts::REGULAR },
    params: &[
        Param {
            name: "item",
            kind: ParamKind::Bytes { default: 4 << 10, min: 1, max: 1 << 30 },
            about: "bytes of one fread and one fwrite; 1 is byte at a time",
        },
        Param {
            name: "setvbuf",
            kind: ParamKind::Bytes { default: 0, min: 1, max: 1 << 30 },
            about: "bytes of the streams' own buffers; the C library's choice without it",
        },
        Param {
            name: "offset",
            kind: ParamKind::Offset { max: OFFSET_BYTES_MAX },
            about: "bytes from the start of a page to the item, and to the buffers of `setvbuf`",
        },
    ],
    lab_variants: &["stdio:4K", "stdio:4K,offset=16", "stdio:64K,setvbuf=64K"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&STDIO, pair), start },
};

pub(super) struct Stdio {
    pub(super) item: Buffer,
    setvbuf_bytes: usize,
    offset_bytes: usize,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(Stdio::new(tuning)?))
}

impl Copier for Stdio {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        with_src_at(pair, span, |span, src_at| {
            if let Err(errno) = seek(pair.src, SeekFrom::Start(src_at)) {
                return Moved::refused(errno);
            }
            if let Pos::At(dst_at) = span.dst
                && let Err(errno) = seek(pair.dst, SeekFrom::Start(dst_at))
            {
                return Moved::refused(errno);
            }
            self.copy_from_cursors(pair, span)
        })
    }

    fn touch(&mut self) {
        self.item.touch();
    }
}

impl Stdio {
    pub(super) fn new(tuning: &Tuning) -> io::Result<Stdio> {
        let offset_bytes = tuning.bytes("offset");
        Ok(Stdio {
            item: Buffer::at_offset(tuning.bytes("item"), offset_bytes)?,
            setvbuf_bytes: tuning.bytes("setvbuf"),
            offset_bytes,
        })
    }

    fn copy_from_cursors(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        let (mut src, mut dst) = match self.open(pair) {
            Ok(streams) => streams,
            Err(errno) => return Moved::refused(errno),
        };
        // Only a regular file can report afterwards how much of it was written.
        let dst_began_at = next_write_at(pair.dst).ok();
        let item = self.item.as_mut_slice();
        let (mut taken, mut passed_on) = (0, 0);
        let handed_on = until_done(pair, span, item.len(), Errors::AlwaysFail, |_, _, want| {
            passed_on = taken - dst.pending() as u64;
            let step = step(&mut src, &mut dst, &mut item[..want]);
            taken += step.bytes as u64;
            step
        });
        let flushed = match handed_on.stop {
            Stop::Failed { side: Side::Dst, errno } => Err(errno),
            _ => {
                passed_on = taken - dst.pending() as u64;
                dst.flush()
            }
        };
        let Err(errno) = flushed else { return handed_on };
        // The bytes that reached the descriptor count, not those that the stream accepted. A stream
        // that failed keeps no account of its buffer. For a pipe only the bytes before the failed
        // call are known.
        let bytes = match (dst_began_at, tell(pair.dst)) {
            (Some(began_at), Ok(at)) => at - began_at,
            _ => passed_on,
        };
        dst.purge();
        Moved { bytes, stop: Stop::Failed { side: Side::Dst, errno } }
    }

    fn open(&self, pair: Pair<'_>) -> Result<(Stream, Stream), Errno> {
        Ok((
            Stream::reader(pair.src, self.stream_buffer()?)?,
            Stream::writer(pair.dst, self.stream_buffer()?)?,
        ))
    }

    pub(super) fn stream_buffer(&self) -> Result<Option<Buffer>, Errno> {
        if self.setvbuf_bytes == 0 {
            return Ok(None);
        }
        let buffer = Buffer::at_offset(self.setvbuf_bytes, self.offset_bytes);
        buffer.map(Some).map_err(|_| Errno::NOMEM)
    }
}

/// The offset of the next write at the cursor of `dst`.
fn next_write_at(dst: BorrowedFd<'_>) -> rustix::io::Result<u64> {
    if appends(dst) { seek(dst, SeekFrom::End(0)) } else { tell(dst) }
}

fn step(src: &mut Stream, dst: &mut Stream, item: &mut [u8]) -> Step {
    let read = src.read(item);
    let Transfer { bytes, end } = dst.write(&item[..read.bytes]);
    match end {
        End::Full => {}
        End::Eof => unreachable!("only reading meets the end"),
        // This includes EINTR: a stream discards its buffer on any error, so the bytes that it had
        // accepted cannot be written again.
        End::Error(errno) => {
            return Step { bytes, halt: Some(Halt::Lost { side: Side::Dst, errno }) };
        }
    }
    let halt = match read.end {
        End::Full => None,
        End::Eof => Some(Halt::Eof),
        End::Error(errno) => Some(Halt::Error { side: Side::Src, errno }),
    };
    Step { bytes, halt }
}
