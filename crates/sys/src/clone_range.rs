//! The ioctl FICLONERANGE.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::ioctl::{Setter, ioctl, opcode};

/// `struct file_clone_range` of linux/fs.h.
#[repr(C)]
struct FileCloneRange {
    src_fd: i64,
    src_offset: u64,
    src_length: u64,
    dest_offset: u64,
}

/// FICLONERANGE of linux/fs.h: `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: rustix::ioctl::Opcode = opcode::write::<FileCloneRange>(0x94, 13);

/// `int ioctl(int dest_fd, FICLONERANGE, struct file_clone_range *arg)`
///
/// Shares `len` bytes of extents from `src_at` of `src` with `dst` at `dst_at`; see ioctl_ficlonerange(2).
///
/// # Errors
/// EINVAL if a bound is not on a block boundary, EOPNOTSUPP, EXDEV and others.
pub fn clone_range(
    (src, src_at): (BorrowedFd<'_>, u64),
    (dst, dst_at): (BorrowedFd<'_>, u64),
    len: u64,
) -> rustix::io::Result<()> {
    let argument = FileCloneRange {
        src_fd: i64::from(src.as_raw_fd()),
        src_offset: src_at,
        src_length: len,
        dest_offset: dst_at,
    };
    // SAFETY: FICLONERANGE reads one `struct file_clone_range`, which has the layout of the C
    // header, and writes no memory.
    let setter = unsafe { Setter::<FICLONERANGE, FileCloneRange>::new(argument) };
    // SAFETY: the opcode matches its argument, and both descriptors are open while they are
    // borrowed.
    unsafe { ioctl(dst, setter) }
}
