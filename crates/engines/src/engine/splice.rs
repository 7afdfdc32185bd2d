//! `splice`: moves pages from the source through a pipe to the destination.
//!
//! Calls `splice(2)` twice a step. Needs no user memory. Takes files, pipes and sockets on either
//! side. Shares the page cache: a page in the pipe is the source's own, and is copied once, into
//! the destination. Loses with the pipe's default capacity of 64 KiB, which makes each step 16
//! pages, and where the destination has no splice of its own (some FUSE and network file systems).

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with};

use crate::contract::{Copier, Ends, Engine, Facts, Kind};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::until_done::{
    Errors, Halt, Step, after_failed_write, pass_on, until_done, write_at,
};
use crate::tuning::{Param, ParamKind};
use crate::{CALL_BYTES_MAX, Moved, Pair, Side, Span, Tuning, is_refusal};
use sys::Buffer;

/// The table row.
pub(crate) static SPLICE: Engine = Engine {
    name: "splice",
    about: "pages travel through a pipe, from the source's cache to the destination",
    shares: "page cache on both sides; no user memory",
    facts: Facts { src: Ends::STREAMS, dst: Ends::STREAMS, ..Facts::REGULAR },
    params: &[
        Param {
            name: "chunk",
            kind: ParamKind::Bytes { default: 1 << 20, min: 1, max: CALL_BYTES_MAX },
            about: "bytes asked of one call; a call moves no more than the pipe holds",
        },
        Param {
            name: "pipe",
            kind: ParamKind::Bytes { default: 0, min: 4096, max: 1 << 30 },
            about: "what the pipe holds, in bytes; the kernel's own choice is 64K",
        },
    ],
    lab_variants: &["splice", "splice:1M,pipe=1M", "splice:1M,pipe=1M@2"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&SPLICE, pair), start },
};

struct Splice {
    chunk_bytes: usize,
    pipe_bytes: usize,
    /// Empty between steps. If a step fails, the pipe is taken out and dropped with its content.
    pipe: Option<Pipe>,
}

struct Pipe {
    read_end: OwnedFd,
    write_end: OwnedFd,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    let pipe_bytes = tuning.bytes("pipe");
    let pipe = Pipe::new(pipe_bytes)?;
    Ok(Box::new(Splice { chunk_bytes: tuning.bytes("chunk"), pipe_bytes, pipe: Some(pipe) }))
}

impl Copier for Splice {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        let chunk_bytes = self.chunk_bytes;
        until_done(pair, span, chunk_bytes, Errors::MayRefuse, |src, dst, want| {
            self.step(pair, src, dst, want)
        })
    }
}

impl Splice {
    fn step(&mut self, pair: Pair<'_>, src: Pos, dst: Pos, want: usize) -> Step {
        let pipe = match self.pipe.take().map_or_else(|| Pipe::new(self.pipe_bytes), Ok) {
            Ok(pipe) => pipe,
            Err(errno) => return Step::halted(Halt::Unfit(errno)),
        };
        let taken = match pipe.fill(pair, src, want) {
            Ok(0) => {
                self.pipe = Some(pipe);
                return Step::halted(Halt::Zero);
            }
            Ok(taken) => taken,
            Err(errno) => {
                self.pipe = Some(pipe);
                return Step::halted(Halt::Error { side: Side::Src, errno });
            }
        };
        let (drained, result) = pipe.drain(pair, dst, taken);
        match result {
            Ok(()) => {
                self.pipe = Some(pipe);
                Step::moved(taken)
            }
            Err(errno) if is_refusal(errno) => {
                let rest = pipe.rescue(pair, src, dst.advanced(drained as u64), taken - drained);
                let refusal = Halt::Error { side: Side::Dst, errno };
                Step { bytes: drained + rest.bytes, halt: rest.halt.or(Some(refusal)) }
            }
            Err(errno) => {
                let halt = after_failed_write(pair, src, taken - drained, errno);
                Step { bytes: drained, halt: Some(halt) }
            }
        }
    }
}

impl Pipe {
    fn new(pipe_bytes: usize) -> rustix::io::Result<Pipe> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        if pipe_bytes > 0 {
            fcntl_setpipe_size(&write_end, pipe_bytes)?;
        }
        Ok(Pipe { read_end, write_end })
    }

    /// Moves up to `want` bytes of the source into the empty pipe.
    fn fill(&self, pair: Pair<'_>, src: Pos, want: usize) -> rustix::io::Result<usize> {
        let flags = SpliceFlags::MOVE;
        rustix::pipe::splice(pair.src, src.offset().as_mut(), &self.write_end, None, want, flags)
    }

    /// Moves all `taken` bytes out of the pipe, repeating short calls. Returns how many were moved,
    /// and the error that stopped it.
    fn drain(&self, pair: Pair<'_>, dst: Pos, taken: usize) -> (usize, rustix::io::Result<()>) {
        let mut drained = 0;
        while drained < taken {
            let mut offset = dst.advanced(drained as u64).offset();
            let (offset, left) = (offset.as_mut(), taken - drained);
            let flags = SpliceFlags::MOVE;
            match rustix::pipe::splice(&self.read_end, None, pair.dst, offset, left, flags) {
                // A destination that accepts 0 bytes would be called without end.
                Ok(0) => return (drained, Err(Errno::IO)),
                Ok(count) => drained += count,
                Err(Errno::INTR) => {}
                Err(errno) => return (drained, Err(errno)),
            }
        }
        (drained, Ok(()))
    }

    /// Writes the `stranded` bytes left in the pipe with plain writes. A refusal must leave no
    /// bytes in it.
    fn rescue(&self, pair: Pair<'_>, src: Pos, dst: Pos, stranded: usize) -> Step {
        let Ok(mut buffer) = Buffer::page_aligned(stranded) else {
            return Step::halted(after_failed_write(pair, src, stranded, Errno::NOMEM));
        };
        let bytes = buffer.as_mut_slice();
        let mut got = 0;
        while got < stranded {
            match rustix::io::read(&self.read_end, &mut bytes[got..]) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Step::halted(after_failed_write(pair, src, stranded, errno));
                }
            }
        }
        assert_eq!(got, stranded, "the pipe holds what was put into it");
        pass_on(pair, src, dst, bytes, |bytes, dst| write_at(pair, bytes, dst))
    }
}
