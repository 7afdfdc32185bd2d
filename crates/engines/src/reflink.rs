//! `reflink`: the destination shares the source's extents; no byte is moved.
//!
//! Calls the ioctls FICLONERANGE (a span) and FICLONE (a whole file that changes meanwhile). Needs both files on one
//! copy-on-write file system (btrfs, xfs, bcachefs, some network ones). A span that ends inside a
//! block before the end of the source is shared up to that block, and the rest refused: the next
//! engine copies it. Loses never on time; the two files then share one fate on the medium.

use std::io;

use rustix::io::Errno;

use crate::engine::{Copier, Engine, Facts, Kind};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::sys::clone_range;
use crate::until_done::doubt_zero;
use crate::{Moved, Pair, Side, Span, Stop, Tuning, is_refusal};

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
                // The source ended there, or goes on in bytes that cannot be shared.
                let doubted = doubt_zero(pair, span.after(bytes));
                Moved { bytes: bytes + doubted.bytes, stop: doubted.stop }
            }
            Err(errno) if is_refusal(errno) => Moved::refused(errno),
            Err(errno) => Moved::failed(Side::Pair, errno),
        }
    }
}

/// Clones what of the span can be cloned and returns how many bytes that was.
fn clone_span(pair: Pair<'_>, src_at: u64, dst_at: u64, len: u64) -> rustix::io::Result<u64> {
    if len == 0 {
        // To the ioctl that would be all there is.
        return Ok(0);
    }
    // Most spans are whole files, and nothing has to be looked at. A look at the destination before it
    // is written to would even cost a change of its inode: since Linux 6.13 whoever has seen its times
    // sees another one after the next change, which otherwise need not be noted within a tick.
    match uninterrupted(|| clone_range(pair, src_at, dst_at, len)) {
        Err(Errno::INVAL) => clone_what_can_be(pair, src_at, dst_at, len),
        result => result.map(|()| len),
    }
}

/// The same where a bound is not on a block, or the source is not as long as it was.
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
        // FICLONE takes the whole source as it is at that instant, so a source that grows
        // meanwhile is no error; what came of it is the size of the destination.
        uninterrupted(|| rustix::fs::ioctl_ficlone(pair.dst, pair.src))?;
        let cloned = file_bytes(&rustix::fs::fstat(pair.dst)?);
        if cloned > len {
            uninterrupted(|| rustix::fs::ftruncate(pair.dst, len))?;
        }
        return Ok(cloned.min(len));
    }
    // A range may end inside a block only where the source ends too.
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
    uninterrupted(|| clone_range(pair, src_at, dst_at, clonable))?;
    Ok(clonable)
}

fn file_bytes(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn uninterrupted(mut call: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
