//! Temporary names beside a destination, for files that replace it in one step, and how a stale one
//! is recognised ([`Beside::remove_stale`]).
//!
//! The temporary name of `NAME` is `.NAME.haulage-new`, so that a later run of the same copy finds
//! and removes the temporary of a killed run. A NAME that is long or no text is replaced by its hash. If that is the
//! name of a file of the source, if another process may be using it, or if the file system has only shorter names, the
//! name is `.haulage-PID-COUNT`.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, Stat, StatxAttributes, StatxFlags, flock, fstat,
    openat, renameat, statx, unlinkat,
};
use rustix::io::{self, Errno};

use super::context::Job;
use super::own_names::{SUFFIX, is_temporary_name, temp_name};
use crate::entry::Operand;
use crate::fs::{
    FileId, Place, c_name, fs_type_of, is_directory, is_named, is_regular, is_served, is_symlink,
    lstat, retry_for, split,
};
use crate::report::{Diagnostic, Reporter};
use crate::security::Security;

/// The names that are tried for a new file, one after the other. A file system on which all of them
/// exist answers so for any name.
pub(super) const NAMES_TRIED: u32 = 1000;

/// A destination, beside which haulage has files of its own.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'b> {
    pub(crate) security: &'b Security,
    /// The source of the destination now.
    pub(crate) src: &'b Place<'b>,
    /// The operand that the source belongs to, unless there is no other one.
    pub(crate) operand: Option<&'b Operand>,
    pub(crate) dir: BorrowedFd<'b>,
    pub(crate) name: &'b CStr,
}

impl<'b> Beside<'b> {
    /// The destination `name` in `dir` of an entry.
    pub(crate) fn of(Job { cx, entry }: Job<'b>, (dir, name): (BorrowedFd<'b>, &'b CStr)) -> Self {
        let operand = Some(&**entry.operand);
        Beside { security: &cx.security, src: &entry.src, operand, dir, name }
    }

    /// Creates a file with `make` under a temporary name. Returns the name and the result of `make`.
    pub(crate) fn create<T>(
        &self,
        make: impl Fn(&CStr) -> io::Result<T>,
    ) -> io::Result<(CString, T)> {
        self.create_as(self.temporary_name(), make)
    }

    /// Creates a file with `make` under the name `own`, or under a numbered one. Returns the name and the result of
    /// `make`.
    fn create_as<T>(
        &self,
        own: Option<CString>,
        make: impl Fn(&CStr) -> io::Result<T>,
    ) -> io::Result<(CString, T)> {
        if is_append_only(self.dir) {
            return Err(Errno::PERM);
        }
        if let Some(own) = own {
            let made = match make(&own) {
                Err(Errno::EXIST) if matches!(self.remove_if_stale(&own), Ok(true)) => make(&own),
                made => made,
            };
            if !matches!(made, Err(Errno::EXIST | Errno::NAMETOOLONG)) {
                return made.map(|made| (own, made));
            }
        }
        create_numbered(make)
    }

    /// Removes the temporary that a killed run left, for which none is created now.
    pub(super) fn remove_stale(&self) -> Result<(), LeftOver> {
        self.temporary_name().map_or(Ok(()), |own| self.remove_if_stale(&own).map(drop))
    }

    fn temporary_name(&self) -> Option<CString> {
        temp_name(self.name, SUFFIX).filter(|own| !self.is_source_name(own))
    }

    /// Whether the directory of the source, or one that is merged with it, has a file `own` that is not the one
    /// beside the destination. A tree that a killed copy left contains temporary names, and their copies must not
    /// be taken for temporaries of this run.
    pub(super) fn is_source_name(&self, own: &CStr) -> bool {
        let (parent, _) = split(self.src.name);
        let path = match parent {
            b"." => own.into(),
            parent => c_name(&[parent, own.to_bytes()].concat()).unwrap_or_default(),
        };
        let is_other = |there: Stat| !FileId::of(&there).is_at(self.dir, own);
        let merged = self.operand.map(|operand| operand.merged_sources(self.src, own));
        lstat(self.src.dir, &*path).is_ok_and(is_other)
            || merged.into_iter().flatten().any(|path| lstat(CWD, &path).is_ok())
    }

    /// Whether the file `own` beside the destination, which `stat` describes, is the source.
    pub(super) fn is_source(&self, own: &CStr, stat: &Stat) -> bool {
        let is_it = |found: &Stat| FileId::of(found) == FileId::of(stat);
        // A stale temporary may be another hard link of the source.
        let leads_there = |src: Stat| match is_symlink(&src) {
            true => is_it(&src) || self.src.stat(true).is_ok_and(|target| is_it(&target)),
            false => is_it(&src) && src.st_nlink == 1,
        };
        split(self.src.name).1 == own.to_bytes() || self.src.stat(false).is_ok_and(leads_there)
    }

    /// Removes the file `name` if a killed run left it: it belongs to the caller, is not locked, and is
    /// older than this run where locks do not tell. Returns whether it was.
    fn remove_if_stale(&self, name: &CStr) -> Result<bool, LeftOver> {
        let Ok(stat) = lstat(self.dir, name) else { return Ok(false) };
        let caller = self.security.caller;
        let own = caller.is_root() || caller.owns(&stat);
        if !own
            || is_directory(&stat)
            || self.is_source(name, &stat)
            || self.may_be_in_use(name, &stat)
        {
            return Ok(false);
        }
        remove_own(self.dir, name).map(|()| true)
    }

