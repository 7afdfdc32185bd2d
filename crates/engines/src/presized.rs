//! Destinations made long enough ahead.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::{Moved, Pair, Side, is_refusal};

/// A destination that was made long enough before the copy: workers then do not wait for one another
/// to extend it, a mapping of it has pages behind it, and a full disk is known at once.
pub(crate) struct Presized {
    dst_at: u64,
    bytes_before: u64,
    /// The copy reaches beyond what was there before.
    grown: bool,
}

impl Presized {
    /// Allocates `len` bytes from `dst_at` on, or where the file system cannot do that ahead, makes
    /// the file that long.
    ///
    /// # Errors
    /// The outcome of a copy that ends here: ENOSPC and its like are failures, and what has no
    /// length, such as a device, is refused. The file is then as long as it was.
    pub(crate) fn new(pair: Pair<'_>, dst_at: u64, len: u64) -> Result<Presized, Moved> {
        let presized = Presized::grow(pair, dst_at, len);
        presized.map_err(|errno| match errno {
            errno if is_refusal(errno) => Moved::refused(errno),
            errno => Moved::failed(Side::Dst, errno),
        })
    }

    /// The destination as it is, about to be written out of order: to be cut back all the same when
    /// the copy stops before what was written last.
    ///
    /// # Errors
    /// What fstat(2) gives.
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
                // The file system cannot allocate ahead; the length alone helps too.
                Err(_) if presized.grown => {
                    rustix::fs::ftruncate(pair.dst, dst_at + len)?;
                    return Ok(presized);
                }
                Err(_) => return Ok(presized),
            }
        }
    }

    /// Takes back what was added beyond the `bytes` that were moved, so that a copy that stopped
    /// early has no tail of zeros. When none were, the file is as long as it was.
    pub(crate) fn shrink_after(&self, pair: Pair<'_>, bytes: u64) {
        if self.grown {
            let end = if bytes > 0 { self.dst_at + bytes } else { 0 };
            let wanted = end.max(self.bytes_before);
            let longer = rustix::fs::fstat(pair.dst)
                .is_ok_and(|stat| u64::try_from(stat.st_size).is_ok_and(|bytes| bytes > wanted));
            if longer {
                // A failure leaves the count right, which is what callers rely on.
                let _ = rustix::fs::ftruncate(pair.dst, wanted);
            }
        }
    }
}
