//! Where a file has data and where holes, for file systems that tell the truth about it.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, fstatfs, seek};
use rustix::io::{self, Errno};

/// The number of tmpfs.
pub(crate) const TMPFS: u64 = 0x0102_1994;

/// The number of btrfs.
pub(crate) const BTRFS: u64 = 0x9123_683e;

/// The number of ext4, and of ext2 and ext3, which it drives.
pub(crate) const EXT4: u64 = 0xef53;

/// The number of xfs.
pub(crate) const XFS: u64 = 0x5846_5342;

/// File systems whose SEEK_DATA and SEEK_HOLE never call data a hole, by the number that statfs(2)
/// gives them. Others have: ZFS with dirty data, FUSE and network file systems.
const HONEST: &[u64] = &[
    EXT4,
    XFS,
    BTRFS,
    TMPFS,
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
];

/// Whether a hole in the file `fd` may be believed.
pub(crate) fn are_honest(fd: BorrowedFd<'_>) -> bool {
    file_system(fd).is_some_and(is_honest)
}

/// The same by the number of its file system.
pub(crate) fn is_honest(kind: u64) -> bool {
    HONEST.contains(&kind)
}

/// File systems made of the kernel's own variables. The lengths that their files report are not
/// the lengths of what can be read.
const PSEUDO: &[u64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0x6165_676c, // pstore
];

/// Whether files are the kernel's variables, by the number of their file system.
pub(crate) fn is_pseudo(kind: u64) -> bool {
    PSEUDO.contains(&kind)
}

/// The number that statfs(2) gives the file system of `fd`.
#[expect(clippy::cast_sign_loss, reason = "the numbers are unsigned and 32 bits wide")]
pub(crate) fn file_system(fd: BorrowedFd<'_>) -> Option<u64> {
    fstatfs(fd).ok().map(|statfs| statfs.f_type as u64 & 0xffff_ffff)
}

/// The next stretch of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Offset in bytes.
    pub(crate) at: u64,
    /// Bytes.
    pub(crate) len: u64,
}

/// The first data of `fd` at or after `at` and before `end`; `None` when only a hole remains.
pub(crate) fn next_data(fd: BorrowedFd<'_>, at: u64, end: u64) -> io::Result<Option<Extent>> {
    let data = match seek(fd, SeekFrom::Data(at)) {
        Ok(data) => data,
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if data >= end {
        return Ok(None);
    }
    // There is a hole at the end of every file. ENXIO says that the file was cut off meanwhile.
    let hole = match seek(fd, SeekFrom::Hole(data)) {
        Ok(hole) => hole,
        Err(Errno::NXIO) => end,
        Err(errno) => return Err(errno),
    };
    Ok(Some(Extent { at: data, len: hole.min(end).saturating_sub(data) }))
}
