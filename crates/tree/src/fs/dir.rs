//! Directories as open descriptors: entered one component at a time, found again and recognised by
//! device and inode number.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::{self, Errno};

use crate::fs::dir_path::DirPath;
use crate::fs::stat::FileId;
use crate::fs::xattr::Handle;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory that the user named, following symbolic links as every program does.
pub(crate) fn open_operand(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    openat(dir, name, DIRECTORY, Mode::empty())
}

/// Opens a directory that only has to be searched, which needs no leave to list it.
pub(crate) fn open_for_search(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    openat(dir, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a directory to put things into. Where it may not be listed, it can still be gone through.
pub(crate) fn open_destination(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    match openat(dir, name, DIRECTORY | flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let flags = flags | OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(dir, name, flags, Mode::empty())
        }
        result => result,
    }
}

/// [`enter`], for a directory to put things into.
pub(crate) fn enter_destination(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    match enter(dir, name) {
        Err(Errno::ACCESS) => enter_for_search(dir, name),
        result => result,
    }
}

/// A handle on the attributes of an open directory, which may be open for search only.
pub(crate) fn handle(fd: BorrowedFd<'_>) -> Handle<'_> {
    match rustix::fs::fcntl_getfl(fd) {
        Ok(flags) if !flags.contains(OFlags::PATH) => Handle::Open(fd),
        _ => Handle::Path(fd),
    }
}

/// Opens the directory `name` in `dir`, and nothing that a symbolic link leads to.
pub(crate) fn enter(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    open_beneath(dir, name, DIRECTORY)
}

/// The same for one whose listing may be forbidden while passing through is allowed.
pub(crate) fn enter_for_search(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    open_beneath(dir, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)
}

/// Opens `name`, a single component. With openat2 the kernel itself promises that nothing outside
/// `dir` is reached; without it O_NOFOLLOW promises the same, for a single component.
fn open_beneath(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW;
    if has_openat2() {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(dir, name, flags, Mode::empty(), resolve) {
            // A rename elsewhere raced with the kernel's check of `..`, of which there is none.
            Err(Errno::AGAIN) => {}
            result => return result,
        }
    }
    openat(dir, name, flags, Mode::empty())
}

/// Whether the kernel has openat2 and lets us call it: it came with Linux 5.6, and older seccomp
/// filters answer EPERM.
fn has_openat2() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        openat2(CWD, c".", flags, Mode::empty(), ResolveFlags::empty()).is_ok()
    })
}

/// A descriptor for a directory that a dry run does not make: every lookup in it fails.
///
/// # Errors
/// Those of open(2).
pub(crate) fn placeholder_dir() -> io::Result<OwnedFd> {
    openat(CWD, c"/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// A directory of one side of a walk. Its descriptor may be given up and gained again.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: Option<OwnedFd>,
    pub(crate) id: FileId,
    pub(crate) dir_path: DirPath,
    /// It was entered through a symbolic link, so that its `..` is not the directory above it in
    /// the walk.
    pub(crate) through_link: bool,
    /// It is not there: in a rehearsal.
    pub(crate) is_placeholder: bool,
}

impl Dir {
    pub(crate) fn new(
        fd: Option<OwnedFd>,
        stat: &Stat,
        dir_path: DirPath,
        through_link: bool,
    ) -> Dir {
        Dir { fd, id: FileId::of(stat), dir_path, through_link, is_placeholder: false }
    }

    /// # Panics
    /// When the descriptor was given up: the walk gains it again before it goes on here.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("the walk is in this directory, so it is open").as_fd()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.fd.is_some()
    }

    pub(crate) fn close(&mut self) {
        self.fd = None;
    }

    /// Opens this directory again as the parent of `child`. Whatever is found there must be the
    /// very directory that was left.
    ///
    /// # Errors
    /// ESTALE when `child` was moved and something else is its parent now.
    pub(crate) fn reopen(&mut self, child: BorrowedFd<'_>) -> io::Result<()> {
        if self.is_placeholder {
            self.fd = Some(placeholder_dir()?);
            return Ok(());
        }
        let fd = open_destination(child, c"..", OFlags::NOFOLLOW)?;
        if FileId::of(&fstat(&fd)?) != self.id {
            return Err(Errno::STALE);
        }
        self.fd = Some(fd);
        Ok(())
    }

    /// The same by its own name, from the directory above it.
    pub(crate) fn reopen_in(&mut self, parent: BorrowedFd<'_>) -> io::Result<()> {
        if self.is_placeholder {
            self.fd = Some(placeholder_dir()?);
            return Ok(());
        }
        let name = CString::new(self.dir_path.name()).map_err(|_| Errno::INVAL)?;
        let fd = enter_destination(parent, &name)?;
        if FileId::of(&fstat(&fd)?) != self.id {
            return Err(Errno::STALE);
        }
        self.fd = Some(fd);
        Ok(())
    }
}
