//! Sets attributes through a handle that stands for the inode and not for its name.

use engines::sys::chmod_path_fd;
use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, chmod, chownat, fchmod,
    fchown, futimens, utimensat,
};
use rustix::io::{self, Errno};

use crate::fs::{Caller, Handle, Place, atime, mtime};
use crate::report::{Action, Loss, Reporter, failed};
use crate::request::Options;

/// Set-user-ID, set-group-ID and sticky, which must not pass to a file of another owner.
pub(super) const SPECIAL_BITS: Mode = Mode::SUID.union(Mode::SGID).union(Mode::SVTX);

/// The state of a run that is needed for attributes.
#[derive(Clone, Copy)]
pub(crate) struct MetadataContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) caller: Caller,
}

/// The file that attributes are read from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    /// `None` if extended attributes cannot be read.
    pub(crate) handle: Option<Handle<'s>>,
    pub(crate) stat: &'s Stat,
}

/// The file whose attributes are set.
#[derive(Clone, Copy)]
pub(crate) struct Target<'t> {
    pub(crate) handle: Handle<'t>,
    pub(crate) place: &'t Place<'t>,
    /// The attributes of the file when it was created or found.
    pub(crate) stat: &'t Stat,
    /// This run created it.
    pub(crate) new: bool,
    /// The directory of the file has a default access control list.
    pub(crate) inherits_acl: bool,
    /// The final mode of the file if modes are not preserved.
    pub(crate) mode: Option<Mode>,
}

/// The attributes of a target that could not be set.
pub(super) struct Losses<'t> {
    pub(super) cx: MetadataContext<'t>,
    pub(super) target: Target<'t>,
    pub(super) list: Vec<Loss>,
}

impl<'t> Losses<'t> {
    pub(super) fn none(cx: MetadataContext<'t>, target: Target<'t>) -> Losses<'t> {
        Losses { cx, target, list: Vec::new() }
    }

    /// Records a loss, and reports that `action` failed.
    pub(super) fn report(&mut self, action: Action, loss: Loss) {
        self.cx.report.report(failed(action, self.target.place)(loss.errno()));
        self.list.push(loss);
    }
}

/// chown(2); `None` leaves the user or the group as it is.
pub(super) fn change_owner(
    handle: Handle<'_>,
    uid: Option<Uid>,
    gid: Option<Gid>,
) -> io::Result<()> {
    match handle {
        Handle::Open(fd) => fchown(fd, uid, gid),
        Handle::Path(fd) => chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH),
        Handle::Link(dir, name) => chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
    }
}

/// chmod(2). EOPNOTSUPP for a symbolic link, which has no mode on Linux.
pub(crate) fn set_permissions(handle: Handle<'_>, mode: Mode) -> io::Result<()> {
    match handle {
        Handle::Open(fd) => fchmod(fd, mode),
        Handle::Path(fd) => match chmod(Handle::proc_path(fd), mode) {
            // /proc is not mounted. fchmodat2(2) needs Linux 6.6.
            Err(errno @ Errno::NOENT) => match chmod_path_fd(fd, mode) {
                Err(Errno::NOSYS) => Err(errno),
                changed => changed,
            },
            changed => changed,
        },
        Handle::Link(..) => Err(Errno::OPNOTSUPP),
    }
}

/// Sets the times of access and modification to those of `src`.
pub(crate) fn set_times(handle: Handle<'_>, src: &Stat) -> io::Result<()> {
    set(handle, spec(atime(src)), spec(mtime(src)))
}

/// Sets the time of modification, in seconds and nanoseconds.
pub(crate) fn set_mtime(handle: Handle<'_>, mtime: (i64, i64)) -> io::Result<()> {
    set(handle, Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, spec(mtime))
}

fn spec((tv_sec, tv_nsec): (i64, i64)) -> Timespec {
    Timespec { tv_sec, tv_nsec }
}

fn set(handle: Handle<'_>, last_access: Timespec, last_modification: Timespec) -> io::Result<()> {
    let times = Timestamps { last_access, last_modification };
    match handle {
        Handle::Open(fd) => futimens(fd, &times),
        Handle::Path(fd) => utimensat(fd, c"", &times, AtFlags::EMPTY_PATH),
        Handle::Link(dir, name) => utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW),
    }
}
