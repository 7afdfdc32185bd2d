//! Sets attributes through a handle that stands for the inode and not for its name.

use std::os::fd::BorrowedFd;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, chmod, chownat,
    fchmod, fchown, futimens, utimensat,
};
use rustix::io::{self, Errno};
use sys::chmod_path_fd;

use crate::fs::{ACL_DEFAULT, Caller, Handle, Place, acl_mode, atime, kind, may_have_any, mtime};
use crate::report::{Action, Loss, Reporter, failed};
use crate::request::{Keep, ModeRule, Options};

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

impl<'t> Target<'t> {
    /// A file that this run did not create.
    pub(crate) fn existing(handle: Handle<'t>, place: &'t Place<'t>, stat: &'t Stat) -> Target<'t> {
        Target { handle, place, stat, new: false, inherits_acl: false, mode: None }
    }
}

/// The attributes of a target that could not be set.
pub(super) struct Losses<'t> {
    pub(super) cx: MetadataContext<'t>,
    pub(super) target: Target<'t>,
    pub(super) list: Vec<Loss>,
}

impl Losses<'_> {
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

/// The permissions that a new file is created with, and its final ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewMode {
    pub(crate) initial: Mode,
    pub(crate) wanted: Mode,
}

/// The mode of the copy of a file, fifo, socket or device `src`.
pub(crate) fn new_file_mode(
    options: &Options,
    src: &Stat,
    umask: Mode,
    inherits_acl: bool,
) -> NewMode {
    let asked = match options.preserve.mode {
        // bind(2) gives a new socket all permissions but those of the umask.
        ModeRule::Fresh if kind(src) == FileType::Socket => Mode::from_raw_mode(0o777),
        ModeRule::Fresh => Mode::from_raw_mode(0o666),
        ModeRule::Umask | ModeRule::Preserve => Mode::from_raw_mode(src.st_mode & 0o777),
    };
    let is_private = is_created_private(options, inherits_acl);
    let initial = if is_private { Mode::RUSR | Mode::WUSR } else { asked };
    // A list that is inherited and kept replaces the umask, but, as in GNU cp, not for what waits for the owner.
    let keeps_acl = inherits_acl && !drops_inherited_acl(options, inherits_acl);
    let masked = match (keeps_acl, options.preserve.ownership) {
        (false, _) => umask,
        (true, true) => umask & (Mode::RWXG | Mode::RWXO),
        (true, false) => Mode::empty(),
    };
    NewMode { initial, wanted: asked & !masked }
}

/// Whether attributes are set after the data, until which a new file is private.
pub(crate) fn sets_attributes_later(options: &Options) -> bool {
    options.preserve.mode == ModeRule::Preserve
        || options.preserve.ownership
        || options.preserve.xattr != Keep::No
}

/// Whether a new file loses the access control list that it inherits: with `--no-preserve=mode` its
/// mode is that of a file without a list. Until the list is removed the file is private.
pub(crate) fn drops_inherited_acl(options: &Options, inherits_acl: bool) -> bool {
    inherits_acl && options.preserve.mode == ModeRule::Fresh
}

/// Whether a new file is private until its attributes are set.
pub(crate) fn is_created_private(options: &Options, inherits_acl: bool) -> bool {
    sets_attributes_later(options) || drops_inherited_acl(options, inherits_acl)
}

/// Whether it matters that a new file inherits an access control list: the list is removed, or the
/// final permissions must not exceed it.
pub(crate) fn inherited_acl_matters(options: &Options) -> bool {
    options.preserve.mode == ModeRule::Fresh || sets_attributes_later(options)
}

/// Whether a directory has a default access control list, if that matters.
pub(crate) fn has_default_acl(options: &Options, dir: BorrowedFd<'_>) -> bool {
    inherited_acl_matters(options)
        && may_have_any(dir, c".")
        && may_have_default_acl(Handle::Path(dir))
}

/// Whether the directory `dir` has a default access control list, as far as that can be told. Without /proc it cannot
/// be told of one that may not be listed.
pub(crate) fn may_have_default_acl(dir: Handle<'_>) -> bool {
    !matches!(dir.get(ACL_DEFAULT), Err(Errno::NODATA | Errno::OPNOTSUPP))
}

/// The permissions that the default access control list of `dir` withholds from new files, or the `umask` if there is
/// none. A new directory has the list of its parent.
pub(crate) fn denied_by_default_acl(dir: Handle<'_>, umask: Mode) -> Mode {
    match dir.get(ACL_DEFAULT) {
        Ok(list) => Mode::from_raw_mode(0o777) & !acl_mode(&list),
        Err(_) if may_have_default_acl(dir) => Mode::RWXG | Mode::RWXO,
        Err(_) => umask,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{AtFlags, CWD, statat};

    use super::*;
    use crate::request::Preserve;

    #[test]
    fn without_preserve_mode_a_socket_may_be_executed_and_a_file_not() {
        let dir = tempfile::tempdir().expect("created");
        let (socket, file) = (dir.path().join("s"), dir.path().join("f"));
        let _listener = UnixListener::bind(&socket).expect("bound");
        std::fs::write(&file, "").expect("written");
        let preserve = Preserve { mode: ModeRule::Fresh, ..Preserve::default() };
        let options = Options { preserve, ..Options::default() };
        for (path, expected) in [(socket, 0o750), (file, 0o640)] {
            let src = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).expect("looked at");
            let mode = new_file_mode(&options, &src, Mode::from_raw_mode(0o027), false);
            assert_eq!(mode.wanted.as_raw_mode(), expected, "{path:?}");
        }
    }
}
