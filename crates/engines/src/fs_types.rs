//! Types of file systems, by the number that statfs(2) returns: what they are called, and who keeps
//! their data.

use std::os::fd::BorrowedFd;

use rustix::fs::fstatfs;

/// The number of ext4, and of ext2 and ext3: the same module handles them.
pub const EXT4: u64 = 0xef53;

/// The number of xfs.
pub const XFS: u64 = 0x5846_5342;

/// The number of btrfs.
pub const BTRFS: u64 = 0x9123_683e;

/// The number of vfat, and of msdos.
pub const VFAT: u64 = 0x4d44;

/// The number of tmpfs.
pub const TMPFS: u64 = 0x0102_1994;

/// The number of overlayfs.
pub const OVERLAY: u64 = 0x794c_7630;

/// The number of NFS, of every version.
pub const NFS: u64 = 0x6969;

/// The number of SMB 1.
pub const CIFS: u64 = 0xff53_4d42;

/// The number of SMB 2 and 3.
pub const SMB2: u64 = 0xfe53_4d42;

/// Who keeps the data of a type of file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// This kernel, which never reports data as a hole; lengths and owners are right, and O_NONBLOCK
    /// has no effect on regular files. ZFS with dirty data, FUSE and network file systems have
    /// reported data as holes.
    Reliable,
    /// This kernel: only one host mounts the file system.
    Local,
    /// A server, or another process: what it writes, and where, cannot be seen from here.
    Served,
    /// The kernel's variables. The reported lengths are not the lengths of what can be read.
    Pseudo,
    /// A read-only image, or one that is seldom written.
    Other,
}

/// A type of file systems. Profiles know a type without a name by its number.
type Row = (u64, Option<&'static str>, Storage);

/// linux/magic.h, and the source code of the modules for numbers missing there.
const TYPES: &[Row] = {
    use Storage::{Local, Other, Pseudo, Reliable, Served};
    &[
        (EXT4, Some("ext4"), Reliable),
        (XFS, Some("xfs"), Reliable),
        (BTRFS, Some("btrfs"), Reliable),
        (TMPFS, Some("tmpfs"), Reliable),
        (0xf2f5_2010, Some("f2fs"), Reliable),
        (0xca45_1a4e, Some("bcachefs"), Reliable),
        (0x8584_58f6, Some("ramfs"), Local),
        (0x2fc1_2fc1, Some("zfs"), Local),
        (OVERLAY, Some("overlay"), Local),
        (VFAT, Some("vfat"), Local),
        (0x2011_bab0, Some("exfat"), Local),
        (0x7366_746e, Some("ntfs3"), Local),
        (0x3153_464a, Some("jfs"), Local),
        (0x6573_5546, Some("fuse"), Served), // virtiofs too
        (NFS, Some("nfs"), Served),
        (CIFS, Some("cifs"), Served),
        (SMB2, Some("smb2"), Served),
        (0x0102_1997, Some("9p"), Served),
        (0x00c3_6400, Some("ceph"), Served),
        (0x5346_414f, None, Served), // afs
        (0x0bd0_0bd0, None, Served), // lustre
        (0x4750_4653, None, Served), // gpfs
        (0x786f_4256, None, Served), // vboxsf
        (0x9660, Some("iso9660"), Other),
        (0x1501_3346, Some("udf"), Other),
        (0x7371_7368, Some("squashfs"), Other),
        (0xe0f5_e1e2, Some("erofs"), Other),
        (0x5265_4973, Some("reiserfs"), Other),
        (0x9fa0, None, Pseudo),      // proc
        (0x6265_6572, None, Pseudo), // sysfs
        (0x6462_6720, None, Pseudo), // debugfs
        (0x7472_6163, None, Pseudo), // tracefs
        (0x0027_e0eb, None, Pseudo), // cgroup
        (0x6367_7270, None, Pseudo), // cgroup2
        (0x7363_6673, None, Pseudo), // securityfs
        (0x6165_676c, None, Pseudo), // pstore
    ]
};

/// The number that statfs(2) returns for the file system of `fd`; `None` where it fails.
#[must_use]
#[expect(clippy::cast_sign_loss, reason = "the numbers are unsigned and 32 bits wide")]
pub fn fs_type_of(fd: BorrowedFd<'_>) -> Option<u64> {
    fstatfs(fd).ok().map(|statfs| statfs.f_type as u64 & 0xffff_ffff)
}

/// Who keeps the data; `None` for a type that is not known.
#[must_use]
pub fn storage_of(number: u64) -> Option<Storage> {
    TYPES.iter().find(|(of, ..)| *of == number).map(|(.., storage)| *storage)
}

/// The name of a type; its number as text if it has none.
pub(crate) fn name_of(number: u64) -> String {
    let known = TYPES.iter().find(|(of, ..)| *of == number).and_then(|(_, name, _)| *name);
    known.map_or_else(|| format!("{number:#x}"), str::to_owned)
}

/// The number of a type by its name, or by its number as text.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let known = TYPES.iter().find(|(_, of, _)| *of == Some(name)).map(|(number, ..)| *number);
    known.or_else(|| u64::from_str_radix(name.strip_prefix("0x")?, 16).ok())
}
