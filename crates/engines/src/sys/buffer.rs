//! Memory for bytes on their way, at a chosen distance from a page boundary.

use std::alloc::{Layout, alloc, dealloc};
use std::io;
use std::ptr::NonNull;

/// The distance from a page boundary at which glibc's malloc places a large block.
const MALLOC_OFFSET_BYTES: usize = 16;

/// A block of memory, every page of it touched: its first use in a timed copy faults in nothing.
pub(crate) struct Buffer {
    base: NonNull<u8>,
    layout: Layout,
    offset: usize,
    len: usize,
}

// SAFETY: a Buffer owns its memory alone; nothing in it is bound to a thread.
unsafe impl Send for Buffer {}

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
        let layout = Layout::from_size_align(bytes, rustix::param::page_size())
            .map_err(|_| out_of_memory())?;
        // SAFETY: the layout has at least one byte.
        let base = NonNull::new(unsafe { alloc(layout) }).ok_or_else(out_of_memory)?;
        // SAFETY: the block has `layout.size()` bytes, and nobody else knows of it yet. Writing
        // them initialises them and touches each page.
        unsafe { base.as_ptr().write_bytes(1, layout.size()) };
        Ok(Buffer { base, layout, offset, len })
    }

    /// The bytes.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `offset` lies within the block.
        let start = unsafe { self.base.as_ptr().add(self.offset) };
        // SAFETY: `at_offset` allocated and initialised `offset + len` bytes, which live as long
        // as `self`, and the borrow of `self` keeps every other access out.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `base` came from `alloc` with this very layout and is freed once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
