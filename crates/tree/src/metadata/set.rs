//! Setting attributes through a handle that stands for the inode and not for its name.

use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid, chmod, chownat, fchmod, fchown, futimens,
    utimensat,
};
use rustix::io::{self, Errno};

use crate::fs::{Caller, Handle, Place, atime, mtime};
use crate::report::Reporter;
use crate::request::Options;

/// Set-user-ID, set-group-ID and sticky: what must not pass to a file of another owner.
pub(super) const SPECIAL_BITS: Mode = Mode::SUID.union(Mode::SGID).union(Mode::SVTX);

/// What the functions of this folder need of a run.
#[derive(Clone, Copy)]
pub(crate) struct MetadataContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) caller: Caller,
}

/// Where attributes come from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) handle: Option<Handle<'s>>,
    pub(crate) stat: &'s Stat,
}

/// What they are given to.
#[derive(Clone, Copy)]
pub(crate) struct Target<'t> {
    pub(crate) handle: Handle<'t>,
    pub(crate) place: &'t Place<'t>,
    /// As it was made, or found.
    pub(crate) stat: &'t Stat,
    /// This run made it.
    pub(crate) new: bool,
    /// The directory it is in gives an access control list to what is made there.
    pub(crate) inherits_acl: bool,
    /// The mode that it should have when none is preserved.
    pub(crate) mode: Option<Mode>,
}

/// chown(2); `None` leaves one of them.
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

/// chmod(2).
///
/// # Errors
/// EOPNOTSUPP for a symbolic link, which has no mode on Linux.
pub(crate) fn set_permissions(handle: Handle<'_>, mode: Mode) -> io::Result<()> {
    match handle {
        Handle::Open(fd) => fchmod(fd, mode),
        // fchmodat knows no AT_EMPTY_PATH.
        Handle::Path(fd) => chmod(Handle::proc_path(fd), mode),
        Handle::Link(..) => Err(Errno::OPNOTSUPP),
    }
}

/// Sets the times of access and modification to those of `src`.
pub(super) fn set_times(handle: Handle<'_>, src: &Stat) -> io::Result<()> {
    let spec = |(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec };
    let times = Timestamps { last_access: spec(atime(src)), last_modification: spec(mtime(src)) };
    match handle {
        Handle::Open(fd) => futimens(fd, &times),
        Handle::Path(fd) => utimensat(fd, c"", &times, AtFlags::EMPTY_PATH),
        Handle::Link(dir, name) => utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW),
    }
}
