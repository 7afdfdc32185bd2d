//! Opens a file that was looked at, without blocking on a fifo that replaced it.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use engines::fs_types::{NFS, fs_type_of};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Stat, Statx, StatxFlags, fcntl_setfl, fstat, linkat, makedev,
    openat, readlinkat, renameat, statx,
};
use rustix::io::{self, Errno, retry_on_intr};

use super::fs_type::{FsTypes, is_reliable, is_smb};
use super::lstat;
use super::place::Place;
use super::stat::{FileId, is_regular};
use super::xattr::Handle;

/// How long a file of SMB is waited for that another worker may have open by another name. The client asks for the lease
/// that it has for the first name, and the server refuses it with EINVAL (Linux 5.10 and 6.1, not 7.2).
const OTHER_NAME_WAIT: Duration = Duration::from_secs(30);

/// Opens `name` in `dir`, which `stat` describes. Does not wait for the other end of a fifo that
/// replaced a regular file; does wait if `stat` is that of a fifo. The caller checks whether it is
/// the same file. `fs_type` is the type of its file system, if that is known.
///
/// # Errors
/// Those of openat(2); ENXIO also for a fifo without a reader.
pub(crate) fn open_looked_at(
    fs_type: Option<u64>,
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    stat: &Stat,
) -> io::Result<OwnedFd> {
    if !is_regular(stat) {
        return open_retrying(None, (dir, name), flags);
    }
    let opened = match open_retrying(fs_type, (dir, name), flags | OFlags::NONBLOCK) {
        Err(Errno::INVAL) if fs_type_of(dir).is_some_and(is_smb) => {
            let is_passing = |errno| errno == Errno::INVAL;
            retry_for(OTHER_NAME_WAIT, is_passing, || {
                open_retrying(None, (dir, name), flags | OFlags::NONBLOCK)
            })
        }
        opened => opened,
    };
    match opened {
        // Another process, such as Samba, holds a lease on the file. O_NONBLOCK does not wait for
        // the end of it.
        Err(Errno::AGAIN) => {
            let held = retry_on_intr(|| hold(dir, name, !flags.contains(OFlags::NOFOLLOW)))?;
            if FileId::of_open(&held)? != FileId::of(stat) {
                return Err(Errno::STALE);
            }
            let path = Handle::proc_path(held.as_fd());
            retry_on_intr(|| openat(CWD, &path, flags & !OFlags::NOFOLLOW, Mode::empty()))
        }
        Err(errno) => Err(errno),
        Ok(fd) => {
            if !fs_type.is_some_and(is_reliable) {
                // A FUSE file system gets the flag with each read and write.
                fcntl_setfl(&fd, flags)?;
            }
            Ok(fd)
        }
    }
}

/// openat(2) of a destination on a file system of the type `fs_type`, if that is known or matters.
///
/// With an open for writing a client of NFS 4.2 asks for a delegation, and with that it keeps the times itself and may
/// lose those that the copy sets (docs/design/atomic.md). With O_DIRECT it asks for none. The flag is cleared at once:
/// the copy goes through the page cache.
pub(crate) fn open_to_write(
    fs_type: Option<u64>,
    (dir, name): (BorrowedFd<'_>, &CStr),
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    if !asks_for_delegation(fs_type, flags) {
        return openat(dir, name, flags, mode);
    }
    match openat(dir, name, flags | OFlags::DIRECT, mode) {
        Err(Errno::INVAL) => openat(dir, name, flags, mode),
        Err(errno) => Err(errno),
        Ok(fd) => {
            fcntl_setfl(&fd, flags)?;
            Ok(fd)
        }
    }
}

fn asks_for_delegation(fs_type: Option<u64>, flags: OFlags) -> bool {
    fs_type == Some(NFS) && flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

/// An open file, and what it was when it was opened.
pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
}

/// An open file, what it was when it was opened, and where.
#[derive(Clone, Copy)]
pub(crate) struct FileAt<'f> {
    pub(crate) fd: BorrowedFd<'f>,
    pub(crate) stat: &'f Stat,
    pub(crate) place: &'f Place<'f>,
}

impl OpenFile {
    pub(crate) fn at<'f>(&'f self, place: &'f Place<'f>) -> FileAt<'f> {
        FileAt { fd: self.fd.as_fd(), stat: &self.stat, place }
    }
}

