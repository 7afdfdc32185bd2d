//! Destinations that are extended before the copy.

use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::{Moved, Pair, Side, is_refusal};

/// A destination that was extended to its final length before the copy. Workers then do not wait
/// for one another to extend it, a mapping of it has pages, and a full disk is detected at once.
pub(crate) struct Presized {
    dst_at: u64,
    bytes_before: u64,
    /// The copy extends beyond the previous end.
    grown: bool,
}

impl Presized {
    /// Allocates `len` bytes from `dst_at`, whatever that takes: a mapping of them has pages. If the file
    /// system cannot allocate ahead, sets the length of the file instead.
    ///
    /// # Errors
    /// The outcome of a copy that ends here: ENOSPC and the like are failures, and a destination
    /// without a length, such as a device, is refused. The file then has its previous length.
    pub(crate) fn new(pair: Pair<'_>, dst_at: u64, len: u64) -> Result<Presized, Moved> {
        Presized::grow(pair, dst_at, len).map_err(stopped)
    }

    /// The destination unchanged, about to be written out of order. It is still truncated if the
    /// copy stops before the last byte written.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub(crate) fn as_it_is(pair: Pair<'_>, dst_at: u64, len: u64) -> rustix::io::Result<Presized> {
        let stat = rustix::fs::fstat(pair.dst)?;
        let bytes_before = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(Presized { dst_at, bytes_before, grown: dst_at.saturating_add(len) > bytes_before })
    }

    fn grow(pair: Pair<'_>, dst_at: u64, len: u64) -> rustix::io::Result<Presized> {
        let presized = Presized::as_it_is(pair, dst_at, len)?;
        if presized.allocate(pair, dst_at, len)? == Allocated::No {
            presized.set_length(pair, dst_at + len)?;
        }
        Ok(presized)
    }

    /// Allocates a part of what was announced. If there is no space for it, the file has its previous length.
    fn allocate(&self, pair: Pair<'_>, at: u64, len: u64) -> rustix::io::Result<Allocated> {
        loop {
            match rustix::fs::fallocate(pair.dst, FallocateFlags::empty(), at, len) {
                Ok(()) => return Ok(Allocated::Yes),
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                    self.shrink_after(pair, 0);
                    return Err(errno);
                }
                // The file system cannot allocate ahead.
                Err(_) => return Ok(Allocated::No),
            }
        }
    }

    /// Sets the length of a destination whose space is not allocated ahead. That helps workers as well: no
    /// write extends the file.
    fn set_length(&self, pair: Pair<'_>, end: u64) -> rustix::io::Result<()> {
        if !self.grown {
            return Ok(());
        }
        let set = rustix::fs::ftruncate(pair.dst, end);
        // A part may have been allocated before.
        set.inspect_err(|_| self.shrink_after(pair, 0))
    }

    /// Truncates the destination to the `bytes` that were moved, so that a copy that stopped early
    /// has no tail of zeros. If none were moved, the file has its previous length.
    pub(crate) fn shrink_after(&self, pair: Pair<'_>, bytes: u64) {
        if self.grown {
            let end = if bytes > 0 { self.dst_at + bytes } else { 0 };
            let wanted = end.max(self.bytes_before);
            let longer = rustix::fs::fstat(pair.dst)
                .is_ok_and(|stat| u64::try_from(stat.st_size).is_ok_and(|bytes| bytes > wanted));
            if longer {
                // Callers rely on the count only, and an error here does not change it.
                let _ = rustix::fs::ftruncate(pair.dst, wanted);
            }
        }
    }
}

/// Extends the destinations that workers share, one after another on one file system.
///
/// To allocate space takes some microseconds for any length where the file system only records which blocks
/// are the file's. tmpfs makes each page and fills it with zeros: a GiB takes a quarter of a second, more than
/// half of the time of the copy, in which workers who write make the pages themselves. So short parts of
/// the first destination are allocated and timed. Where all of them take long, only its length is set.
#[derive(Debug, Default)]
pub(crate) struct Presizer {
    /// Parts in a row that took long.
    slow_parts: u32,
    /// Whether the rest of a destination is allocated; `None` before that is known.
    allocates: Option<bool>,
}

/// Bytes of a part that is timed. A write of as much takes longer than a call.
const PART_BYTES: u64 = 2 << 20;

/// A part that takes longer than this is slow. ext4, xfs and btrfs take 5 to 25 µs, tmpfs 500 µs (Zen 5).
const PART_TIME_MAX: Duration = Duration::from_micros(200);

/// Slow parts in a row that decide. One may have waited for a commit of the journal, for bitmaps that had to be
/// read, or for another virtual machine. On ext4 two workers take 1.6 times as long without allocation.
const SLOW_PARTS: u32 = 3;

impl Presizer {
    /// Extends the destination of a span of `len` bytes from `dst_at`.
    ///
    /// # Errors
    /// Those of [`Presized::new`].
    pub(crate) fn extend(
        &mut self,
        pair: Pair<'_>,
        dst_at: u64,
        len: u64,
    ) -> Result<Presized, Moved> {
        self.try_extend(pair, dst_at, len).map_err(stopped)
    }

