//! Memory for bytes on their way, at a chosen distance from a page boundary.

use std::io;

use rustix::param::page_size;

use super::map::Map;

/// The distance from a page boundary at which glibc's malloc places a large block.
const MALLOC_OFFSET_BYTES: usize = 16;

/// A block of memory that begins as zeros. Its pages come with their first use, so that a small file
/// does not pay for a large buffer.
pub(crate) struct Buffer {
    map: Map,
    offset: usize,
    len: usize,
}

impl Buffer {
    /// `len` bytes from the start of a page.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn page_aligned(len: usize) -> io::Result<Buffer> {
        Buffer::at_offset(len, 0)
    }

    /// `len` bytes where malloc would put them: 16 past the start of a page.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn off_alignment(len: usize) -> io::Result<Buffer> {
        Buffer::at_offset(len, MALLOC_OFFSET_BYTES)
    }

    fn at_offset(len: usize, offset: usize) -> io::Result<Buffer> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = len.checked_add(offset).ok_or_else(out_of_memory)?.max(1);
        let map = Map::untouched(bytes).map_err(|_| out_of_memory())?;
        Ok(Buffer { map, offset, len })
    }

    /// Writes to each page, so that its first use in a timed copy faults in nothing.
    pub(crate) fn touch(&mut self) {
        // To be sure that no page is missed between the first byte and the last of one.
        let step = page_size();
        let bytes = self.as_mut_slice();
        bytes.iter_mut().step_by(step).for_each(|byte| *byte = 1);
        if let Some(last) = bytes.last_mut() {
            *last = 1;
        }
    }

    /// The bytes.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let start = self.map.at(self.offset, self.len).cast::<u8>();
        // SAFETY: the mapping is of private memory that nobody else knows of, zeros at first; `at`
        // checked that the range lies in it. It lives as long as `self`, and the borrow of `self`
        // keeps every other access out.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }
}
