//! cachestat(2), which counts a file's pages in the page cache.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::last_errno;

/// `cachestat` has this number on every architecture with the common table. The libc crate does not
/// define it on all of them.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range` of linux/mman.h.
#[repr(C)]
struct Range {
    offset_bytes: u64,
    len_bytes: u64,
}

/// `struct cachestat` of linux/mman.h: pages of one range of a file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cachestat {
    /// Pages in the page cache.
    pub cached_pages: u64,
    /// Of these, pages that are dirty.
    pub dirty_pages: u64,
    /// Pages under writeback.
    pub writeback_pages: u64,
    /// Pages that were evicted from the page cache.
    pub evicted_pages: u64,
    /// Of these, pages that were evicted recently.
    pub recently_evicted_pages: u64,
}

/// `int cachestat(unsigned int fd, struct cachestat_range *, struct cachestat *, unsigned int)`
///
/// Counts the pages of `len_bytes` bytes from `offset_bytes`. A length of 0 means up to the end of
/// the file. See cachestat(2), Linux 6.5.
///
/// # Errors
/// `NOSYS` on older kernels and under seccomp filters that do not know the call. Such filters may
/// also return EPERM. Since Linux 6.13 EPERM also means a file neither owned nor writable.
/// `OPNOTSUPP` for hugetlbfs.
pub fn cachestat(
    fd: BorrowedFd<'_>,
    offset_bytes: u64,
    len_bytes: u64,
) -> rustix::io::Result<Cachestat> {
    let range = Range { offset_bytes, len_bytes };
    let mut counted = Cachestat::default();
    // SAFETY: the kernel reads one `struct cachestat_range` and writes one `struct cachestat`. Both
    // have the layout of the C header and outlive the call. `fd` is open while it is borrowed.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut counted, 0_u32)
    };
    if result == 0 { Ok(counted) } else { Err(last_errno()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn counts_the_pages_just_written() {
        let mut file = tempfile::tempfile().expect("created");
        let page_bytes = rustix::param::page_size();
        file.write_all(&vec![7; 3 * page_bytes]).expect("written");
        match cachestat(file.as_fd(), 0, 0) {
            Ok(counted) => assert_eq!(counted.cached_pages, 3),
            Err(Errno::NOSYS | Errno::PERM) => eprintln!("skipped: no cachestat here"),
            Err(errno) => panic!("cachestat: {errno}"),
        }
        let one = cachestat(file.as_fd(), 0, page_bytes as u64);
        assert!(one.map_or(true, |counted| counted.cached_pages == 1), "{one:?}");
    }

    #[test]
    fn a_pipe_has_no_pages() {
        let (reader, _writer) = rustix::pipe::pipe().expect("created");
        let pages = cachestat(reader.as_fd(), 0, 0).map_or(0, |counted| counted.cached_pages);
        assert_eq!(pages, 0);
    }
}