    /// Whether another run may be about to rename the file that `stat` describes.
    fn may_be_in_use(&self, name: &CStr, stat: &Stat) -> bool {
        // A file that is not locked, such as a hard link, has its temporary name for microseconds only.
        if !is_regular(stat) {
            return self.security.changed_during_run(stat);
        }
        if stat.st_nlink > 1 {
            // The ctime of a stale hard link changes with every other link of its file.
            return self.security.changed_during_run(stat) && !persists(self.dir, name, stat);
        }
        let Ok((fd, now)) = open_own_file(self.dir, name) else { return true };
        // The last holder of the lock may have renamed the file, and the name may be that of another run's.
        now.st_uid != stat.st_uid
            || is_locked_elsewhere(self.security, &fd, stat)
            || !is_named(fd.as_fd(), self.dir, name)
    }
}

/// Whether `dir` keeps every name that it gets, as after `chattr +a`: a temporary one would stay there.
pub(super) fn is_append_only(dir: BorrowedFd<'_>) -> bool {
    let found = statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::APPEND))
}

/// Creates a file with `make` under a name that no other run takes for a stale one. Returns the name and the result
/// of `make`.
fn create_numbered<T>(make: impl Fn(&CStr) -> io::Result<T>) -> io::Result<(CString, T)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    for _ in 0..NAMES_TRIED {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".haulage-{}-{count}", std::process::id());
        let name = CString::new(name).expect("a number holds no zero byte");
        match make(&name) {
            Err(Errno::EXIST) => {}
            result => return result.map(|made| (name, made)),
        }
    }
    Err(Errno::EXIST)
}

/// Opens a file beside a destination for reading, whatever it is.
pub(super) fn open_own_file(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<(OwnedFd, Stat)> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = openat(dir, name, flags, Mode::empty())?;
    let stat = fstat(&fd)?;
    Ok((fd, stat))
}

/// Replaces `dst`, which is the destination of an entry or its backup, in one step: creates a file with `make`
/// under a temporary name and renames it. A temporary that stays is reported.
pub(crate) fn replace_by(
    job: Job<'_>,
    dst: &Place<'_>,
    make: impl Fn(&Place<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let beside = Beside::of(job, (dst.dir, dst.name));
    let make = |name: &CStr| make(&Place { name, ..*dst });
    // Without the options of haulage a user knows nothing of names that a file may not have.
    let has_own_names = job.cx.options.atomic || job.cx.options.resume;
    let own = has_own_names.then(|| beside.temporary_name()).flatten();
    let (temp, ()) = beside.create_as(own, make)?;
    let renamed = renameat(dst.dir, &*temp, dst.dir, dst.name);
    // A rename between two hard links of one file keeps both.
    if let Err(left_over) = remove_own(dst.dir, &temp)
        // After a rename there is mostly nothing that could be left over.
        && !matches!(lstat(dst.dir, &*temp), Err(Errno::NOENT))
    {
        left_over.report(job.cx.report, &dst.path());
    }
    renamed
}

/// Locks a temporary file that was just created as `name` in `dir`, so that other runs do not take it
/// for a stale one. Without locks, which some file systems lack, a file that is older than their run is
/// stale.
///
/// # Errors
/// EEXIST when another run has locked it, and is about to remove it or has done so.
pub(crate) fn lock_created(fd: impl AsFd, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let is_locked = try_lock(&fd) == Err(Errno::WOULDBLOCK);
    // No other run takes a name with the number of a process for a stale one. Where inode numbers
    // change and /proc is missing, this name is the way out.
    let is_removed = || is_temporary_name(name.to_bytes()) && !is_named(fd.as_fd(), dir, name);
    if is_locked || is_removed() { Err(Errno::EXIST) } else { Ok(()) }
}

/// Locks a file until it is closed.
///
/// # Errors
/// EWOULDBLOCK when another run has locked it. The client of a server may hold the lock of a killed process for a
/// moment: on ksmbd a second.
pub(super) fn try_lock(fd: impl AsFd) -> io::Result<()> {
    const LOCK_OUTLIVES: Duration = Duration::from_secs(2);
    let is_held = |errno| errno == Errno::WOULDBLOCK;
    let lock = || flock(&fd, FlockOperation::NonBlockingLockExclusive);
    match lock() {
        Err(errno) if is_held(errno) && fs_type_of(fd.as_fd()).is_some_and(is_served) => {
            retry_for(LOCK_OUTLIVES, is_held, lock)
        }
        locked => locked,
    }
}

/// Whether another run has locked `file`, which `stat` describes. If not, it is locked until it is
/// closed.
pub(crate) fn is_locked_elsewhere(security: &Security, file: &OwnedFd, stat: &Stat) -> bool {
    match try_lock(file) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        // Some file systems have no locks.
        Err(_) => security.changed_during_run(stat),
    }
}

/// Whether the file still has the name after a time in which a running copy renames it.
fn persists(dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> bool {
    const RENAME_TIME_MAX: Duration = Duration::from_millis(20);
    std::thread::sleep(RENAME_TIME_MAX);
    FileId::of(stat).is_at(dir, name)
}

/// A file of that kind that cannot be removed.
#[derive(Debug)]
#[must_use = "the user must know what is left over"]
pub(crate) struct LeftOver {
    name: CString,
    errno: Errno,
}

impl LeftOver {
    /// Reports it as a neighbour of the destination `dst`.
    pub(crate) fn report(&self, report: &Reporter<'_>, dst: &Path) {
        let path = dst.with_file_name(OsStr::from_bytes(self.name.to_bytes()));
        report.report(Diagnostic::LeftOver { path, errno: self.errno });
    }
}

impl From<LeftOver> for Errno {
    fn from(left_over: LeftOver) -> Errno {
        left_over.errno
    }
}

/// Removes the file `name` in `dir`, if it is there.
pub(crate) fn remove_own(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), LeftOver> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(LeftOver { name: name.to_owned(), errno }),
    }
}
