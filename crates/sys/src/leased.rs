//! Files that cannot change while they are read through a mapping.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io;

use super::last_errno;
use super::map::Map;

/// A regular file under a read lease. The kernel grants it only if the file is not open for writing
/// and has no writable shared mapping. A process that then opens the file for writing or truncates
/// it blocks, and this process gets SIGIO, which ends it unless it handles that signal. The other
/// process continues only after `/proc/sys/fs/lease-break-time` (45 seconds). The bytes therefore
/// cannot change under a reference into a mapping. See `F_SETLEASE` in fcntl(2).
#[derive(Debug)]
pub struct Leased {
    fd: OwnedFd,
    bytes: u64,
}

/// A range of a leased file in memory.
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
    /// `AGAIN` if the file is open for writing, `INVAL` if the file system has no leases, `ACCESS`
    /// if the file belongs to another user.
    ///
    /// # Panics
    /// If SIGIO does not end the process: the lease would guarantee nothing.
    pub fn take(fd: OwnedFd) -> io::Result<Leased> {
        assert!(sigio_ends_the_process(), "a broken lease has to end the process");
        // SAFETY: the arguments are numbers, and `fd` is open.
        let result = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
        if result != 0 {
            return Err(last_errno());
        }
        // The length is read under the lease, so it stays valid.
        let bytes = u64::try_from(rustix::fs::fstat(&fd)?.st_size).unwrap_or(0);
        Ok(Leased { fd, bytes })
    }

    /// Length of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Maps `len` bytes from `offset`, a multiple of the page size. With `populate` all pages are
    /// mapped at once instead of one fault after another. With `sequential` the kernel is advised
    /// that they are read in order.
    ///
    /// # Errors
    /// Those of mmap(2) and madvise(2).
    ///
    /// # Panics
    /// If the range does not lie in the file.
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
        // SAFETY: the range lies in the mapping and, as `Leased::map` checked, in the file. The
        // mapping is read-only, and no process can write to the file or truncate it while the lease
        // that `self` borrows is held.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

/// Whether SIGIO has its default action and is not blocked in this thread.
fn sigio_ends_the_process() -> bool {
    // SAFETY: all zeros is a valid sigaction, which the call overwrites.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes no action, and writes to the structure above.
    let asked = unsafe { libc::sigaction(libc::SIGIO, std::ptr::null(), &raw mut action) };
    // SAFETY: all zeros is a valid, empty set.
    let mut blocked: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: changes no mask, and writes to the set above.
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
    fn no_process_writes_to_a_leased_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let page_bytes = rustix::param::page_size();
        let len = 12 * page_bytes + 848;
        let bytes = testfs::random_bytes(len, 1);
        std::fs::write(&path, &bytes).unwrap();
        let open = || OwnedFd::from(File::open(&path).unwrap());

        let writer = File::options().write(true).open(&path).unwrap();
        assert_eq!(Leased::take(open()).unwrap_err(), io::Errno::AGAIN, "it is open for writing");
        drop(writer);
        let leased = match Leased::take(open()) {
            Err(io::Errno::INVAL) => return testfs::skip(&testfs::test_name(), "no leases here"),
            leased => leased.unwrap(),
        };
        assert_eq!(leased.bytes(), len as u64);
        assert_eq!(&*leased.map(0, len, false, true).unwrap(), &bytes[..]);
        let range = leased.map(page_bytes as u64, 100, true, false).unwrap();
        assert_eq!(&*range, &bytes[page_bytes..page_bytes + 100]);
        drop(range);
        drop(leased);
        // The lease ended with its descriptor: no process blocks or is ended.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        rustix::fs::open(&path, flags, Mode::empty()).unwrap();
    }
}
