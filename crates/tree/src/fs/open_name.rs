//! The kernel's own name of an open file.

use std::ffi::{CStr, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, fstat, linkat, readlinkat, renameat, statat};
use rustix::io::{self, Errno};

use super::{FileId, Handle};

/// Whether the open file `fd` has the name `name` in `dir`.
pub(crate) fn is_named(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> bool {
    id_by_name(fd, dir, name).is_some()
}

/// The identity that the open file `fd` has by the name `name` in `dir`; `None` if the name is not its own.
///
/// Some file systems report another inode number at each look, or one for each name. There the kernel's name of the
/// file decides, which /proc tells. Without /proc the file does not count as that of the name.
pub(crate) fn id_by_name(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> Option<FileId> {
    let named = FileId::of(&statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?);
    if fstat(fd).is_ok_and(|opened| FileId::of(&opened) == named) {
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
    match statat(dir, to, AtFlags::SYMLINK_NOFOLLOW) {
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
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_has_its_name_until_it_is_renamed_removed_or_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = File::open(dir.path()).expect("a directory");
        let path = |name: &str| dir.path().join(name);
        let file = File::create(path("f")).expect("a file");
        let is_named = |name| is_named(file.as_fd(), at.as_fd(), name);
        assert!(is_named(c"f"));
        assert_eq!(path_of(file.as_fd()), path_of(at.as_fd()).map(|dir| dir.join("f")));
        hard_link(path("f"), path("other")).expect("a link");
        assert!(is_named(c"other"));
        rename(path("f"), path("g")).expect("renamed");
        assert!(!is_named(c"f"));
        File::create(path("f")).expect("a file");
        assert!(!is_named(c"f"), "it is another file");
        for name in ["g", "other"] {
            remove_file(path(name)).expect("removed");
        }
        File::create(path("g")).expect("a file");
        assert!(!is_named(c"g"), "it is another file");
    }
}
