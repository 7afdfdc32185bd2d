//! Memory through which bytes are copied, at a chosen offset from the start of a page.

use std::io;
use std::sync::OnceLock;

use rustix::param::page_size;

use super::map::{Map, huge_page_bytes};

/// The length of a [`Page`] in bytes: the smallest page size of Linux.
pub const PAGE_BYTES: usize = 4096;

/// The longest buffer that is put into huge pages where the system uses none: it is allocated to its end,
/// however little of it is used.
const COLLAPSED_BYTES_MAX: usize = 32 << 20;

/// Whether the administrator has told the kernel not to use huge pages, advice or not.
fn system_uses_no_huge_pages() -> bool {
    static IS_NEVER: OnceLock<bool> = OnceLock::new();
    *IS_NEVER.get_or_init(|| {
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .is_ok_and(|setting| setting.contains("[never]"))
    })
}

/// A block of zeroed memory. The kernel allocates each page on first use, so a small file does not
/// pay for a large buffer.
///
/// It starts on a page boundary unless another offset is requested. On some processors the kernel
/// copies to and from user memory at half the speed at other offsets (docs/design/engines.md, "The
/// offset of a buffer").
pub struct Buffer {
    map: Map,
    offset_bytes: usize,
    len: usize,
}

impl Buffer {
    /// `len` bytes that start on a page boundary.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn page_aligned(len: usize) -> io::Result<Buffer> {
        Buffer::at_offset(len, 0)
    }

    /// `len` bytes that start `offset_bytes` past the start of a page.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn at_offset(len: usize, offset_bytes: usize) -> io::Result<Buffer> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = len.checked_add(offset_bytes).ok_or_else(out_of_memory)?.max(1);
        let map = Map::untouched(bytes).map_err(|_| out_of_memory())?;
        Ok(Buffer { map, offset_bytes, len })
    }

    /// `len` bytes that start on a page boundary, for direct I/O. If they fill a huge page (2 MiB on x86-64), they
    /// start on the boundary of one, and the kernel uses huge pages where it has them. The first use of each zeroes
    /// all of it. Where `/sys/kernel/mm/transparent_hugepage/enabled` is `never`, buffers of up to 32 MiB are in
    /// huge pages too.
    ///
    /// A device takes a limited number of segments in a request, and each page of scattered memory is a segment of
    /// its own. With small pages one read of 1 MiB may fill the queue of a virtual disk, so that no second one is
    /// in flight (docs/design/engines.md, "The pages of a buffer").
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn for_direct_io(len: usize) -> io::Result<Buffer> {
        if len < huge_page_bytes() {
            return Buffer::page_aligned(len);
        }
        let map = if len <= COLLAPSED_BYTES_MAX && system_uses_no_huge_pages() {
            Map::in_huge_pages(len)
        } else {
            Map::untouched_in_huge_pages(len)
        };
        match map {
            Ok(map) => Ok(Buffer { map, offset_bytes: 0, len }),
            // It takes more addresses at first than it keeps, which a limit may forbid.
            Err(_) => Buffer::page_aligned(len),
        }
    }

    /// Writes to each page, so that no page fault occurs during a timed copy.
    pub fn touch(&mut self) {
        // The step visits each page between the first and the last byte once.
        let step = page_size();
        let bytes = self.as_mut_slice();
        bytes.iter_mut().step_by(step).for_each(|byte| *byte = 1);
        if let Some(last) = bytes.last_mut() {
            *last = 1;
        }
    }

    /// The bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let start = self.address(0, self.len);
        // SAFETY: the mapping is private memory that no other code refers to, zeroed at first.
        // `address` checked that the range lies in it. It lives as long as `self`, and the borrow of
        // `self` excludes every other access. A ring, whose buffers the kernel refers to, takes only
        // `address` and `part` while an operation is in flight.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }

    /// The address of bytes `from..from + len`. No reference is made to them.
    ///
    /// # Panics
    /// If they lie outside the buffer.
    pub(super) fn address(&self, from: usize, len: usize) -> *mut u8 {
        assert!(from.checked_add(len).is_some_and(|end| end <= self.len), "outside the buffer");
        self.map.at(self.offset_bytes + from, len).cast::<u8>()
    }

    /// Bytes `from..from + len`. The kernel may write to others meanwhile, and not to these: the ring
    /// asks for a slot's bytes only while no operation is in flight there.
    ///
    /// # Panics
    /// If they lie outside the buffer.
    pub(super) fn part(&mut self, from: usize, len: usize) -> &[u8] {
        let start = self.address(from, len);
        // SAFETY: the reference covers these bytes only, which nothing else refers to, as above.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

/// A page of zeros on the stack, of the smallest page size, for a few bytes that do not justify a mapping.
#[repr(align(4096))]
pub struct Page(pub [u8; PAGE_BYTES]);

impl Page {
    /// A page of zeros.
    pub fn zeros() -> Page {
        Page([0; PAGE_BYTES])
    }
}

#[cfg(test)]
mod tests {
    use testfs::offset_in_page;

    use super::*;
    use crate::map::tests::mapping_field;

    #[test]
    fn a_buffer_starts_at_the_requested_offset() {
        for len in [0, 1, 15, 4096, 4097, 256 << 10, (8 << 20) + 1] {
            let mut aligned = Buffer::page_aligned(len).expect("memory");
            assert_eq!(offset_in_page(aligned.as_mut_slice()), 0, "{len}");
            for offset_bytes in [0, 1, 16, 64, 512, 2048, 4095] {
                let mut buffer = Buffer::at_offset(len, offset_bytes).expect("memory");
                assert_eq!(offset_in_page(buffer.as_mut_slice()), offset_bytes, "{len}");
                assert_eq!(buffer.as_mut_slice().len(), len);
                assert!(buffer.as_mut_slice().iter().all(|&byte| byte == 0));
                buffer.touch();
                assert_eq!(buffer.as_mut_slice().last().copied().unwrap_or(1), 1);
            }
        }
    }

    #[test]
    fn a_large_buffer_for_direct_io_asks_for_huge_pages() {
        let huge = huge_page_bytes();
        let has_huge_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        if !has_huge_pages {
            testfs::skip(&testfs::test_name(), "the kernel has no transparent huge pages");
        }
        for len in [1, huge - 1, huge, huge + 1, 2 * huge + 4097] {
            let mut buffer = Buffer::for_direct_io(len).expect("memory");
            let bytes = buffer.as_mut_slice();
            let (address, is_large) = (bytes.as_ptr().addr(), len >= huge);
            assert_eq!(bytes.len(), len);
            assert_eq!(address % if is_large { huge } else { page_size() }, 0, "{len}");
            if has_huge_pages {
                let flags = mapping_field(address, "VmFlags").expect("the mapping is listed");
                let is_advised = flags.split_whitespace().any(|flag| flag == "hg");
                assert_eq!(is_advised, is_large, "{len}: {flags}");
            }
        }
    }

    #[test]
    fn too_large_a_buffer_is_an_error() {
        for (len, offset_bytes) in [(usize::MAX, 0), (usize::MAX, 16), (isize::MAX as usize, 0)] {
            let error = Buffer::at_offset(len, offset_bytes).err().expect("not so much");
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
            let error = Buffer::for_direct_io(len).err().expect("not so much");
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        }
    }

    #[test]
    fn a_page_on_the_stack_starts_on_a_page_boundary() {
        fn check(depth: usize) {
            let page = Page::zeros();
            assert_eq!(page.0.as_ptr().addr() % PAGE_BYTES, 0);
            // Frames of different lengths move the next frame to different addresses.
            let between = [depth; 3];
            if depth > 0 {
                check(std::hint::black_box(between)[0] - 1);
            }
        }
        check(5);
    }
}
