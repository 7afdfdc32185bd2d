//! Destinations that are extended before the copy.

use std::os::fd::BorrowedFd;

use rustix::fs::{FallocateFlags, IFlags, fallocate, ioctl_getflags};
use rustix::io::{Errno, retry_on_intr};

use crate::fs_types::{BTRFS, TMPFS, fs_type_of};
use crate::mount::Mount;
use crate::moved::stop_for;
use crate::{Moved, Pair, Side};

/// A destination that was extended to its final length before the copy. Workers then do not wait
/// for one another to extend it, a mapping of it has pages, and a full disk is detected at once.
#[derive(Debug)]
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
        Presized::grow(pair, dst_at, len, true).map_err(stopped)
    }

    /// Extends the destination for a copy that writes all of the `len` bytes from `dst_at`. On tmpfs only the
    /// length of the file is set: to allocate a page there is to fill it with zeros, which takes a quarter of a
    /// second for a GiB, more than half of the time of the copy that then fills it again. Other file systems
    /// only record which blocks are the file's (5 to 25 µs for any length on ext4, xfs and btrfs), but btrfs
    /// compresses nothing that is written there.
    ///
    /// # Errors
    /// Those of [`Presized::new`].
    pub(crate) fn for_writes(pair: Pair<'_>, dst_at: u64, len: u64) -> Result<Presized, Moved> {
        let allocates = match fs_type_of(pair.dst) {
            Some(TMPFS) => false,
            Some(BTRFS) => !compresses(pair.dst),
            _ => true,
        };
        Presized::grow(pair, dst_at, len, allocates).map_err(stopped)
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

    fn grow(
        pair: Pair<'_>,
        dst_at: u64,
        len: u64,
        allocates: bool,
    ) -> rustix::io::Result<Presized> {
        let presized = Presized::as_it_is(pair, dst_at, len)?;
        let allocate = || fallocate(pair.dst, FallocateFlags::empty(), dst_at, len);
        match if allocates { retry_on_intr(allocate) } else { Err(Errno::OPNOTSUPP) } {
            Ok(()) => {}
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                // Part of the bytes may be allocated.
                presized.shrink_after(pair, 0);
                return Err(errno);
            }
            // The file system cannot allocate ahead, or is not asked to.
            Err(_) => presized.set_length(pair, dst_at + len)?,
        }
        Ok(presized)
    }

    /// Sets the length of a destination whose space is not allocated ahead. That helps workers as well: no
    /// write extends the file.
    fn set_length(&self, pair: Pair<'_>, end: u64) -> rustix::io::Result<()> {
        if !self.grown {
            return Ok(());
        }
        let set = rustix::fs::ftruncate(pair.dst, end);
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

/// Whether btrfs compresses what is written to `fd`, as far as its flags and the options of the mount tell.
pub fn compresses(fd: BorrowedFd<'_>) -> bool {
    let is_marked = ioctl_getflags(fd).is_ok_and(|flags| flags.contains(IFlags::COMPRESSED));
    is_marked || Mount::of(fd).is_none_or(|mount| mount.options.contains("compress"))
}

/// Bytes of the source from `src_at` to its end.
pub(crate) fn src_bytes_from(pair: Pair<'_>, src_at: u64) -> rustix::io::Result<u64> {
    let src_bytes = rustix::fs::fstat(pair.src)?.st_size;
    Ok(u64::try_from(src_bytes).unwrap_or(0).saturating_sub(src_at))
}

/// The outcome of a copy that ends before its first byte.
fn stopped(errno: Errno) -> Moved {
    Moved { bytes: 0, stop: stop_for(Side::Dst, errno) }
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
    fn a_destination_has_its_length_and_its_blocks_except_on_tmpfs() {
        for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs, FsKind::Tmpfs] {
            let Some(scratch) = testfs::fs(kind) else { continue };
            let dst = File::create_new(scratch.path().join("dst")).unwrap();
            let pair = Pair::new(dst.as_fd(), dst.as_fd());
            for (at, len) in [(0, 40 * MIB), (40 * MIB, 8 * MIB + 5)] {
                Presized::for_writes(pair, at, len).expect("there is space");
                let metadata = dst.metadata().unwrap();
                assert_eq!(metadata.len(), at + len, "{kind:?}");
                let allocated = metadata.blocks() * 512;
                match kind {
                    FsKind::Tmpfs => assert_eq!(allocated, 0),
                    _ => assert!(allocated >= at + len, "{kind:?}: {allocated}"),
                }
            }
        }
    }

    #[test]
    fn what_btrfs_compresses_has_no_blocks_before() {
        let Some(scratch) = testfs::fs(FsKind::Btrfs) else { return };
        let dst = File::create_new(scratch.path().join("dst")).unwrap();
        let pair = Pair::new(dst.as_fd(), dst.as_fd());
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::fsetxattr(&dst, "btrfs.compression", b"zstd", flags).expect("set");
        Presized::for_writes(pair, 0, 40 * MIB).expect("there is space");
        let metadata = dst.metadata().unwrap();
        assert_eq!((metadata.len(), metadata.blocks()), (40 * MIB, 0));
    }

    #[test]
    fn a_destination_that_does_not_fit_keeps_its_length() {
        // tmpfs refuses at once, and takes no space from other tests.
        let Some(scratch) = testfs::fs(FsKind::Tmpfs) else { return };
        let dst = File::create_new(scratch.path().join("dst")).unwrap();
        dst.set_len(100).unwrap();
        let pair = Pair::new(dst.as_fd(), dst.as_fd());
        let moved = Presized::new(pair, 0, 1 << 50).expect_err("there is no such space");
        assert_eq!(moved, Moved::failed(Side::Dst, Errno::NOSPC));
        assert_eq!(dst.metadata().unwrap().len(), 100);
    }
}
