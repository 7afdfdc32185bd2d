//! `io_uring`: several reads and writes in flight at once from one thread.
//!
//! Calls `io_uring_enter(2)`. Each slot of the ring reads its piece and then writes it. The two are
//! not linked, because a short read would break a link. Needs Linux 5.6, a system that does not
//! forbid io_uring, positions on both sides, and no FUSE file. Registers its buffers where RLIMIT_MEMLOCK allows
//! it. Shares the page cache, or bypasses it with `direct`. Loses on small files, whose copy is
//! shorter than the setup of the ring, and on cached files, where the kernel copies synchronously
//! and nothing overlaps.

use std::io;

use rustix::fs::{OFlags, tell};
use rustix::io::Errno;

use crate::contract::{Copier, Engine, Facts, Kind, StatusFlags};
use crate::engine::direct::block_bytes;
use crate::moved::stop_for;
use crate::probe::probe_by_copy;
use crate::support::cursor::with_both_at;
use crate::support::presized::Presized;
use crate::tuning::{Param, ParamKind};
use crate::{Moved, Pair, Side, Span, Stop, Tuning};
use sys::ring::{Completion, Direction, KeptRing, PUT_OFF_MAX, Part, Ring, is_on_fuse};

/// The table row.
pub(crate) static IO_URING: Engine = Engine {
    name: "io_uring",
    about: "reads and writes in flight together, in registered buffers",
    shares: "page cache on both sides, or with `direct` nothing",
    facts: Facts { delegates: true, ..Facts::REGULAR },
    params: &[
        Param {
            name: "buffer",
            kind: ParamKind::Bytes { default: 256 << 10, min: 512, max: 1 << 30 },
            about: "bytes of one read or write",
        },
        Param {
            name: "depth",
            kind: ParamKind::Count { default: 8, min: 1, max: 1024 },
            about: "reads and writes in flight at once",
        },
        Param {
            name: "direct",
            kind: ParamKind::Flag,
            about: "O_DIRECT on both sides; the unaligned tail is refused",
        },
    ],
    lab_variants: &[
        "io_uring:256K,depth=8",
        "io_uring:1M,depth=8,direct",
        "io_uring:2M,depth=4,direct@2",
    ],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&IO_URING, pair), start },
};

struct Uring {
    ring: KeptRing,
    direct: bool,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    let ring = KeptRing::new(tuning.bytes("depth"), tuning.bytes("buffer"))?;
    Ok(Box::new(Uring { ring, direct: tuning.flag("direct") }))
}

impl Copier for Uring {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        // A pipe ignores offsets, and several reads in flight would mix its bytes.
        if let Err(errno) = tell(pair.src).and(tell(pair.dst)) {
            return Moved::refused(errno);
        }
        if [pair.src, pair.dst].into_iter().any(is_on_fuse) {
            return Moved::refused(Errno::OPNOTSUPP);
        }
        let sizes = if self.direct { block_bytes(pair) } else { Ok(1) }
            .and_then(|block_bytes| Ok((block_bytes, self.ring.piece_bytes(block_bytes)?)));
        let (block_bytes, slot_bytes) = match sizes {
            Ok(sizes) => sizes,
            Err(errno) => return Moved::refused(errno),
        };
        let ring = &mut self.ring;
        with_both_at(pair, span, |span, src_at, dst_at| {
            let presized = match Presized::as_it_is(pair, dst_at, span.len) {
                Ok(presized) => presized,
                Err(errno) => return Moved::failed(Side::Dst, errno),
            };
            let moved = ring.with(|ring| {
                let mut flight = Flight {
                    pair,
                    src_at,
                    dst_at,
                    // Whole blocks only. The rest is refused below.
                    len: span.len - span.len % block_bytes as u64,
                    slot_bytes,
                    next: 0,
                    pieces: vec![Piece::default(); ring.depth()],
                    shortest: None,
                };
                flight.run(ring)
            });
            let moved = moved.unwrap_or_else(Moved::refused);
            if moved.stop != Stop::Done {
                presized.shrink_after(pair, moved.bytes);
            }
            if moved.stop == Stop::Done && moved.bytes < span.len {
                return Moved { stop: Stop::Refused(Errno::INVAL), ..moved };
            }
            moved
        })
    }

    fn status_flags(&self) -> StatusFlags {
        if self.direct { StatusFlags::both(OFlags::DIRECT) } else { StatusFlags::default() }
    }
}

/// The part of the span that a slot is copying.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// Where it begins, in bytes from the start of the span.
    begin: u64,
    len: usize,
    read: usize,
    written: usize,
    /// How many times in a row its read or write returned EAGAIN or EINTR.
    put_off: u32,
    /// The last read returned 0: no bytes follow those read so far.
    eof: bool,
}

