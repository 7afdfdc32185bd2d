//! Writable mappings of ranges of files, without a reference into them.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io;

use super::guarded::Guard;
use super::last_errno;
use super::map::Map;

/// A range of a file that is mapped for writing.
pub struct Window {
    map: Map,
    len: usize,
}

impl Window {
    /// Maps `len` bytes of `fd` from `offset`, a multiple of the page size. The file must be open
    /// for reading and writing and extend to the end of the window. With `populate` all pages are
    /// mapped at once instead of one fault after another.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(fd: BorrowedFd<'_>, offset: u64, len: usize, populate: bool) -> io::Result<Window> {
        Ok(Window { map: Map::writable(fd, offset, len, populate)?, len })
    }

    /// The length of the window in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether its length is 0, which mmap(2) does not allow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills the window with words: word 0 is `word(0)`, in native byte order.
    ///
    /// # Errors
    /// The bytes before the first page that the file does not have, or for which it has no space.
    pub fn fill(&mut self, guard: &Guard, word: impl Fn(usize) -> u64) -> Result<(), usize> {
        guard.fill(&mut self.map, 0, self.len, word)
    }

    /// `ssize_t read(int fd, void *buf, size_t count)` into the window after its first `from`
    /// bytes, directly into the file's pages; see read(2).
    ///
    /// # Errors
    /// Those of read(2): `FAULT` for a page that the file does not have, or for which it has no
    /// space.
    ///
    /// # Panics
    /// If `from` lies beyond the window.
    pub fn read_from(&mut self, from: usize, fd: BorrowedFd<'_>) -> io::Result<usize> {
        assert!(from <= self.len, "beyond the window");
        let left = self.len - from;
        let start = self.map.at(from, left);
        // SAFETY: `at` checked that the range lies in the mapping, to which no reference exists.
        // The kernel writes there, and the descriptor is borrowed and therefore open.
        let got = unsafe { libc::read(fd.as_raw_fd(), start, left) };
        usize::try_from(got).map_err(|_| last_errno())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn bytes_read_into_the_window_are_in_the_file() {
        let file = tempfile::tempfile().unwrap();
        let offset = 2 * rustix::param::page_size() as u64;
        file.set_len(offset + 1808).unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&testfs::random_bytes(1808, 1)).unwrap();
        let mut window = Window::new(file.as_fd(), offset, 1808, false).unwrap();
        assert_eq!(window.len(), 1808);
        assert_eq!(window.read_from(0, reader.as_fd()), Ok(1808));
        writer.write_all(b"again").unwrap();
        assert_eq!(window.read_from(1800, reader.as_fd()), Ok(5));
        let mut expected = testfs::random_bytes(1808, 1);
        expected[1800..1805].copy_from_slice(b"again");
        let mut found = vec![0; 1808];
        file.read_exact_at(&mut found, offset).unwrap();
        assert_eq!(found, expected);
        writer.write_all(b"no page").unwrap();
        file.set_len(0).unwrap();
        assert_eq!(window.read_from(0, reader.as_fd()), Err(io::Errno::FAULT));
    }
}
