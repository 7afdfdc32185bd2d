//! The identity of a file, and the fields of its stat.

use rustix::fs::{FileType, Stat};

/// A file's device and inode number: equal for every name of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// `st_dev`.
    pub dev: u64,
    /// `st_ino`.
    pub ino: u64,
}

impl FileId {
    #[expect(clippy::useless_conversion, reason = "both are narrower on some architectures")]
    pub(crate) fn of(stat: &Stat) -> FileId {
        FileId { dev: stat.st_dev.into(), ino: stat.st_ino.into() }
    }
}

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn is_directory(stat: &Stat) -> bool {
    kind(stat) == FileType::Directory
}

pub(crate) fn is_symlink(stat: &Stat) -> bool {
    kind(stat) == FileType::Symlink
}

pub(crate) fn is_regular(stat: &Stat) -> bool {
    kind(stat) == FileType::RegularFile
}

/// The length of a file in bytes.
pub(crate) fn file_bytes(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Bytes of data of a file by its blocks: its length, or less if it has holes or is compressed, or
/// if its blocks are not counted.
pub(crate) fn data_bytes(stat: &Stat) -> u64 {
    let allocated = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
    file_bytes(stat).min(allocated)
}

/// Time of last modification: seconds and nanoseconds.
pub(crate) fn mtime(stat: &Stat) -> (i64, i64) {
    (seconds(stat.st_mtime), nanoseconds(stat.st_mtime_nsec))
}

/// Time of last access: seconds and nanoseconds.
pub(crate) fn atime(stat: &Stat) -> (i64, i64) {
    (seconds(stat.st_atime), nanoseconds(stat.st_atime_nsec))
}

/// Time of last change of the inode: seconds and nanoseconds.
pub(crate) fn ctime(stat: &Stat) -> (i64, i64) {
    (seconds(stat.st_ctime), nanoseconds(stat.st_ctime_nsec))
}

fn seconds(field: impl Into<i64>) -> i64 {
    field.into()
}

fn nanoseconds(field: impl TryInto<i64>) -> i64 {
    field.try_into().unwrap_or(0)
}
