//! Mappings of files and of plain memory. No slice is ever created over a file's mapping: another
//! process may change or truncate the file at any time, and Rust's references forbid both.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::last_errno;

/// The length of a huge page on x86-64 and AArch64: what one page of the page table maps, whose entries have 8
/// bytes. With small pages of 4 KiB it is 2 MiB, with those of 64 KiB 512 MiB.
pub(super) fn huge_page_bytes() -> usize {
    let page_bytes = rustix::param::page_size();
    page_bytes * (page_bytes / size_of::<u64>())
}

/// `MADV_COLLAPSE` of `linux/mman.h`, since Linux 6.1. The crates define it for some C libraries only.
const MADV_COLLAPSE: libc::c_int = 25;

/// A mapping, unmapped when dropped.
pub struct Map {
    base: *mut c_void,
    len: usize,
    /// Another process may change the bytes, or make the file shorter.
    is_file: bool,
}

// SAFETY: a mapping belongs to the process, not to a thread, and a `Map` is the only owner of its
// mapping.
unsafe impl Send for Map {}

impl Map {
    /// `void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)`
    ///
    /// Maps `len` bytes of `fd` from `offset`, a multiple of the page size, for reading.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn readable(
        fd: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        populate: bool,
    ) -> rustix::io::Result<Map> {
        Map::of_file(fd, offset, len, ProtFlags::READ, populate)
    }

    /// Maps `len` bytes of `fd` from `offset`, a multiple of the page size, for reading and writing. The
    /// file must be open for both.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn writable(
        fd: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        populate: bool,
    ) -> rustix::io::Result<Map> {
        Map::of_file(fd, offset, len, ProtFlags::READ | ProtFlags::WRITE, populate)
    }

    fn of_file(
        fd: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        prot: ProtFlags,
        populate: bool,
    ) -> rustix::io::Result<Map> {
        let flags = if populate { MapFlags::SHARED | MapFlags::POPULATE } else { MapFlags::SHARED };
        // SAFETY: without MAP_FIXED and with a null hint the kernel chooses unused addresses.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, prot, flags, fd, offset) }?;
        Ok(Map { base, len, is_file: true })
    }

    /// `len` bytes of memory of which no page was accessed.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn untouched(len: usize) -> rustix::io::Result<Map> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as for a file: the kernel chooses unused addresses.
        let base = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, prot, MapFlags::PRIVATE)
        }?;
        Ok(Map { base, len, is_file: false })
    }

    /// Maps `len` bytes of memory, of which no page was accessed, from the boundary of a huge page, with the
    /// advice to use huge pages (MADV_HUGEPAGE; see madvise(2)). The kernel uses small pages for what is left
    /// after the last whole huge page, and where it has no huge page.
    pub(super) fn untouched_in_huge_pages(len: usize) -> rustix::io::Result<Map> {
        let map = Map::from_huge_page(len)?;
        // A kernel without huge pages refuses the advice.
        // SAFETY: the range is this mapping of private memory, and the advice changes only how the kernel
        // backs it.
        let _ = unsafe { rustix::mm::madvise(map.base, map.len, Advice::LinuxHugepage) };
        Ok(map)
    }

    /// Maps `len` bytes of memory in huge pages from the start (MADV_COLLAPSE, since Linux 6.1), also where
    /// the system's setting is to use none. All bytes are 0. The kernel uses small pages where it has no huge
    /// page.
    pub(super) fn in_huge_pages(len: usize) -> rustix::io::Result<Map> {
        let map = Map::untouched_in_huge_pages(len)?;
        // What was not collapsed is backed when it is used.
        // SAFETY: the mapping was just made of private memory.
        let _ = unsafe { map.collapse() };
        Ok(map)
    }

    fn from_huge_page(len: usize) -> rustix::io::Result<Map> {
        let len = len.checked_next_multiple_of(rustix::param::page_size()).ok_or(Errno::NOMEM)?;
        let mut map = Map::untouched(len.checked_add(huge_page_bytes()).ok_or(Errno::NOMEM)?)?;
        let offset = map.base.addr().wrapping_neg() % huge_page_bytes();
        map.keep_only(offset, len)?;
        Ok(map)
    }

    /// Backs the whole huge pages of the mapping with huge pages.
    ///
    /// # Safety
    /// It is private memory of which nothing was accessed, made by [`Map::untouched`], and nothing refers to it.
    ///
    /// # Errors
    /// Those of madvise(2): EINVAL where the kernel has no MADV_COLLAPSE or no huge pages, and EAGAIN, EBUSY or
    /// ENOMEM if none is left.
    unsafe fn collapse(&self) -> rustix::io::Result<()> {
        let len = self.len - self.len % huge_page_bytes();
        for from in (0..len).step_by(huge_page_bytes()) {
            // The kernel collapses only what has a page already.
            // SAFETY: `at` checked that the byte lies in the mapping. The caller has just made it of private
            // memory, so it is zero, and nothing refers to it.
            unsafe { self.at(from, 1).cast::<u8>().write(0) };
        }
        // SAFETY: the range lies in this mapping of private memory, whose bytes stay the same.
        let result = unsafe { libc::madvise(self.base, len, MADV_COLLAPSE) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    }

    /// Unmaps what is outside of `from..from + len`.
    ///
    /// # Panics
    /// If `from` or `len` is no multiple of the page size, or the range is not in the mapping.
    fn keep_only(&mut self, from: usize, len: usize) -> rustix::io::Result<()> {
        let page_bytes = rustix::param::page_size();
        assert!(
            from.is_multiple_of(page_bytes) && len.is_multiple_of(page_bytes),
            "parts of pages"
        );
        let (start, before, after) = (self.at(from, len), from, self.len - from - len);
        if after > 0 {
            // SAFETY: the first address is in the mapping, which `at` checked.
            let end = unsafe { start.byte_add(len) };
            // SAFETY: these are the last pages of the mapping, into which no reference exists. Then the length
            // says what is still mapped, so `drop` unmaps nothing twice.
            unsafe { rustix::mm::munmap(end, after) }?;
            self.len -= after;
        }
        if before > 0 {
            // SAFETY: these are the first pages of the mapping, as above.
            unsafe { rustix::mm::munmap(self.base, before) }?;
            (self.base, self.len) = (start, len);
        }
        Ok(())
    }

    /// The first address of the mapping, for calls that take the mapping itself.
    pub(super) fn base(&self) -> *mut c_void {
        self.base
    }

    /// Advises the kernel that the pages will be read in order (MADV_SEQUENTIAL).
    ///
    /// # Errors
    /// Those of madvise(2).
    pub fn advise_sequential(&self) -> rustix::io::Result<()> {
        // SAFETY: the range is this mapping, and the advice changes only readahead.
        unsafe { rustix::mm::madvise(self.base, self.len, Advice::Sequential) }
    }

    /// `ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)`
    ///
    /// Writes bytes `from..from + len` of the mapping to `dst`, at an offset in bytes or at its cursor. Returns the
    /// bytes written.
    ///
    /// # Errors
    /// Those of pwrite(2). Pages that the file no longer has give EFAULT and no signal, because the kernel reads them.
    ///
    /// # Panics
    /// If the range lies outside the mapping.
    pub fn write_to(
        &self,
        from: usize,
        len: usize,
        dst: BorrowedFd<'_>,
        offset: Option<u64>,
    ) -> rustix::io::Result<usize> {
        let start = self.at(from, len).cast_const();
        let written = match offset {
            Some(offset) => {
                let offset = i64::try_from(offset).map_err(|_| Errno::FBIG)?;
                // SAFETY: `at` checked that the range lies in the mapping, which the kernel only
                // reads. The descriptor is borrowed and therefore open.
                unsafe { libc::pwrite(dst.as_raw_fd(), start, len, offset) }
            }
            // SAFETY: as above.
            None => unsafe { libc::write(dst.as_raw_fd(), start, len) },
        };
        usize::try_from(written).map_err(|_| last_errno())
    }

    /// The address of byte `from`.
    ///
    /// # Panics
    /// If `from..from + len` is not in the mapping.
    pub(super) fn at(&self, from: usize, len: usize) -> *mut c_void {
        assert!(from.checked_add(len).is_some_and(|end| end <= self.len), "outside the mapping");
        // SAFETY: the assertion keeps the address in the mapping.
        unsafe { self.base.byte_add(from) }
    }

    /// `memcpy` of `len` bytes between two mappings of plain memory.
    ///
    /// # Panics
    /// If one is shorter, or maps a file.
    pub fn copy_memory(dst: &mut Map, src: &Map, len: usize) {
        assert!(!dst.is_file && !src.is_file, "a file may shrink");
        let (to, from) = (dst.at(0, len), src.at(0, len));
        // SAFETY: both ranges lie in their mappings, which are distinct, and `dst` is borrowed
        // exclusively. No other process changes them.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), len) };
        std::hint::black_box(to);
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this value created the mapping and unmaps it once. No reference into it exists,
        // because none is ever created. Without memory munmap(2) can fail; what stays mapped is not used
        // any more.
        let _ = unsafe { rustix::mm::munmap(self.base, self.len) };
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A field of the mapping that contains `address`, as /proc/self/smaps prints it (proc_pid_smaps(5)).
    pub(crate) fn mapping_field(address: usize, name: &str) -> Option<String> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("it can be read");
        let mut is_inside = false;
        for line in smaps.lines() {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let bound = |text| usize::from_str_radix(text, 16);
            if let Some((Ok(low), Ok(high))) = range.map(|(low, high)| (bound(low), bound(high))) {
                is_inside = (low..high).contains(&address);
            } else if let Some(value) = line.strip_prefix(name).filter(|_| is_inside) {
                return Some(value.trim_matches([':', ' ']).to_owned());
            }
        }
        None
    }

    #[test]
    fn memory_is_collapsed_to_huge_pages() {
        let len = 2 * huge_page_bytes();
        let map = Map::from_huge_page(len + 1).expect("memory");
        // A mapping with a flag of its own does not merge with its neighbours.
        // SAFETY: the range is this mapping, and the advice changes only core dumps.
        unsafe { rustix::mm::madvise(map.base, map.len, Advice::LinuxDontDump) }.expect("advice");
        let bytes = |name| {
            let field = mapping_field(map.base.addr(), name).expect("the mapping is listed");
            field.trim_end_matches(" kB").parse::<usize>().expect("a number of KiB") << 10
        };
        let huge_bytes = || bytes("AnonHugePages");
        assert_eq!(huge_bytes(), 0, "nothing was accessed");
        // SAFETY: the mapping was just made of private memory.
        match unsafe { map.collapse() } {
            Ok(()) => assert_eq!(huge_bytes(), len),
            Err(errno) => {
                let has_huge_pages =
                    std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
                let none_left = [Errno::AGAIN, Errno::BUSY, Errno::NOMEM].contains(&errno);
                let release = crate::uname().expect("the names").release;
                let is_old = release.as_str() < "6.1";
                assert!(none_left || is_old || !has_huge_pages, "{errno}");
                testfs::skip(&testfs::test_name(), &format!("MADV_COLLAPSE: {errno}"));
            }
        }
        assert!(bytes("Rss") <= len, "the rest was not accessed");
    }
}
