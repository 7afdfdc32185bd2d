//! The identity of a file, and the fields of its stat.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Stat, StatxFlags, fstat, statat, statx};
use rustix::io;
use rustix::path::Arg;
use serde::{Deserialize, Serialize};

use super::fs_type::is_on_reliable_fs;

/// A file's device and inode number: equal for every name of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

    /// `stat` with this identity.
    #[expect(clippy::useless_conversion, reason = "both are narrower on some architectures")]
    pub(crate) fn stat_like(self, mut stat: Stat) -> Stat {
        stat.st_dev = self.dev.try_into().unwrap_or(!0);
        stat.st_ino = self.ino.try_into().unwrap_or(!0);
        stat
    }

    /// The identity of an open file.
    pub(crate) fn of_open(fd: impl AsFd) -> io::Result<FileId> {
        fstat(fd).map(|stat| FileId::of(&stat))
    }

    /// Whether the entry `name` of `dir` is this file. A file that cannot be looked at is not.
    pub(crate) fn is_at(self, dir: impl AsFd, name: impl Arg) -> bool {
        lstat(dir, name).is_ok_and(|stat| FileId::of(&stat) == self)
    }
}

/// lstat(2) of the entry `name` of `dir`.
pub(crate) fn lstat(dir: impl AsFd, name: impl Arg) -> io::Result<Stat> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Whether the open file `fd`, which `stat` describes, is the file `id`. A file system that is seen to keep no numbers
/// does not tell.
pub(crate) fn is_file(fd: impl AsFd, stat: &Stat, id: FileId) -> bool {
    FileId::of(stat) == id || !keeps_number(fd)
}

/// Whether the open file `fd`, which `stat` describes, is the one that `found` describes. `look` looks at the name again
/// by which it was found and opened: while a file is open, a new number of it stays.
pub(crate) fn is_still(
    fd: impl AsFd,
    stat: &Stat,
    found: &Stat,
    look: impl FnOnce() -> io::Result<Stat>,
) -> bool {
    let is_at_name = || look().is_ok_and(|now| FileId::of(&now) == FileId::of(stat));
    is_file(&fd, stat, FileId::of(found)) || may_be_renumbered(&fd, found, stat) && is_at_name()
}

/// Whether the file that was `found` on the file system of `fd` is the one that is there now, unless another of its owner
/// has the same length and time.
pub(crate) fn is_renumbered(fd: impl AsFd, found: &Stat, now: &Stat) -> bool {
    let data = |stat: &Stat| (stat.st_size, mtime(stat));
    data(found) == data(now) && may_be_renumbered(fd, found, now)
}

/// Whether a file may have got another number. Overlayfs gives a file of several names another one with the first
/// change, and a directory whenever the kernel has forgotten it, as FUSE does with any file. Its owner and mode stay, and
/// to give another file the same takes its owner.
fn may_be_renumbered(fd: impl AsFd, found: &Stat, now: &Stat) -> bool {
    let owner = |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid);
    owner(found) == owner(now) && !is_on_reliable_fs(fd.as_fd())
}

/// Whether an open file has one number at two looks. No other process can exchange it in between.
pub(crate) fn keeps_number(fd: impl AsFd) -> bool {
    let look = || FileId::of_open(&fd);
    !matches!((look(), look()), (Ok(first), Ok(second)) if first != second)
}

/// Whether two names that were looked at belong to one file. Where all files have one number, other fields tell.
pub(crate) fn is_one_file(a: &Stat, b: &Stat) -> bool {
    let fields = |stat: &Stat| {
        (FileId::of(stat), stat.st_mode, stat.st_nlink, stat.st_size, mtime(stat), ctime(stat))
    };
    fields(a) == fields(b)
}

/// Whether two open files, with what fstat(2) returned for them, are one file.
///
/// Some file systems give each hard link a number of its own. There two files are one if they have several names and
/// all else in common: the time of the last change of one is hardly that of another.
pub(crate) fn are_one_file(a: (BorrowedFd<'_>, &Stat), b: (BorrowedFd<'_>, &Stat)) -> bool {
    let (a_id, b_id) = (FileId::of(a.1), FileId::of(b.1));
    let has_names = a.1.st_nlink > 1 || b.1.st_nlink > 1;
    if a_id == b_id || a_id.dev != b_id.dev || !has_names || is_on_reliable_fs(a.0) {
        return a_id == b_id;
    }
    now(a.0).is_some_and(|(names, a)| names > 1 && now(b.0) == Some((names, a)))
}

/// Whether two directories have all in common but their numbers, so that they may be one.
pub(crate) fn are_alike(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    now(a).is_some_and(|a| now(b) == Some(a))
}

/// What statx(2) returns for `fd`, but for the number: how many names it has, its times, its mode, owners and size.
/// The kernel may have older attributes, as from before a link was made.
fn now(fd: BorrowedFd<'_>) -> Option<(u32, impl PartialEq)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let found = statx(fd, c"", flags, StatxFlags::BASIC_STATS).ok()?;
    let times = [found.stx_mtime, found.stx_ctime].map(|time| (time.tv_sec, time.tv_nsec));
    Some((found.stx_nlink, (times, found.stx_mode, found.stx_uid, found.stx_gid, found.stx_size)))
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
    time(stat.st_mtime, stat.st_mtime_nsec)
}

/// Time of last access: seconds and nanoseconds.
pub(crate) fn atime(stat: &Stat) -> (i64, i64) {
    time(stat.st_atime, stat.st_atime_nsec)
}

/// Time of last change of the inode: seconds and nanoseconds.
pub(crate) fn ctime(stat: &Stat) -> (i64, i64) {
    time(stat.st_ctime, stat.st_ctime_nsec)
}

fn time(seconds: impl Into<i64>, nanoseconds: impl TryInto<i64>) -> (i64, i64) {
    (seconds.into(), nanoseconds.try_into().unwrap_or(0))
}

/// Nanoseconds, of an interval or since 1970.
pub(crate) type Nanoseconds = i128;

const SECOND: Nanoseconds = 1_000_000_000;

/// The coarsest resolution of times: that of vfat.
pub(crate) const RESOLUTION_MAX: Nanoseconds = 2 * SECOND;

pub(crate) fn since_1970((seconds, nanoseconds): (i64, i64)) -> Nanoseconds {
    Nanoseconds::from(seconds) * SECOND + Nanoseconds::from(nanoseconds)
}

/// How long ago that was, by the clock of this host.
pub(crate) fn elapsed_since(time: (i64, i64)) -> Nanoseconds {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos().try_into().unwrap_or(Nanoseconds::MAX) - since_1970(time)
}

/// The coarsest resolution that a file system may have on which a file has this time.
pub(crate) fn coarsest_resolution(time: (i64, i64)) -> Nanoseconds {
    match since_1970(time) % RESOLUTION_MAX {
        0 => RESOLUTION_MAX,
        _ => grain(time.1).into(),
    }
}

/// The coarsest power of ten, from 1 ns to 1 s, to which a timestamp with these nanoseconds may have been cut.
pub(crate) fn grain(nanoseconds: i64) -> i64 {
    let mut grain = 1;
    while grain < 1_000_000_000 && nanoseconds % (grain * 10) == 0 {
        grain *= 10;
    }
    grain
}
