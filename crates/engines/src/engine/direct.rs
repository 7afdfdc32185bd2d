//! `direct`: O_DIRECT on both sides; bypasses the page cache.
//!
//! Calls `pread`/`pwrite` on descriptors that have O_DIRECT for the length of the span. Needs
//! offsets, lengths and memory aligned as the file systems report (STATX_DIOALIGN, Linux 6.1; a
//! page before that). Bypasses the page cache: it evicts nothing, it reads nothing ahead, and each
//! call waits for the device. Refuses the unaligned tail, which the next engine copies. Loses on
//! sources that are already in the page cache, and with small buffers.

use std::io;

use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

use crate::contract::{Copier, Engine, Facts, Kind, StatusFlags, Verdict};
use crate::fs_types::{BTRFS, TMPFS, fs_type_of};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::until_done::{
    Errors, Halt, Step, pass_on, put_back, read_at, until_done, write_at,
};
use crate::tuning::{Param, ParamKind};
use crate::{Moved, Pair, Side, Span, Tuning};
use sys::Buffer;

/// The table row.
pub(crate) static DIRECT: Engine = Engine {
    name: "direct",
    about: "O_DIRECT on both sides, aligned as the file systems ask",
    shares: "nothing: it goes past the page cache to the device",
    facts: Facts { reads_ahead: false, delegates: true, ..Facts::REGULAR },
    params: &[Param {
        name: "buffer",
        kind: ParamKind::Bytes { default: 1 << 20, min: 512, max: 1 << 30 },
        about: "bytes moved by one read and one write, cut to the alignment",
    }],
    lab_variants: &["direct", "direct:8M", "direct@2"],
    kind: Kind::Copier { probe, start },
};

pub(super) struct Direct {
    pub(super) buffer: Buffer,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(Direct::new(tuning)?))
}

impl Direct {
    pub(super) fn new(tuning: &Tuning) -> io::Result<Direct> {
        Ok(Direct { buffer: Buffer::for_direct_io(tuning.bytes("buffer"))? })
    }
}

fn probe(pair: Pair<'_>) -> Verdict {
    let verdict = probe_by_copy(&DIRECT, pair);
    let on = |fs_type| [pair.src, pair.dst].into_iter().any(|fd| fs_type_of(fd) == Some(fs_type));
    match verdict {
        Verdict::Yes if on(TMPFS) => Verdict::Maybe(
            "it copies rightly, but tmpfs is memory: there is no cache to go past".to_owned(),
        ),
        Verdict::Yes if on(BTRFS) => Verdict::Maybe(
            "it copies rightly, but btrfs buffers direct writes of checksummed files since Linux 6.14"
                .to_owned(),
        ),
        verdict => verdict,
    }
}

impl Copier for Direct {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        let block_bytes = match block_bytes(pair) {
            Ok(block_bytes) => block_bytes,
            Err(errno) => return Moved::refused(errno),
        };
        let buffer = self.buffer.as_mut_slice();
        let step_bytes_max = buffer.len() - buffer.len() % block_bytes;
        if step_bytes_max == 0 {
            return Moved::refused(Errno::INVAL);
        }
        until_done(pair, span, step_bytes_max, Errors::MayRefuse, |src, dst, want| {
            step(pair, src, dst, &mut buffer[..want - want % block_bytes], block_bytes)
        })
    }

    fn touch(&mut self) {
        self.buffer.touch();
    }

    fn status_flags(&self) -> StatusFlags {
        StatusFlags::both(OFlags::DIRECT)
    }
}

/// Moves whole blocks. Refuses less than a block.
fn step(pair: Pair<'_>, src: Pos, dst: Pos, buffer: &mut [u8], block_bytes: usize) -> Step {
    let unaligned = Step::halted(Halt::Error { side: Side::Pair, errno: Errno::INVAL });
    if buffer.is_empty() {
        return unaligned;
    }
    let got = match read_at(pair, src, buffer) {
        Ok(0) => return Step::halted(Halt::Eof),
        Ok(got) => got,
        Err(errno) => return Step::halted(Halt::Error { side: Side::Src, errno }),
    };
    // A read that ends inside a block reached the end of the file.
    let whole = got - got % block_bytes;
    if !put_back(pair, src, got - whole) {
        let lost = Halt::Lost { side: Side::Src, errno: Errno::SPIPE };
        return Step::halted(lost);
    }
    if whole == 0 {
        return unaligned;
    }
    pass_on(pair, src, dst, &buffer[..whole], |bytes, dst| write_at(pair, bytes, dst))
}

/// The alignment that both files require of offsets, lengths and memory, in bytes.
///
/// # Errors
/// EINVAL if a file system reports that it has no direct I/O on the file, or requires memory
/// aligned to more than a page.
pub(crate) fn block_bytes(pair: Pair<'_>) -> Result<usize, Errno> {
    Ok(side_block_bytes(pair.src)?.max(side_block_bytes(pair.dst)?))
}

/// Like [`block_bytes`], for one file.
pub(crate) fn side_block_bytes(fd: BorrowedFd<'_>) -> Result<usize, Errno> {
    let page_bytes = rustix::param::page_size();
    let stat = match statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(stat) => stat,
        Err(Errno::NOSYS) => return Ok(page_bytes),
        Err(errno) => return Err(errno),
    };
    if !StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN) {
        return Ok(page_bytes);
    }
    let (offset_align, mem_align) =
        (stat.stx_dio_offset_align as usize, stat.stx_dio_mem_align as usize);
    if offset_align == 0 || mem_align > page_bytes {
        return Err(Errno::INVAL);
    }
    Ok(offset_align.max(mem_align))
}
