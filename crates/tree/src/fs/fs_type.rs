//! Types of file systems, by the number that statfs(2) gives them.
//!
//! A reliable file system is a local one of this kernel: it never reports data as a hole, its
//! lengths and owners are right, and O_NONBLOCK has no effect on its regular files.

use std::os::fd::BorrowedFd;

use rustix::fs::{Stat, fstatfs};

use super::stat::FileId;

/// The number of tmpfs.
pub(crate) const TMPFS: u64 = 0x0102_1994;

/// The number of btrfs.
pub(crate) const BTRFS: u64 = 0x9123_683e;

/// The number of ext4, and of ext2 and ext3, which it drives.
pub(crate) const EXT4: u64 = 0xef53;

/// The number of xfs.
pub(crate) const XFS: u64 = 0x5846_5342;

/// The reliable file systems. ZFS with dirty data, FUSE and network file systems have reported data
/// as holes.
const RELIABLE: &[u64] = &[
    EXT4,
    XFS,
    BTRFS,
    TMPFS,
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
];

/// Whether the file system of `fd` is reliable.
pub(crate) fn is_on_reliable_fs(fd: BorrowedFd<'_>) -> bool {
    file_system(fd).is_some_and(is_reliable)
}

/// Whether the file system of this type is reliable.
pub(crate) fn is_reliable(kind: u64) -> bool {
    RELIABLE.contains(&kind)
}

/// File systems that only one host mounts, beside the reliable ones.
const OTHER_LOCAL: &[u64] = &[
    0x794c_7630, // overlayfs
    0x8584_58f6, // ramfs
    0x2fc1_2fc1, // ZFS
    0x3153_464a, // jfs
    0x7366_746e, // ntfs3
    0x2011_bab0, // exfat
    0x4d44,      // vfat
];

/// Whether the file system of `fd` is one that only one host mounts. `false` where statfs(2) fails.
pub(crate) fn is_on_fs_of_one_host(fd: BorrowedFd<'_>) -> bool {
    file_system(fd).is_some_and(|kind| is_reliable(kind) || OTHER_LOCAL.contains(&kind))
}

/// File systems whose files are variables of the kernel. The reported lengths are not the lengths
/// of what can be read.
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

/// Whether the files of this type of file system are variables of the kernel.
pub(crate) fn is_pseudo(kind: u64) -> bool {
    PSEUDO.contains(&kind)
}

/// The number that statfs(2) gives the file system of `fd`.
#[expect(clippy::cast_sign_loss, reason = "the numbers are unsigned and 32 bits wide")]
pub(crate) fn file_system(fd: BorrowedFd<'_>) -> Option<u64> {
    fstatfs(fd).ok().map(|statfs| statfs.f_type as u64 & 0xffff_ffff)
}

/// An open file and its file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint<'f> {
    pub(crate) fd: BorrowedFd<'f>,
    pub(crate) dev: u64,
    /// The number that statfs(2) gives its file system.
    pub(crate) fs_type: Option<u64>,
}

/// The types of the file systems that a worker has used, by device number: a handful at most.
#[derive(Debug, Default)]
pub(crate) struct FsTypes(Vec<(u64, Option<u64>)>);

/// Whether the file system of a file is known to be reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reliability {
    Reliable,
    Unknown,
}

impl FsTypes {
    /// The type of the file system of `fd`, which is on the device `dev`. `None` where statfs(2)
    /// fails.
    pub(crate) fn of(&mut self, fd: BorrowedFd<'_>, dev: u64) -> Option<u64> {
        self.known(dev).unwrap_or_else(|| {
            let fs_type = file_system(fd);
            self.0.push((dev, fs_type));
            fs_type
        })
    }

    /// Whether the file system of `fd`, which is on the device `dev`, is reliable.
    pub(crate) fn is_reliable(&mut self, fd: BorrowedFd<'_>, dev: u64) -> bool {
        self.of(fd, dev).is_some_and(is_reliable)
    }

    /// Whether the file system of the file that `stat` describes is known to be reliable. No call.
    pub(crate) fn reliability(&self, stat: &Stat) -> Reliability {
        match self.known(FileId::of(stat).dev) {
            Some(Some(fs_type)) if is_reliable(fs_type) => Reliability::Reliable,
            _ => Reliability::Unknown,
        }
    }

    fn known(&self, dev: u64) -> Option<Option<u64>> {
        self.0.iter().find(|(known, _)| *known == dev).map(|(_, fs_type)| *fs_type)
    }
}
