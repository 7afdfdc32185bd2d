//! `direct_read`: direct reads ahead of writes through the page cache.
//!
//! Calls `io_uring_enter(2)` for several reads in flight on a source that has O_DIRECT, and
//! `pwrite` for each piece in order. Needs Linux 5.6, a system that does not forbid io_uring, and a
//! source whose file system has direct reads, aligned as it reports (STATX_DIOALIGN, Linux 6.1; a
//! page before that). The destination is written through the page cache. Only the copy enters the
//! page cache, not the source: it takes half the pages and evicts nothing for the source. Wins on
//! large sources that are not in the page cache: it requests more at once than readahead does.
//! Loses on sources that are in the page cache, because it reads them from the device anyway.

use std::io;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::contract::{Copier, Engine, Facts, Kind, StatusFlags};
use crate::engine::direct::side_block_bytes;
use crate::moved::stop_for;
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::cursor::with_both_at;
use crate::support::presized::{Presized, src_bytes_from};
use crate::support::until_done::{write_all, write_at};
use crate::tuning::{Param, ParamKind};
use crate::{Moved, Pair, Side, Span, Stop, Tuning};
use sys::ring::{Completion, Direction, KeptRing, PUT_OFF_MAX, Part, Ring, is_on_fuse};

/// The table row.
pub(crate) static DIRECT_READ: Engine = Engine {
    name: "direct_read",
    about: "O_DIRECT reads in flight, ahead of writes through the page cache",
    shares: "page cache of the destination; the source is read past it",
    facts: Facts { reads_ahead: false, delegates: true, ..Facts::REGULAR },
    params: &[
        Param {
            name: "buffer",
            kind: ParamKind::Bytes { default: 1 << 20, min: 512, max: 1 << 30 },
            about: "bytes of one read, cut to the alignment, and of one write",
        },
        Param {
            name: "depth",
            kind: ParamKind::Count { default: 4, min: 1, max: 1024 },
            about: "reads in flight at once",
        },
    ],
    lab_variants: &["direct_read:2M,depth=4", "direct_read:512K,depth=8"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&DIRECT_READ, pair), start },
};

/// The destination of a shorter span grows as it is written.
const PRESIZED_BYTES_MIN: u64 = 16 << 20;

struct DirectRead {
    ring: KeptRing,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    let ring = KeptRing::new(tuning.bytes("depth"), tuning.bytes("buffer"))?;
    Ok(Box::new(DirectRead { ring }))
}

impl Copier for DirectRead {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        if is_on_fuse(pair.src) {
            return Moved::refused(Errno::OPNOTSUPP);
        }
        let sizes = side_block_bytes(pair.src)
            .and_then(|block_bytes| Ok((block_bytes, self.ring.piece_bytes(block_bytes)?)));
        let (block_bytes, slot_bytes) = match sizes {
            Ok(sizes) => sizes,
            Err(errno) => return Moved::refused(errno),
        };
        let ring = &mut self.ring;
        with_both_at(pair, span, |span, src_at, dst_at| {
            if !src_at.is_multiple_of(block_bytes as u64) {
                return Moved::refused(Errno::INVAL);
            }
            let presized = match presized(pair, (src_at, dst_at), span.len) {
                Ok(presized) => presized,
                Err(moved) => return moved,
            };
            let moved = ring.with(|ring| {
                let slots = vec![Slot::default(); ring.depth()];
                let ends = (src_at, dst_at);
                let len = span.len;
                Flight { pair, ends, len, slot_bytes, block_bytes, slots }.run(ring)
            });
            let moved = moved.unwrap_or_else(Moved::refused);
            presized.iter().for_each(|presized| presized.shrink_after(pair, moved.bytes));
            moved
        })
    }

    fn status_flags(&self) -> StatusFlags {
        StatusFlags { src: OFlags::DIRECT, dst: OFlags::empty() }
    }
}

/// Extends the destination of a long span before the copy: writes that extend a file one after another take
/// longer. To look at the length of the source costs as much as it gains for a short one.
fn presized(
    pair: Pair<'_>,
    (src_at, dst_at): (u64, u64),
    len: u64,
) -> Result<Option<Presized>, Moved> {
    if len < PRESIZED_BYTES_MIN {
        return Ok(None);
    }
    let available =
        src_bytes_from(pair, src_at).map_err(|errno| Moved::failed(Side::Src, errno))?;
    let len = len.min(available);
    if len == 0 { Ok(None) } else { Presized::for_writes(pair, dst_at, len).map(Some) }
}