/// Opens a file that is listed as regular. `None` if that would block or fails, or if it is another
/// kind of file. `fs_type` is as in [`open_to_write`].
pub(crate) fn open_listed(
    fs_types: &mut FsTypes,
    fs_type: Option<u64>,
    place: (BorrowedFd<'_>, &CStr),
    flags: OFlags,
) -> Option<OpenFile> {
    let fd = open_retrying(fs_type, place, flags | OFlags::NONBLOCK).ok()?;
    let stat = fstat(&fd).ok()?;
    if !is_regular(&stat) {
        return None;
    }
    if !fs_types.of(fd.as_fd(), FileId::of(&stat).dev).is_some_and(is_reliable) {
        fcntl_setfl(&fd, flags).ok()?;
    }
    Some(OpenFile { fd, stat })
}

/// The attributes of the new file `fd`, with the times of `like`: its own times are not read.
///
/// Since Linux 6.13 a change after the times were read gets a new, fine timestamp. If they were not
/// read, a write within a clock tick after the creation leaves them as they are, and saves xfs,
/// btrfs and ext4 a change of the inode.
pub(crate) fn stat_new(fd: &OwnedFd, like: &Stat) -> io::Result<Stat> {
    let times = StatxFlags::ATIME | StatxFlags::MTIME | StatxFlags::CTIME;
    let Ok(found) = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS & !times) else {
        // Linux before 4.11 has no statx(2), and some sandboxes forbid it.
        return fstat(fd);
    };
    Ok(with_fields(*like, &found))
}

#[allow(
    clippy::useless_conversion,
    clippy::unnecessary_fallible_conversions,
    reason = "each architecture has other types"
)]
fn with_fields(mut stat: Stat, found: &Statx) -> Stat {
    stat.st_dev = makedev(found.stx_dev_major, found.stx_dev_minor).into();
    stat.st_ino = found.stx_ino.into();
    stat.st_mode = found.stx_mode.into();
    stat.st_nlink = found.stx_nlink.into();
    stat.st_uid = found.stx_uid;
    stat.st_gid = found.stx_gid;
    stat.st_rdev = makedev(found.stx_rdev_major, found.stx_rdev_minor).into();
    stat.st_size = found.stx_size.try_into().unwrap_or_default();
    stat.st_blksize = found.stx_blksize.try_into().unwrap_or_default();
    stat.st_blocks = found.stx_blocks.try_into().unwrap_or_default();
    stat
}

/// Opens an entry with O_PATH, which has no effect on it.
pub(crate) fn hold(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> io::Result<OwnedFd> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !follow);
    openat(dir, name, flags, Mode::empty())
}

/// Opens the entry at `place` with O_PATH, if it is the file that `found` describes: another one may have taken the name.
pub(crate) fn hold_found(place: &Place<'_>, follow: bool, found: &Stat) -> Option<OpenFile> {
    let fd = hold(place.dir, place.name, follow).ok()?;
    let stat = fstat(&fd).ok()?;
    (FileId::of(&stat) == FileId::of(found)).then_some(OpenFile { fd, stat })
}

/// `call`, again and again while it fails in a way that may pass, for this time at most.
pub(crate) fn retry_for<T>(
    time: Duration,
    is_passing: impl Fn(Errno) -> bool,
    call: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    const LOOK_AGAIN: Duration = Duration::from_millis(20);
    let end = Instant::now() + time;
    loop {
        match call() {
            Err(errno) if is_passing(errno) && Instant::now() < end => sleep(LOOK_AGAIN),
            result => return result,
        }
    }
}

