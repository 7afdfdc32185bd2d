//! `reflink`: the destination shares the source's extents; no byte is moved.
//!
//! Calls the ioctls FICLONERANGE (for a span) and FICLONE (for a whole file whose length changes
//! meanwhile). Needs both files on one copy-on-write file system (btrfs, xfs, bcachefs, some
//! network file systems). If a span ends inside a block before the end of the source, it shares the
//! blocks before that one and refuses the rest, which the next engine copies. Never loses on time.
//! A media error in a shared extent damages both files.

use std::io;

use rustix::io::{Errno, retry_on_intr};

use crate::contract::{Copier, Engine, Facts, Kind};
use crate::moved::stop_for;
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::until_done::doubt_zero;
use crate::{Moved, Pair, Side, Span, Stop, Tuning};
use sys::clone_range;

/// The table row.
pub(crate) static REFLINK: Engine = Engine {
    name: "reflink",
    about: "the destination shares the source's extents until either is written",
    shares: "the extents on the medium; neither page cache nor user memory is touched",
    facts: Facts { reads_ahead: false, ..Facts::REGULAR },
    params: &[],
    lab_variants: &["reflink"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&REFLINK, pair), start },
};

struct Reflink;

fn start(_: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(Reflink))
}

impl Copier for Reflink {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        let (Pos::At(src_at), Pos::At(dst_at)) = (span.src, span.dst) else {
            return Moved::refused(Errno::INVAL);
        };
        match clone_span(pair, src_at, dst_at, span.len) {
            Ok(bytes) if bytes == span.len => Moved { bytes, stop: Stop::Done },
            Ok(bytes) => {
                // The source ended there, or continues with bytes that cannot be shared.
                let doubted = doubt_zero(pair, span.after(bytes));
                Moved { bytes: bytes + doubted.bytes, stop: doubted.stop }
            }
            Err(errno) => Moved { bytes: 0, stop: stop_for(Side::Pair, errno) },
        }
    }
}

/// Clones the part of the span that can be cloned, and returns its length in bytes.
fn clone_span(pair: Pair<'_>, src_at: u64, dst_at: u64, len: u64) -> rustix::io::Result<u64> {
    if len == 0 {
        // A length of 0 means up to the end of the file to the ioctl.
        return Ok(0);
    }
    // Most spans are whole files, and need no fstat. An fstat of the destination before the first
    // write also causes an inode update: since Linux 6.13 the next change after a read of the
    // timestamps gets a new timestamp, which the kernel can otherwise omit within a tick.
    match retry_on_intr(|| clone_range((pair.src, src_at), (pair.dst, dst_at), len)) {
        Err(Errno::INVAL) => clone_what_can_be(pair, src_at, dst_at, len),
        result => result.map(|()| len),
    }
}

/// Clones what it can if a bound is not on a block boundary, or the length of the source has
/// changed.
fn clone_what_can_be(
    pair: Pair<'_>,
    src_at: u64,
    dst_at: u64,
    len: u64,
) -> rustix::io::Result<u64> {
    let src_stat = rustix::fs::fstat(pair.src)?;
    let src_bytes = file_bytes(&src_stat);
    let available = src_bytes.saturating_sub(src_at);
    if available == 0 {
        return Ok(0);
    }
    let to_the_end = len >= available;
    if to_the_end && src_at == 0 && dst_at == 0 && file_bytes(&rustix::fs::fstat(pair.dst)?) == 0 {
        // FICLONE takes the whole source as it is at that instant, so a source that grows meanwhile
        // is no error. The length of the destination is the length that was cloned.
        retry_on_intr(|| rustix::fs::ioctl_ficlone(pair.dst, pair.src))?;
        let cloned = file_bytes(&rustix::fs::fstat(pair.dst)?);
        if cloned > len {
            retry_on_intr(|| rustix::fs::ftruncate(pair.dst, len))?;
        }
        return Ok(cloned.min(len));
    }
    // A range may end inside a block only at the end of the source.
    let clonable = if to_the_end {
        available
    } else {
        let block_bytes = u64::try_from(src_stat.st_blksize).unwrap_or(4096).max(512);
        let end = src_at + len;
        (end - end % block_bytes).saturating_sub(src_at)
    };
    if clonable == 0 {
        return Err(Errno::INVAL);
    }
    retry_on_intr(|| clone_range((pair.src, src_at), (pair.dst, dst_at), clonable))?;
    Ok(clonable)
}

fn file_bytes(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