/// One span in flight through the ring.
struct Flight<'fd> {
    pair: Pair<'fd>,
    src_at: u64,
    dst_at: u64,
    len: u64,
    slot_bytes: usize,
    /// Where the next piece begins.
    next: u64,
    pieces: Vec<Piece>,
    /// The lowest byte that was not written, and why. Pieces beyond it may have been written. They
    /// do not count, and if they extended the destination it is truncated again.
    shortest: Option<Moved>,
}

impl Flight<'_> {
    fn run(&mut self, ring: &mut Ring) -> Moved {
        for slot in 0..ring.depth() {
            self.begin_piece(ring, slot);
        }
        let mut completed = Vec::with_capacity(ring.depth());
        while ring.busy() {
            if let Err(errno) = ring.wait(|completion| completed.push(completion)) {
                // Operations may stay in flight without end, and none of their bytes can be
                // counted. The ring's drop handles them.
                let lowest = self.pieces.iter().map(|piece| piece.begin).min().unwrap_or(0);
                self.stop_at(lowest, stop_for(Side::Pair, errno));
                break;
            }
            for completion in completed.drain(..) {
                self.advance(ring, completion);
            }
        }
        self.shortest.unwrap_or(Moved { bytes: self.len, stop: Stop::Done })
    }

    /// Gives an idle slot the next piece, if there is one and nothing has stopped the copy.
    fn begin_piece(&mut self, ring: &mut Ring, slot: usize) {
        if self.shortest.is_some() || self.next >= self.len {
            return;
        }
        let left = usize::try_from(self.len - self.next).unwrap_or(usize::MAX);
        let len = left.min(self.slot_bytes);
        self.pieces[slot] = Piece { begin: self.next, len, ..Piece::default() };
        self.next += len as u64;
        self.push_read(ring, slot);
    }

    fn push_read(&self, ring: &mut Ring, slot: usize) {
        let Piece { begin, len, read, .. } = self.pieces[slot];
        let file_at = self.src_at + begin + read as u64;
        let part = Part { from: read, len: len - read, file_at };
        ring.push(slot, Direction::Read, self.pair.src, part);
    }

    fn push_write(&self, ring: &mut Ring, slot: usize) {
        let Piece { begin, read, written, .. } = self.pieces[slot];
        let file_at = self.dst_at + begin + written as u64;
        let part = Part { from: written, len: read - written, file_at };
        ring.push(slot, Direction::Write, self.pair.dst, part);
    }

    /// Advances a slot by one step: the rest of its read, its write, the rest of that, the next
    /// piece.
    fn advance(&mut self, ring: &mut Ring, completion: Completion) {
        let slot = completion.slot;
        let piece = &mut self.pieces[slot];
        let reading = piece.read < piece.len && !piece.eof;
        piece.put_off = if completion.result.is_ok() { 0 } else { piece.put_off + 1 };
        match completion.result {
            Err(Errno::INTR | Errno::AGAIN) if piece.put_off > PUT_OFF_MAX => {
                self.stop_piece(slot, Stop::Refused(Errno::AGAIN));
            }
            Err(Errno::INTR | Errno::AGAIN) => {
                if reading {
                    self.push_read(ring, slot);
                } else {
                    self.push_write(ring, slot);
                }
            }
            Err(errno) => {
                let side = if reading { Side::Src } else { Side::Dst };
                self.stop_piece(slot, stop_for(side, errno));
            }
            Ok(0) if reading => {
                piece.eof = true;
                if piece.read > 0 {
                    self.push_write(ring, slot);
                } else {
                    self.stop_piece(slot, Stop::Eof);
                }
            }
            Ok(count) if reading => {
                piece.read += count;
                if piece.read < piece.len {
                    self.push_read(ring, slot);
                } else {
                    self.push_write(ring, slot);
                }
            }
            // A write that returns 0 would be repeated without end.
            Ok(0) => self.stop_piece(slot, Stop::Failed { side: Side::Dst, errno: Errno::IO }),
            Ok(count) => {
                piece.written += count;
                self.pair.count(count);
                if piece.written < piece.read {
                    self.push_write(ring, slot);
                } else if piece.eof {
                    self.stop_piece(slot, Stop::Eof);
                } else {
                    self.begin_piece(ring, slot);
                }
            }
        }
    }

    /// Ends the copy inside a slot's piece, unless it has already ended at a lower byte.
    fn stop_piece(&mut self, slot: usize, stop: Stop) {
        let Piece { begin, written, .. } = self.pieces[slot];
        self.stop_at(begin + written as u64, stop);
    }

    fn stop_at(&mut self, bytes: u64, stop: Stop) {
        if self.shortest.is_none_or(|shortest| bytes < shortest.bytes) {
            self.shortest = Some(Moved { bytes, stop });
        }
    }
}
