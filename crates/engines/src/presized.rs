//! Destinations made long enough ahead.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::Pair;

/// A destination that was made long enough before the copy: workers then do not wait for one another
/// to extend it, a mapping of it has pages behind it, and a full disk is known at once.
pub(crate) struct Presized {
    bytes_before: u64,
    grown: bool,
}

impl Presized {
    /// Allocates `len` bytes from `dst_at` on, or where the file system cannot do that ahead, makes
    /// the file that long.
    ///
    /// # Errors
    /// ENOSPC and its like; the file is then as long as it was.
    pub(crate) fn new(pair: Pair<'_>, dst_at: u64, len: u64) -> rustix::io::Result<Presized> {
        let stat = rustix::fs::fstat(pair.dst)?;
        let bytes_before = u64::try_from(stat.st_size).unwrap_or(0);
        let end = dst_at + len;
        let grown = end > bytes_before;
        loop {
            match rustix::fs::fallocate(pair.dst, FallocateFlags::empty(), dst_at, len) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                    let presized = Presized { bytes_before, grown };
                    presized.shrink_to(pair, dst_at);
                    return Err(errno);
                }
                // The file system cannot allocate ahead; the length alone helps too.
                Err(_) if grown => {
                    rustix::fs::ftruncate(pair.dst, end)?;
                    break;
                }
                Err(_) => break,
            }
        }
        Ok(Presized { bytes_before, grown })
    }

    /// Takes back what was added beyond `end`, so that a copy that stopped early has no tail of
    /// zeros.
    pub(crate) fn shrink_to(&self, pair: Pair<'_>, end: u64) {
        if self.grown {
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