fn open_retrying(
    fs_type: Option<u64>,
    place: (BorrowedFd<'_>, &CStr),
    flags: OFlags,
) -> io::Result<OwnedFd> {
    retry_on_intr(|| open_to_write(fs_type, place, flags, Mode::empty()))
}

/// Whether the open file `fd` has the name `name` in `dir`.
pub(crate) fn is_named(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> bool {
    id_by_name(fd, dir, name).is_some()
}

/// The identity that the open file `fd` has by the name `name` in `dir`; `None` if the name is not its own.
///
/// Some file systems report another inode number at each look, or one for each name. There the kernel's name of the
/// file decides, which /proc tells. Without /proc the file does not count as that of the name.
pub(crate) fn id_by_name(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> Option<FileId> {
    let named = FileId::of(&lstat(dir, name).ok()?);
    if FileId::of_open(fd) == Ok(named) {
        return Some(named);
    }
    // The kernel appends " (deleted)" to the name of a file that was removed or replaced.
    let expected = path_of(dir)?.join(OsStr::from_bytes(name.to_bytes()));
    (path_of(fd)? == expected).then_some(named)
}

/// Gives the open file `fd` the unused name `name` in `dir`.
pub(crate) fn give_name(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match linkat(CWD, Handle::proc_path(fd), dir, name, AtFlags::SYMLINK_FOLLOW) {
        // Without /proc: since Linux 6.10 the process that opened the file may link it.
        Err(Errno::NOENT) => linkat(fd, c"", dir, name, AtFlags::EMPTY_PATH),
        result => result,
    }
}

/// Renames `from` in `dir` to `to` if no file has that name, where the file system has no RENAME_NOREPLACE: another
/// process may create the name in between.
///
/// # Errors
/// EEXIST if a file has the name.
pub(crate) fn rename_if_absent(dir: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    match lstat(dir, to) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => renameat(dir, from, dir, to),
        Err(errno) => Err(errno),
    }
}

/// Whether the error of linkat(2) means that the file gets no more names there: the file system has no hard links, or
/// another one below it would have to hold the link.
pub(crate) fn cannot_be_linked(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV | Errno::MLINK)
}

/// Whether a file is renamed after linkat(2) failed to give it another name: it cannot be linked, or the file system
/// may not implement links, to which rclone's mount answers EIO.
pub(crate) fn is_renamed_instead(errno: Errno) -> bool {
    cannot_be_linked(errno) || errno == Errno::IO
}

/// The path of `name` in an open directory: that of the directory as the kernel knows it, where /proc tells it.
pub(crate) fn path_in((dir, name): (BorrowedFd<'_>, &CStr)) -> PathBuf {
    path_of(dir).unwrap_or_default().join(OsStr::from_bytes(name.to_bytes()))
}

/// The path of an open file; `None` if it cannot be told.
pub(crate) fn path_of(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = readlinkat(CWD, Handle::proc_path(fd), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, hard_link, remove_file, rename};
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use engines::fs_types::EXT4;
    use rustix::fs::fcntl_getfl;

    use super::*;

    #[test]
    fn only_files_of_nfs_that_are_written_are_opened_for_direct_io() {
        let check = |fs_type, flags, expected| {
            assert_eq!(asks_for_delegation(fs_type, flags), expected, "{fs_type:?} {flags:?}");
        };
        check(Some(NFS), OFlags::WRONLY | OFlags::NONBLOCK, true);
        check(Some(NFS), OFlags::RDWR | OFlags::CREATE, true);
        check(Some(NFS), OFlags::RDONLY, false);
        check(Some(EXT4), OFlags::WRONLY, false);
        check(None, OFlags::WRONLY, false);
    }

    #[test]
    fn a_file_of_nfs_is_opened_for_direct_io_only_until_it_is_open() {
        let dir = tempfile::tempdir().expect("created");
        let at = File::open(dir.path()).expect("opened");
        let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NONBLOCK;
        let open = |flags| {
            let mode = Mode::RUSR | Mode::WUSR;
            open_to_write(Some(NFS), (at.as_fd(), c"file"), flags, mode).expect("opened")
        };
        let created = open(new);
        let flags = fcntl_getfl(&created).expect("its flags");
        assert!(!flags.contains(OFlags::DIRECT) && flags.contains(OFlags::NONBLOCK), "{flags:?}");
        let file = File::from(created);
        // A file that is open for direct I/O refuses a byte at an odd offset.
        file.write_all_at(b"x", 1).expect("written through the page cache");
        File::from(open(OFlags::WRONLY)).write_all_at(b"y", 3).expect("written");
    }

    #[test]
    fn a_file_that_refuses_direct_io_is_opened_without() {
        let dir = File::open("/proc/self").expect("opened");
        let open = |flags| openat(dir.as_fd(), c"comm", flags, Mode::empty());
        assert_eq!(open(OFlags::WRONLY | OFlags::DIRECT).err(), Some(Errno::INVAL));
        let place = (dir.as_fd(), c"comm");
        assert!(open_to_write(Some(NFS), place, OFlags::WRONLY, Mode::empty()).is_ok());
    }

    #[test]
    fn a_new_file_is_described_without_its_times() {
        let file = tempfile::tempfile().expect("created");
        file.write_all_at(&[1; 5000], 0).expect("written");
        file.set_permissions(std::fs::Permissions::from_mode(0o640)).expect("mode set");
        let like = fstat(File::open("/").expect("opened")).expect("looked at");
        let fd = OwnedFd::from(file);
        let (seen, whole) = (stat_new(&fd, &like).expect("seen"), fstat(&fd).expect("looked at"));
        let fields = |stat: &Stat| {
            let owner = (stat.st_uid, stat.st_gid, stat.st_mode, stat.st_nlink);
            let blocks = (stat.st_size, stat.st_blocks, stat.st_blksize, stat.st_rdev);
            (FileId::of(stat), owner, blocks)
        };
        assert_eq!(fields(&seen), fields(&whole));
    }

    #[test]
    fn a_file_has_its_name_until_it_is_renamed_removed_or_replaced() {
        let dir = tempfile::tempdir().expect("created");
        let at = File::open(dir.path()).expect("opened");
        let path = |name: &str| dir.path().join(name);
        let file = File::create(path("f")).expect("created");
        let is_named = |name| is_named(file.as_fd(), at.as_fd(), name);
        assert!(is_named(c"f"));
        assert_eq!(path_of(file.as_fd()), path_of(at.as_fd()).map(|dir| dir.join("f")));
        hard_link(path("f"), path("other")).expect("linked");
        assert!(is_named(c"other"));
        rename(path("f"), path("g")).expect("renamed");
        assert!(!is_named(c"f"));
        File::create(path("f")).expect("created");
        assert!(!is_named(c"f"), "it is another file");
        for name in ["g", "other"] {
            remove_file(path(name)).expect("removed");
        }
        File::create(path("g")).expect("created");
        assert!(!is_named(c"g"), "it is another file");
    }
}
