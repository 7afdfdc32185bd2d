//! Opening what was looked at, without waiting for what has taken its place meanwhile.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Stat, Statx, StatxFlags, fcntl_setfl, fstat, makedev, openat, statx,
};
use rustix::io::{self, Errno, retry_on_intr};

use super::fs_type::{FsTypes, Reliability};
use super::stat::{FileId, is_regular};
use super::xattr::Handle;

/// Opens `name` in `dir`, which `stat` described. A fifo that was put in the place of a regular file
/// must not make us wait for its other end; what was a fifo before is waited for. Whether it is
/// still the same file is for the caller to see.
///
/// # Errors
/// What the kernel says; ENXIO also for a fifo that nobody reads.
pub(crate) fn open_looked_at(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    stat: &Stat,
) -> io::Result<OwnedFd> {
    open_looked_at_on(Reliability::Unknown, dir, name, flags, stat)
}

/// The same on a file system of which something is known.
pub(crate) fn open_looked_at_on(
    reliability: Reliability,
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    stat: &Stat,
) -> io::Result<OwnedFd> {
    if !is_regular(stat) {
        return restarting(dir, name, flags);
    }
    match restarting(dir, name, flags | OFlags::NONBLOCK) {
        // Somebody holds a lease on the file (Samba does), and O_NONBLOCK does not wait for it.
        Err(Errno::AGAIN) => open_leased(dir, name, flags, stat),
        Err(errno) => Err(errno),
        Ok(fd) => {
            if reliability == Reliability::Unknown {
                // Some that are processes are told of the flag at each read and write.
                fcntl_setfl(&fd, flags)?;
            }
            Ok(fd)
        }
    }
}

/// Opens what a listing calls a regular file. `None` when that would wait, when it cannot be opened,
/// or when it is something else.
pub(crate) fn open_listed(
    fs_types: &mut FsTypes,
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> Option<(OwnedFd, Stat)> {
    let fd = restarting(dir, name, flags | OFlags::NONBLOCK).ok()?;
    let stat = fstat(&fd).ok()?;
    if !is_regular(&stat) {
        return None;
    }
    if !fs_types.is_reliable(fd.as_fd(), FileId::of(&stat).dev) {
        fcntl_setfl(&fd, flags).ok()?;
    }
    Some((fd, stat))
}

/// What the new file `fd` is, but for its times, which are as in `like`: nobody is to look at those.
///
/// Since Linux 6.13 whoever has seen a file's times is shown other ones after its next change. Where
/// nobody has, what is written within a tick of the clock after the file was made leaves them as they
/// are, and spares xfs, btrfs and ext4 a change of its inode.
pub(crate) fn look_at_new(fd: &OwnedFd, like: &Stat) -> io::Result<Stat> {
    let times = StatxFlags::ATIME | StatxFlags::MTIME | StatxFlags::CTIME;
    let Ok(found) = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS & !times) else {
        // Linux before 4.11 has no such call, and some sandboxes forbid it.
        return fstat(fd);
    };
    Ok(with_fields(*like, &found))
}

#[expect(clippy::useless_conversion, reason = "some are narrower on some architectures")]
fn with_fields(mut stat: Stat, found: &Statx) -> Stat {
    stat.st_dev = makedev(found.stx_dev_major, found.stx_dev_minor).into();
    stat.st_ino = found.stx_ino.into();
    stat.st_mode = found.stx_mode.into();
    stat.st_nlink = found.stx_nlink.into();
    stat.st_uid = found.stx_uid;
    stat.st_gid = found.stx_gid;
    stat.st_rdev = makedev(found.stx_rdev_major, found.stx_rdev_minor).into();
    stat.st_size = found.stx_size.try_into().unwrap_or_default();
    stat.st_blksize = found.stx_blksize.into();
    stat.st_blocks = found.stx_blocks.try_into().unwrap_or_default();
    stat
}

/// Waits for a lease to end, once it is sure that the file is the regular one.
fn open_leased(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    stat: &Stat,
) -> io::Result<OwnedFd> {
    let held = restarting(dir, name, (flags & OFlags::NOFOLLOW) | OFlags::PATH | OFlags::CLOEXEC)?;
    if FileId::of(&fstat(&held)?) != FileId::of(stat) {
        return Err(Errno::STALE);
    }
    let path = Handle::proc_path(held.as_fd());
    retry_on_intr(|| openat(CWD, &path, flags & !OFlags::NOFOLLOW, Mode::empty()))
}

fn restarting(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
    retry_on_intr(|| openat(dir, name, flags, Mode::empty()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_new_file_is_seen_whole_but_for_its_times() {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(&[1; 5000], 0).expect("written");
        file.set_permissions(std::fs::Permissions::from_mode(0o640)).expect("its own mode");
        let like = fstat(File::open("/").expect("the root")).expect("looked at");
        let fd = OwnedFd::from(file);
        let (seen, whole) = (look_at_new(&fd, &like).expect("seen"), fstat(&fd).expect("seen"));
        let fields = |stat: &Stat| {
            let owner = (stat.st_uid, stat.st_gid, stat.st_mode, stat.st_nlink);
            let room = (stat.st_size, stat.st_blocks, stat.st_blksize, stat.st_rdev);
            (FileId::of(stat), owner, room)
        };
        assert_eq!(fields(&seen), fields(&whole));
    }
}
