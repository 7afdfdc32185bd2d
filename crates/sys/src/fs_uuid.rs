//! The ioctl FS_IOC_GETFSUUID.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl, opcode};

/// `struct fsuuid2` of linux/fs.h.
#[repr(C)]
struct FsUuid2 {
    len: u8,
    uuid: [u8; 16],
}

/// FS_IOC_GETFSUUID of linux/fs.h: `_IOR(0x15, 0, struct fsuuid2)`.
const FS_IOC_GETFSUUID: rustix::ioctl::Opcode = opcode::read::<FsUuid2>(0x15, 0);

/// `int ioctl(int fd, FS_IOC_GETFSUUID, struct fsuuid2 *arg)`
///
/// The UUID of the mounted file system of `fd`, Linux 6.9.
///
/// # Errors
/// ENOTTY on older kernels and for a file system without a UUID. EINVAL if it is shorter than 16
/// bytes.
pub fn fs_uuid(fd: BorrowedFd<'_>) -> rustix::io::Result<[u8; 16]> {
    // SAFETY: FS_IOC_GETFSUUID writes one `struct fsuuid2`, which has the layout of the C header,
    // and reads no memory. Every bit pattern is valid.
    let getter = unsafe { Getter::<FS_IOC_GETFSUUID, FsUuid2>::new() };
    // SAFETY: the opcode matches its argument, and `fd` is open while it is borrowed.
    let FsUuid2 { len, uuid } = unsafe { ioctl(fd, getter) }?;
    if usize::from(len) == uuid.len() { Ok(uuid) } else { Err(Errno::INVAL) }
}
