//! Files that stay as they are while they are read through a mapping.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io;

use super::last_errno;
use super::map::Map;

/// A regular file under a read lease, which the kernel grants only where nobody has the file open
/// for writing or holds a shared mapping for it. Whoever opens it for writing or truncates it from
/// then on is kept waiting, and this process gets SIGIO, which ends it unless it handles that; only
/// after `/proc/sys/fs/lease-break-time` (45 seconds) would the other go on. So the bytes cannot
/// change under a reference into a mapping. See `F_SETLEASE` in fcntl(2).
#[derive(Debug)]
pub struct Leased {
    fd: OwnedFd,
    bytes: u64,
}

/// A stretch of a leased file in memory.
pub struct LeasedMap<'l> {
    map: Map,
    len: usize,
    lease: PhantomData<&'l Leased>,
}

impl Leased {
    /// `int fcntl(int fd, F_SETLEASE, F_RDLCK)`
    ///
    /// Takes the lease on `fd`, which is open for reading only.
    ///
    /// # Errors
    /// `AGAIN` when somebody has the file open for writing, `INVAL` where the file system knows no
    /// leases, `ACCESS` for somebody else's file.
    ///
    /// # Panics
    /// When the process has arranged to outlive SIGIO: the lease would be no promise.
    pub fn take(fd: OwnedFd) -> io::Result<Leased> {
        assert!(sigio_ends_the_process(), "a broken lease has to end the process");
        // SAFETY: the call takes numbers only, and `fd` is open.
        let result = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
        if result != 0 {
            return Err(last_errno());
        }
        // Looked at under the lease, so that it stays true.
        let bytes = u64::try_from(rustix::fs::fstat(&fd)?.st_size).unwrap_or(0);
        Ok(Leased { fd, bytes })
    }

    /// Length of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Maps `len` bytes from `offset`, a multiple of the page size. With `populate` all pages are
    /// mapped at once rather than one fault after another; with `sequential` the kernel is told that
    /// they are read in order.
    ///
    /// # Errors
    /// Those of mmap(2) and madvise(2).
    ///
    /// # Panics
    /// When the stretch does not lie within the file.
    pub fn map(
        &self,
        offset: u64,
        len: usize,
        populate: bool,
        sequential: bool,
    ) -> io::Result<LeasedMap<'_>> {
        let end = offset.checked_add(len as u64);
        assert!(end.is_some_and(|end| end <= self.bytes), "beyond the end of the file");
        let map = Map::readable(self.fd.as_fd(), offset, len, populate)?;
        if sequential {
            map.advise_sequential()?;
        }
        Ok(LeasedMap { map, len, lease: PhantomData })
    }
}

impl AsFd for Leased {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::ops::Deref for LeasedMap<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.map.at(0, self.len).cast_const().cast();
        // SAFETY: the range lies within the mapping and, as `Leased::map` has checked, within the
        // file. The mapping is for reading only, and while the lease that `self` borrows is held
        // nobody else can write to the file or cut it.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

/// Whether SIGIO has its default action and is not blocked in this thread.
fn sigio_ends_the_process() -> bool {
    // SAFETY: all zeros is a valid sigaction, to be overwritten.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and writes to the structure above.
    let asked = unsafe { libc::sigaction(libc::SIGIO, std::ptr::null(), &raw mut action) };
    // SAFETY: all zeros is a valid, empty set.
    let mut blocked: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and writes to the set above.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked) };
    // SAFETY: the set is valid, and SIGIO is a signal.
    let is_blocked = unsafe { libc::sigismember(&raw const blocked, libc::SIGIO) } == 1;
    asked == 0 && action.sa_sigaction == libc::SIG_DFL && !is_blocked
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn nobody_writes_to_what_is_leased() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let bytes = testfs::random_bytes(50_000, 1);
        std::fs::write(&path, &bytes).unwrap();
        let open = || OwnedFd::from(File::open(&path).unwrap());

        let writer = File::options().write(true).open(&path).unwrap();
        assert_eq!(Leased::take(open()).unwrap_err(), io::Errno::AGAIN, "it is open for writing");
        drop(writer);
        let leased = match Leased::take(open()) {
            Err(io::Errno::INVAL) => return testfs::skip(&testfs::test_name(), "no leases here"),
            leased => leased.unwrap(),
        };
        assert_eq!(leased.bytes(), 50_000);
        assert_eq!(&*leased.map(0, 50_000, false, true).unwrap(), &bytes[..]);
        assert_eq!(&*leased.map(8192, 100, true, false).unwrap(), &bytes[8192..8292]);
        drop(leased);
        // The lease went with its descriptor: nobody waits, and nobody is ended.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        rustix::fs::open(&path, flags, Mode::empty()).unwrap();
    }
}
