//! mincore(2), which counts a file's pages in memory that have been read.

use std::os::fd::BorrowedFd;

use super::last_errno;
use super::map::Map;

/// `int mincore(void *addr, size_t length, unsigned char *vec)`
///
/// Counts the pages of the `len` bytes of `fd` from the offset `at`, a multiple of the page size, that are in
/// memory. Pages that are being read do not count; cachestat(2) counts them. Reads no pages in. See mincore(2).
///
/// # Errors
/// Those of mmap(2) and mincore(2). For files that the caller neither owns nor may write, the
/// kernel reports all pages as resident.
pub fn mincore(fd: BorrowedFd<'_>, at: u64, len: usize) -> rustix::io::Result<u64> {
    if len == 0 {
        return Ok(0);
    }
    let map = Map::readable(fd, at, len, false)?;
    let mut pages = vec![0_u8; len.div_ceil(rustix::param::page_size())];
    // SAFETY: the range is a live mapping of `len` bytes, of which no page is accessed. The vector
    // has one byte for each of its pages.
    let result = unsafe { libc::mincore(map.base(), len, pages.as_mut_ptr()) };
    if result != 0 {
        return Err(last_errno());
    }
    // The other bits are undefined.
    Ok(pages.iter().filter(|page| **page & 1 != 0).count() as u64)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn counts_the_pages_just_written() {
        let mut file = tempfile::tempfile().expect("created");
        let page_bytes = rustix::param::page_size();
        file.write_all(&vec![7; 3 * page_bytes]).expect("written");
        let count =
            |at_pages: usize, len| mincore(file.as_fd(), (at_pages * page_bytes) as u64, len);
        assert_eq!(count(0, 2 * page_bytes + 1), Ok(3));
        assert_eq!(count(1, 8 * page_bytes), Ok(2), "none after the end of the file");
        assert_eq!(count(0, 0), Ok(0));
    }
}