/// One span in flight. Its pieces are read into the slots in turn and written in order.
struct Flight<'fd> {
    pair: Pair<'fd>,
    /// Where the span begins in the source and in the destination.
    ends: (u64, u64),
    len: u64,
    /// The length of a piece, a multiple of the block.
    slot_bytes: usize,
    block_bytes: usize,
    slots: Vec<Slot>,
}

/// A piece that is being read.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Where it begins, in bytes from the start of the span.
    begin: u64,
    /// Bytes of the piece that belong to the span.
    want: usize,
    read: usize,
    /// How many times in a row its read returned EAGAIN or EINTR.
    put_off: u32,
    /// How its read ended; `None` while it is in flight.
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All requested bytes were read.
    Whole,
    /// A read returned 0.
    Eof,
    /// A read ended inside a block. Plain reads find out whether the file ends there: a server may
    /// return less than the file has.
    Unaligned,
    /// The kernel returned EAGAIN or EINTR too many times in a row.
    PutOff,
    Error(Errno),
}

impl Flight<'_> {
    fn run(mut self, ring: &mut Ring) -> Moved {
        let pieces = self.len.div_ceil(self.slot_bytes as u64);
        let depth = self.slots.len() as u64;
        for piece in 0..pieces.min(depth) {
            self.begin(ring, piece);
        }
        let mut bytes = 0;
        let mut stop = None;
        for piece in 0..pieces {
            // Submitted reads proceed while this piece is written. Half of the slots are submitted
            // at a time: the kernel merges adjacent requests that arrive together into fewer,
            // larger ones.
            let enough = ring.queued() >= self.slots.len().div_ceil(2);
            let submitted = if enough { ring.submit() } else { Ok(()) };
            let (moved, stopped) = match submitted {
                Ok(()) => self.finish(ring, piece),
                Err(errno) => (0, Some(stop_for(Side::Pair, errno))),
            };
            bytes += moved as u64;
            stop = stopped;
            if stop.is_some() {
                break;
            }
            if piece + depth < pieces {
                self.begin(ring, piece + depth);
            }
        }
        // Waits for the reads behind a stop, because the descriptors may be closed afterwards. If
        // the wait fails, the ring's drop handles them.
        while ring.busy() && ring.wait(|_| ()).is_ok() {}
        Moved { bytes, stop: stop.unwrap_or(Stop::Done) }
    }

    fn slot_of(&self, piece: u64) -> usize {
        usize::try_from(piece % self.slots.len() as u64).expect("there are not so many slots")
    }

    /// Starts the read of a piece in its slot.
    fn begin(&mut self, ring: &mut Ring, piece: u64) {
        let slot = self.slot_of(piece);
        let begin = piece * self.slot_bytes as u64;
        let left = usize::try_from(self.len - begin).unwrap_or(usize::MAX);
        let want = left.min(self.slot_bytes);
        self.slots[slot] = Slot { begin, want, ..Slot::default() };
        self.push(ring, slot);
    }

    /// Requests the missing part of a slot, in whole blocks. The last block may extend beyond the
    /// span.
    fn push(&self, ring: &mut Ring, slot: usize) {
        let Slot { begin, want, read, .. } = self.slots[slot];
        let len = want.next_multiple_of(self.block_bytes) - read;
        let file_at = self.ends.0 + begin + read as u64;
        ring.push(slot, Direction::Read, self.pair.src, Part { from: read, len, file_at });
    }

    /// Waits for a piece and writes it. Returns how many of its bytes were written, and why it is
    /// the last.
    fn finish(&mut self, ring: &mut Ring, piece: u64) -> (usize, Option<Stop>) {
        let slot = self.slot_of(piece);
        let end = match self.await_end(ring, slot) {
            Ok(end) => end,
            Err(errno) => return (0, Some(stop_for(Side::Pair, errno))),
        };
        let Slot { begin, want, read, .. } = self.slots[slot];
        let (pair, dst) = (self.pair, Pos::At(self.ends.1 + begin));
        let bytes = ring.bytes(slot, read.min(want));
        let (written, result) = write_all(bytes, dst, |bytes, dst| {
            let written = write_at(pair, bytes, dst);
            pair.count(written.unwrap_or(0));
            written
        });
        let stop = match (result, end) {
            (Err(errno), _) => Some(stop_for(Side::Dst, errno)),
            (Ok(()), End::Whole) => None,
            (Ok(()), End::Eof) => Some(Stop::Eof),
            (Ok(()), End::Unaligned) => Some(Stop::Refused(Errno::INVAL)),
            (Ok(()), End::PutOff) => Some(Stop::Refused(Errno::AGAIN)),
            (Ok(()), End::Error(errno)) => Some(stop_for(Side::Src, errno)),
        };
        (written, stop)
    }

    /// Waits until all of a slot's piece is read, or no more of it can be read.
    fn await_end(&mut self, ring: &mut Ring, slot: usize) -> Result<End, Errno> {
        let mut completed = Vec::with_capacity(self.slots.len());
        loop {
            if let Some(end) = self.slots[slot].end {
                return Ok(end);
            }
            ring.wait(|completion| completed.push(completion))?;
            for Completion { slot, result } in completed.drain(..) {
                self.slots[slot].take(result, self.block_bytes);
                if self.slots[slot].end.is_none() {
                    self.push(ring, slot);
                }
            }
        }
    }
}

