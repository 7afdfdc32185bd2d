//! Open directories: entered one component at a time, and recognised by device and inode number
//! when they are opened again.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};

use super::dir_path::DirPath;
use super::place::c_name;
use super::stat::{FileId, is_file};
use super::xattr::Handle;

/// Open flags for a directory that is listed.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Open flags for a directory that is not listed, which need no permission to do that.
pub(crate) const SEARCH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory that the user named, and follows symbolic links.
pub(crate) fn open_operand(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    openat(dir, name, DIRECTORY, Mode::empty())
}

/// Opens a directory with O_PATH, which needs no permission to list it.
pub(crate) fn open_for_search(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    openat(dir, name, SEARCH, Mode::empty())
}

/// Opens a destination directory; with O_PATH if it may not be listed.
pub(crate) fn open_destination(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    match openat(dir, name, DIRECTORY | flags, Mode::empty()) {
        Err(Errno::ACCESS) => openat(dir, name, SEARCH | flags, Mode::empty()),
        result => result,
    }
}

/// [`enter`] for a destination directory.
pub(crate) fn enter_destination(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    match enter(dir, name) {
        Err(Errno::ACCESS) => enter_for_search(dir, name),
        result => result,
    }
}

/// A handle on the attributes of an open directory, which may be open with O_PATH.
pub(crate) fn handle(fd: BorrowedFd<'_>) -> Handle<'_> {
    match rustix::fs::fcntl_getfl(fd) {
        Ok(flags) if !flags.contains(OFlags::PATH) => Handle::Open(fd),
        _ => Handle::Path(fd),
    }
}

/// Opens the directory `name` in `dir`, without following symbolic links.
pub(crate) fn enter(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    open_beneath(dir, name, DIRECTORY)
}

/// Opens the directory `name` in `dir` with O_PATH, without following symbolic links, for a
/// directory that may not be listed.
pub(crate) fn enter_for_search(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    open_beneath(dir, name, SEARCH)
}

/// Opens `name`, a single component. openat2(2) guarantees that nothing outside `dir` is reached;
/// without it O_NOFOLLOW guarantees the same for a single component.
fn open_beneath(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW;
    if has_openat2() {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(dir, name, flags, Mode::empty(), resolve) {
            // A concurrent rename made the kernel's check of `..` uncertain. `name` has no `..`.
            Err(Errno::AGAIN) => {}
            result => return result,
        }
    }
    openat(dir, name, flags, Mode::empty())
}

/// Whether openat2(2) can be called: it came with Linux 5.6, and older seccomp filters return
/// EPERM.
fn has_openat2() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        openat2(CWD, c".", flags, Mode::empty(), ResolveFlags::empty()).is_ok()
    })
}

/// A descriptor for a directory that a dry run does not create: every lookup in it fails.
pub(crate) fn placeholder_dir() -> io::Result<OwnedFd> {
    openat(CWD, c"/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Whether the directory `inner` is `outer` or is below it.
pub(crate) fn is_within(inner: BorrowedFd<'_>, outer: FileId) -> io::Result<bool> {
    let mut at = open_for_search(inner, c".")?;
    let mut id = FileId::of_open(&at)?;
    while id != outer {
        at = open_for_search(at.as_fd(), c"..")?;
        // The directory above the root is the root.
        if std::mem::replace(&mut id, FileId::of_open(&at)?) == id {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A directory of one side of a walk. It may be closed and opened again.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: Option<OwnedFd>,
    /// What it was before the walk did anything in it.
    pub(crate) stat: Stat,
    pub(crate) dir_path: DirPath,
    /// The directory was entered through a symbolic link, so that `..` is not the directory above
    /// it in the walk.
    pub(crate) through_link: bool,
    /// The directory does not exist: a dry run would create it.
    pub(crate) is_placeholder: bool,
}

impl Dir {
    pub(crate) fn new(fd: Option<OwnedFd>, stat: &Stat, path: DirPath, through_link: bool) -> Dir {
        Dir { fd, stat: *stat, dir_path: path, through_link, is_placeholder: false }
    }

    /// # Panics
    /// When it is closed. The walk opens it again before it continues here.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("the walk is in this directory, so it is open").as_fd()
    }

    pub(crate) fn id(&self) -> FileId {
        FileId::of(&self.stat)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.fd.is_some()
    }

    pub(crate) fn close(&mut self) {
        self.fd = None;
    }

    /// The open directory with a descriptor of its own.
    pub(crate) fn duplicate(&self) -> io::Result<Dir> {
        let fd = fcntl_dupfd_cloexec(self.fd(), 0)?;
        Ok(Dir { fd: Some(fd), dir_path: self.dir_path.clone(), ..*self })
    }

    /// Opens this directory again as the parent of `child`.
    ///
    /// # Errors
    /// ESTALE when `child` was moved and has another parent now.
    pub(crate) fn reopen(&mut self, child: BorrowedFd<'_>) -> io::Result<()> {
        self.reopen_by(|_| open_destination(child, c"..", OFlags::NOFOLLOW))
    }

    /// Opens it again by its name in `parent`.
    ///
    /// # Errors
    /// ESTALE when the name belongs to another directory now.
    pub(crate) fn reopen_in(&mut self, parent: BorrowedFd<'_>) -> io::Result<()> {
        self.reopen_by(|dir| enter_destination(parent, &c_name(dir.dir_path.name())?))
    }

    fn reopen_by(&mut self, open: impl Fn(&Dir) -> io::Result<OwnedFd>) -> io::Result<()> {
        let fd = if self.is_placeholder { placeholder_dir()? } else { open(self)? };
        if !self.is_placeholder && !is_file(&fd, &fstat(&fd)?, self.id()) {
            return Err(Errno::STALE);
        }
        self.fd = Some(fd);
        Ok(())
    }
}
