//! The mode of a new file: the one that it is created with, and its final one. Default access
//! control lists of directories change both.

use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Mode, Stat};

use crate::fs::{ACL_DEFAULT, Handle, acl_mode, kind, may_have_any};
use crate::request::{Keep, ModeRule, Options};

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
    NewMode { initial, wanted: asked & !umask }
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
        && Handle::Path(dir).get(ACL_DEFAULT).is_ok()
}

/// The permissions that the default access control list of `dir` withholds from new files. A new
/// directory has the list of its parent.
pub(crate) fn denied_by_default_acl(dir: Handle<'_>) -> Mode {
    let list = dir.get(ACL_DEFAULT);
    list.map_or(Mode::empty(), |list| Mode::from_raw_mode(0o777) & !acl_mode(&list))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{AtFlags, CWD, statat};

    use super::*;
    use crate::request::Preserve;

    #[test]
    fn without_preserve_mode_a_socket_may_be_executed_and_a_file_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let (socket, file) = (dir.path().join("s"), dir.path().join("f"));
        let _listener = UnixListener::bind(&socket).expect("a socket");
        std::fs::write(&file, "").expect("a file");
        let preserve = Preserve { mode: ModeRule::Fresh, ..Preserve::default() };
        let options = Options { preserve, ..Options::default() };
        for (path, expected) in [(socket, 0o750), (file, 0o640)] {
            let src = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).expect("it is there");
            let mode = new_file_mode(&options, &src, Mode::from_raw_mode(0o027), false);
            assert_eq!(mode.wanted.as_raw_mode(), expected, "{path:?}");
        }
    }
}
