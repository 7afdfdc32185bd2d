//! The ioctl FS_IOC_FIEMAP.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// The maximum number of extents that are requested.
const FIEMAP_EXTENTS_MAX: u32 = 16;

/// The first extents of a file: their offsets in the file and on the disk, and their flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fiemap {
    request: Request,
}

/// `struct fiemap` of linux/fiemap.h with its trailing array.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; FIEMAP_EXTENTS_MAX as usize],
}

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// The head of `struct fiemap`, whose size is part of the opcode.
#[repr(C)]
struct Head {
    bounds: [u64; 2],
    numbers: [u32; 4],
}

/// FS_IOC_FIEMAP of linux/fs.h: `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: Opcode = opcode::read_write::<Head>(b'f', 11);

/// FIEMAP_FLAG_SYNC of linux/fiemap.h: write dirty pages back first.
const FLAG_SYNC: u32 = 1;

/// FIEMAP_EXTENT_LAST of linux/fiemap.h.
const EXTENT_LAST: u32 = 1;

/// FIEMAP_EXTENT_SHARED of linux/fiemap.h.
const EXTENT_SHARED: u32 = 0x2000;

impl Fiemap {
    /// Whether these are all extents of the file, and each is shared with another file. A file on
    /// the same device with equal extents then shares all of them with this one.
    pub fn is_shared(&self) -> bool {
        let is_shared = |extent: &Extent| extent.flags & !EXTENT_LAST == EXTENT_SHARED;
        let extents = self.extents();
        extents.iter().all(is_shared)
            && extents.last().is_some_and(|last| last.flags & EXTENT_LAST != 0)
    }

    fn extents(&self) -> &[Extent] {
        let mapped = self.request.mapped_extents.min(FIEMAP_EXTENTS_MAX);
        &self.request.extents[..mapped as usize]
    }
}

/// `int ioctl(int fd, FS_IOC_FIEMAP, struct fiemap *arg)`
///
/// The first [`FIEMAP_EXTENTS_MAX`] extents of `fd`. With `sync` dirty pages are written back
/// first; without it, extents not yet written may change soon. See
/// Documentation/filesystems/fiemap.rst of the kernel.
///
/// # Errors
/// EOPNOTSUPP if the file system lacks the operation, and those of writeback.
pub fn fiemap(fd: BorrowedFd<'_>, sync: bool) -> rustix::io::Result<Fiemap> {
    let request = Request {
        start: 0,
        length: u64::MAX,
        flags: if sync { FLAG_SYNC } else { 0 },
        mapped_extents: 0,
        extent_count: FIEMAP_EXTENTS_MAX,
        reserved: 0,
        extents: [Extent::default(); FIEMAP_EXTENTS_MAX as usize],
    };
    // SAFETY: the opcode matches its argument, and `fd` is open while it is borrowed.
    unsafe { ioctl(fd, Fiemap { request }) }
}

// SAFETY: FS_IOC_FIEMAP reads the head of one `struct fiemap`. It writes to that head and to at
// most `extent_count` of the extents behind it, which is the length of the array in `Request`. The
// layout is that of the C header, and every bit pattern is valid.
unsafe impl Ioctl for Fiemap {
    type Output = Fiemap;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        FS_IOC_FIEMAP
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.request).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, argument: *mut c_void) -> rustix::io::Result<Fiemap> {
        // SAFETY: `argument` is the pointer that `as_ptr` returned, to a `Request` that is still
        // alive.
        let request = unsafe { argument.cast::<Request>().read() };
        Ok(Fiemap { request })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use testfs::{FsKind, each_fs};

    use super::*;
    use crate::clone_range;

    #[test]
    fn only_files_with_equal_extents_share_them() {
        each_fs(|kind, dir| {
            let file = |name: &str| {
                let mut options = File::options();
                options.read(true).write(true).create_new(true);
                options.open(dir.join(name)).expect("opened")
            };
            let (one, other) = (file("one"), file("other"));
            // Two extents, with a hole between them.
            for at in [0, 1 << 20] {
                one.write_all_at(&[1; 40_000], at).expect("written");
            }
            let map = |file: &File| fiemap(file.as_fd(), true);
            if map(&one).is_err() {
                return assert_eq!(kind, FsKind::Tmpfs);
            }
            let share = |one: &File, other: &File| {
                let (one, other) = (map(one).expect("extents"), map(other).expect("extents"));
                one.is_shared() && one == other
            };
            assert!(!share(&one, &other), "{kind}: an empty one");
            assert!(!share(&one, &one), "{kind}: not with another");
            if clone_range((one.as_fd(), 0), (other.as_fd(), 0), 0).is_err() {
                return assert!(matches!(kind, FsKind::Ext4), "{kind}");
            }
            assert!(share(&one, &other), "{kind}");
            // Extents that are not yet on the disk count as well.
            other.write_all_at(b"2", 1 << 20).expect("written");
            assert!(!share(&one, &other), "{kind}: written to");
            // Files with more extents than are requested cannot be compared.
            let (many, more) = (file("many"), file("more"));
            for at in 0..=u64::from(FIEMAP_EXTENTS_MAX) {
                many.write_all_at(&[3; 4096], at << 20).expect("written");
            }
            clone_range((many.as_fd(), 0), (more.as_fd(), 0), 0).expect("it is shared");
            assert!(!share(&many, &more), "{kind}: more than {FIEMAP_EXTENTS_MAX}");
        });
    }
}