impl Slot {
    /// Records the result of a read. If it is no end, the caller requests the rest.
    fn take(&mut self, result: Result<usize, Errno>, block_bytes: usize) {
        match result {
            Ok(count) => (self.read, self.put_off) = (self.read + count, 0),
            Err(_) => self.put_off += 1,
        }
        self.end = match result {
            Ok(0) => Some(End::Eof),
            Ok(_) if self.read >= self.want => Some(End::Whole),
            Ok(_) if !self.read.is_multiple_of(block_bytes) => Some(End::Unaligned),
            Ok(_) => None,
            Err(Errno::INTR | Errno::AGAIN) if self.put_off <= PUT_OFF_MAX => None,
            Err(Errno::INTR | Errno::AGAIN) => Some(End::PutOff),
            Err(errno) => Some(End::Error(errno)),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, read, write};
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use rustix::fs::{Advice, fadvise, fcntl_getfl, fcntl_setfl};
    use testfs::{FsKind, random_bytes, skip, test_name};

    use super::*;
    use crate::Variant;
    use sys::cachestat;

    const BLOCK_BYTES: usize = 4096;

    fn copy(dir: &Path, variant: &str, span: Span) -> Option<(Moved, Vec<u8>)> {
        let variant: Variant = variant.parse().unwrap();
        let mut copier = match variant.start() {
            Ok(copier) => copier,
            Err(error) => {
                skip(&test_name(), &format!("{variant} does not start: {error}"));
                return None;
            }
        };
        let (src, dst) = (File::open(dir.join("src")).unwrap(), dir.join("dst"));
        // `cp` leaves O_NONBLOCK set where the file system ignores it for regular files.
        fcntl_setfl(&src, OFlags::NONBLOCK).unwrap();
        let flags = fcntl_getfl(&src).unwrap();
        let options = File::options().read(true).write(true).create(true).truncate(true).open(&dst);
        let moved = copier.copy(Pair::new(src.as_fd(), options.unwrap().as_fd()), span);
        assert_eq!(fcntl_getfl(&src).unwrap(), flags, "as it was");
        Some((moved, read(dst).unwrap()))
    }

    #[test]
    fn results_of_reads() {
        type Results = &'static [Result<usize, Errno>];
        const AGAIN: Result<usize, Errno> = Err(Errno::AGAIN);
        let whole: &[Results] = &[
            &[Ok(8192)],
            &[Ok(5000)],
            &[Ok(4096), Ok(4096)],
            &[Ok(4096), Ok(1000)],
            &[Err(Errno::INTR), AGAIN, Ok(4096), AGAIN, Err(Errno::INTR), Ok(904)],
        ];
        let others: &[(Results, usize, End)] = &[
            (&[Ok(0)], 0, End::Eof),
            (&[Ok(4096), Ok(0)], 4096, End::Eof),
            (&[Ok(100)], 100, End::Unaligned),
            (&[Ok(4096), Ok(803)], 4899, End::Unaligned),
            (&[Ok(4096), Err(Errno::IO)], 4096, End::Error(Errno::IO)),
            (&[Err(Errno::INVAL)], 0, End::Error(Errno::INVAL)),
            (&[AGAIN; 17], 0, End::PutOff),
        ];
        let whole = whole.iter().map(|results| (*results, 5000, End::Whole));
        for (results, read_min, expected) in whole.chain(others.iter().copied()) {
            let mut slot = Slot { want: 4900, ..Slot::default() };
            for result in results {
                assert_eq!(slot.end, None, "{results:?}");
                slot.take(*result, BLOCK_BYTES);
            }
            assert_eq!(slot.end, Some(expected), "{results:?}");
            assert!(slot.read >= read_min, "{results:?}: {}", slot.read);
        }
    }

    /// Spans that end inside a block, on a block, at the end of the file and beyond it, with fewer
    /// pieces than slots and with more.
    #[test]
    fn a_span_ends_where_it_should() {
        let Some(scratch) = testfs::fs(FsKind::Ext4) else { return };
        let len = 9 * BLOCK_BYTES + 100;
        let bytes = random_bytes(len, 1);
        write(scratch.path().join("src"), &bytes).unwrap();
        let block = BLOCK_BYTES as u64;
        let whole = len as u64;
        for variant in ["direct_read:4K,depth=3", "direct_read:8K,depth=2", "direct_read"] {
            for (begin, want, stop) in [
                (0, whole, Stop::Done),
                (0, whole - 1, Stop::Done),
                (0, 9 * block, Stop::Done),
                (2 * block, 5 * block + 1, Stop::Done),
                (0, 0, Stop::Done),
                // A read that ends inside a block does not prove the end of the file: the next
                // engine continues there.
                (0, whole + 1, Stop::Refused(Errno::INVAL)),
                (9 * block, 10 * block, Stop::Refused(Errno::INVAL)),
                // A whole block after the last one was requested, and the read returned 0.
                (10 * block, block, Stop::Eof),
                (1, block, Stop::Refused(Errno::INVAL)),
            ] {
                let span = Span { src: Pos::At(begin), dst: Pos::At(0), len: want };
                let Some((moved, copied)) = copy(scratch.path(), variant, span) else { return };
                let there = whole.saturating_sub(begin).min(want);
                let right = if begin % block == 0 { there } else { 0 };
                let case = format!("{variant} {span:?}");
                assert_eq!(moved, Moved { bytes: right, stop }, "{case}");
                let [from, to] = [begin.min(whole), begin.min(whole) + right];
                let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap());
                assert!(copied == bytes[from..to], "{case}");
            }
        }
    }

