//! Destinations that are extended before the copy.

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
    /// Allocates `len` bytes from `dst_at`. If the file system cannot allocate ahead, sets the
    /// length of the file instead.
    ///
    /// # Errors
    /// The outcome of a copy that ends here: ENOSPC and the like are failures, and a destination
    /// without a length, such as a device, is refused. The file then has its previous length.
    pub(crate) fn new(pair: Pair<'_>, dst_at: u64, len: u64) -> Result<Presized, Moved> {
        let presized = Presized::grow(pair, dst_at, len);
        presized.map_err(|errno| match errno {
            errno if is_refusal(errno) => Moved::refused(errno),
            errno => Moved::failed(Side::Dst, errno),
        })
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
        loop {
            match rustix::fs::fallocate(pair.dst, FallocateFlags::empty(), dst_at, len) {
                Ok(()) => return Ok(presized),
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                    presized.shrink_after(pair, 0);
                    return Err(errno);
                }
                // The file system cannot allocate ahead. Setting the length helps as well.
                Err(_) if presized.grown => {
                    rustix::fs::ftruncate(pair.dst, dst_at + len)?;
                    return Ok(presized);
                }
                Err(_) => return Ok(presized),
            }
        }
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