    fn try_extend(
        &mut self,
        pair: Pair<'_>,
        dst_at: u64,
        len: u64,
    ) -> rustix::io::Result<Presized> {
        let presized = Presized::as_it_is(pair, dst_at, len)?;
        let (mut bytes, mut is_allocated) = (0, true);
        // A destination that has its length may have its blocks as well, which says nothing about new ones.
        while is_allocated && self.allocates.is_none() && presized.grown && len - bytes > PART_BYTES
        {
            let start = Instant::now();
            is_allocated = presized.allocate(pair, dst_at + bytes, PART_BYTES)? == Allocated::Yes;
            if is_allocated {
                self.record(start.elapsed());
                bytes += PART_BYTES;
            }
        }
        let is_allocated = is_allocated
            && self.allocates != Some(false)
            && presized.allocate(pair, dst_at + bytes, len - bytes)? == Allocated::Yes;
        if !is_allocated {
            presized.set_length(pair, dst_at + len)?;
        }
        Ok(presized)
    }

    /// Records how long the allocation of a part took.
    fn record(&mut self, elapsed: Duration) {
        if elapsed <= PART_TIME_MAX {
            (self.slow_parts, self.allocates) = (0, Some(true));
            return;
        }
        self.slow_parts += 1;
        if self.slow_parts == SLOW_PARTS {
            self.allocates = Some(false);
        }
    }
}

/// Whether the file system has allocated what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allocated {
    Yes,
    No,
}

/// The outcome of a copy that ends before its first byte.
fn stopped(errno: Errno) -> Moved {
    match errno {
        errno if is_refusal(errno) => Moved::refused(errno),
        errno => Moved::failed(Side::Dst, errno),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use testfs::FsKind;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn slow_parts_in_a_row_end_the_allocation() {
        let after = |micros: &[u64]| {
            let mut presizer = Presizer::default();
            let decides = |&micros: &u64| {
                presizer.record(Duration::from_micros(micros));
                presizer.allocates.is_some()
            };
            (micros.iter().position(decides), presizer.allocates)
        };
        // How many parts were timed before the last, and what they decided.
        for (micros, expected) in [
            (&[][..], (None, None)),
            (&[9], (Some(0), Some(true))),
            (&[500, 500], (None, None)),
            (&[500, 480, 510], (Some(2), Some(false))),
            (&[20_000, 9], (Some(1), Some(true))),
            (&[20_000, 230, 9], (Some(2), Some(true))),
        ] {
            assert_eq!(after(micros), expected, "{micros:?}");
        }
    }

    /// The length and the allocated bytes of a new destination after `presizer` has extended it twice.
    fn extended(kind: FsKind, mut presizer: Presizer) -> Option<[(u64, u64); 2]> {
        let scratch = testfs::fs(kind)?;
        let dst = File::create_new(scratch.path().join("dst")).unwrap();
        Some([(0, 40 * MIB), (40 * MIB, 8 * MIB + 5)].map(|(at, len)| {
            let pair = Pair::new(dst.as_fd(), dst.as_fd());
            presizer.extend(pair, at, len).expect("there is space");
            let metadata = dst.metadata().unwrap();
            (metadata.len(), metadata.blocks() * 512)
        }))
    }

    #[test]
    fn a_destination_has_its_length_with_and_without_allocation() {
        for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs, FsKind::Tmpfs] {
            for allocates in [Some(true), Some(false), None] {
                let presizer = Presizer { slow_parts: 0, allocates };
                let Some(found) = extended(kind, presizer) else { continue };
                assert_eq!(found.map(|(len, _)| len), [40 * MIB, 48 * MIB + 5], "{kind:?}");
                let allocated = found.map(|(_, allocated)| allocated);
                match allocates {
                    Some(true) => assert!(allocated[1] >= 48 * MIB, "{kind:?}: {allocated:?}"),
                    Some(false) => assert_eq!(allocated, [0; 2], "{kind:?}"),
                    // What is allocated depends on the time that it takes here: all, or the parts.
                    None => assert!(allocated[0] >= PART_BYTES, "{kind:?}: {allocated:?}"),
                }
            }
        }
    }

    #[test]
    fn a_destination_that_does_not_fit_keeps_its_length() {
        let Some(scratch) = testfs::fs(FsKind::Tmpfs) else { return };
        let dst = File::create_new(scratch.path().join("dst")).unwrap();
        dst.set_len(100).unwrap();
        let pair = Pair::new(dst.as_fd(), dst.as_fd());
        let mut presizer = Presizer { slow_parts: 0, allocates: Some(true) };
        let moved = presizer.extend(pair, 0, 1 << 50).err().expect("there is no such space");
        assert_eq!(moved, Moved::failed(Side::Dst, Errno::NOSPC));
        assert_eq!(dst.metadata().unwrap().len(), 100);
    }
}