    #[test]
    fn only_the_copy_enters_the_page_cache() {
        let Some(scratch) = testfs::fs(FsKind::Ext4) else { return };
        let len = 3 << 20;
        let dir = scratch.path();
        write(dir.join("src"), random_bytes(len, 1)).unwrap();
        let src = File::open(dir.join("src")).unwrap();
        src.sync_all().unwrap();
        let resident = |file: &File| cachestat(file.as_fd(), 0, len as u64);
        if let Err(errno) = resident(&src) {
            return skip(&test_name(), &format!("cachestat: {errno}"));
        }
        fadvise(&src, 0, None, Advice::DontNeed).unwrap();
        assert_eq!(resident(&src).unwrap().cached_pages, 0);
        let Some((moved, copied)) = copy(dir, "direct_read:256K,depth=4", Span::whole(len as u64))
        else {
            return;
        };
        assert_eq!(moved, Moved { bytes: len as u64, stop: Stop::Done });
        assert_eq!(resident(&src).unwrap().cached_pages, 0);
        let dst = File::open(dir.join("dst")).unwrap();
        let pages = len / rustix::param::page_size();
        assert_eq!(resident(&dst).unwrap().cached_pages, pages as u64);
        let mut original = vec![0; len];
        src.read_exact_at(&mut original, 0).unwrap();
        assert!(copied == original);
    }
}
