//! `--atomic`: a file is made where nobody sees it, and takes its name when it is whole.
//!
//! It has no name at all until then (O_TMPFILE), or one of ours where the file system knows no such
//! files. A new name is given by a link, which replaces nothing. An old one is taken over by a rename
//! from a name of ours, so that it stands for the old file or the new at every moment.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::sys::close;
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, RenameFlags, Stat, accessat, fstat, linkat, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};

use super::context::DestinationContext;
use super::existing::{DestinationState, Found, may_be_removed, refuse_untrusted_link};
use super::partial::{self, FILE_BYTES_MIN, may_resume, resume_or_create};
use super::temp_name::{create_temporary, lock_created, lock_temporary};
use crate::data::journal::Journal;
use crate::data::sync::sync_file;
use crate::entry::Entry;
use crate::fs::{FileId, Handle, Trust, file_bytes, is_regular};
use crate::metadata::NewMode;
use crate::report::{Action, Diagnostic, failed};
use crate::request::{Make, Reflink};
use crate::security::{NotFollowed, Resolved, resolve_symlink};

/// A file on its way to a name.
pub(crate) struct AtomicFile<'j> {
    final_name: FinalName<'j>,
    /// The name that it has meanwhile.
    beside: Option<CString>,
    /// What that file holds is worth keeping for another run.
    keeps: bool,
    /// What is known to be right of it.
    pub(crate) journal: Option<Journal>,
    /// What stands at the name now, and is to be replaced.
    replaced: Option<FileId>,
    /// The file whose attributes it takes over, as it would if it were written into.
    pub(crate) old: Option<ReplacedFile>,
}

/// A file that is to be replaced, held open without any rights to it.
pub(crate) struct ReplacedFile {
    held: OwnedFd,
    pub(crate) stat: Stat,
}

impl ReplacedFile {
    pub(crate) fn handle(&self) -> Handle<'_> {
        Handle::Path(self.held.as_fd())
    }
}

/// The name that the file gets, and the directory that it is in.
enum FinalName<'j> {
    Here(BorrowedFd<'j>, &'j CStr),
    /// Where a symbolic link at the destination leads.
    BehindLink(OwnedFd, CString),
}

impl FinalName<'_> {
    fn dir(&self) -> BorrowedFd<'_> {
        match self {
            FinalName::Here(dir, _) => *dir,
            FinalName::BehindLink(dir, _) => dir.as_fd(),
        }
    }

    fn name(&self) -> &CStr {
        match self {
            FinalName::Here(_, name) => name,
            FinalName::BehindLink(_, name) => name,
        }
    }
}

/// Whether the copy is made aside. What is no file is written to as ever: a device keeps nothing
/// that could be lost. A name of several components is left to the kernel, which says what is wrong
/// with it: no file can be made there.
pub(crate) fn is_atomic(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    state: &DestinationState,
) -> bool {
    let single = !entry.dst.name.to_bytes().contains(&b'/') && !entry.dst.name.is_empty();
    let is_file = |found: &Found| state.replace || is_regular(found.effective());
    cx.options.atomic
        && cx.options.make == Make::Copy
        && single
        && !state.dangling
        && state.found.as_deref().is_none_or(is_file)
}

/// Makes a file for the copy of `entry`, which comes to its name with [`AtomicFile::commit`].
pub(crate) fn open_atomic<'j>(
    cx: &DestinationContext<'_>,
    entry: &'j Entry<'_>,
    state: &DestinationState,
    (src, mode): (&Stat, NewMode),
) -> Result<(OwnedFd, AtomicFile<'j>), Diagnostic> {
    let mut atomic = find_final_name(cx, entry, state)?;
    let long = is_regular(src) && file_bytes(src) >= FILE_BYTES_MIN;
    if cx.options.resume
        && long
        && cx.options.reflink != Reflink::Always
        && may_resume(&entry.src, atomic.final_name.dir(), atomic.final_name.name())
    {
        let part = resume_or_create(
            atomic.final_name.dir(),
            atomic.final_name.name(),
            src,
            cx.security.caller.euid,
        );
        if let Some(part) = part.map_err(failed(Action::CreateRegular, &entry.dst))? {
            atomic.beside = Some(part.name);
            atomic.journal = Some(part.journal);
            atomic.keeps = true;
            return Ok((part.fd, atomic));
        }
    }
    // What takes over an old file's attributes is private until it has them.
    let mode = if atomic.old.is_some() { Mode::RUSR | Mode::WUSR } else { mode.initial };
    let opened = open_unnamed(atomic.final_name.dir(), mode).or_else(|errno| {
        // EISDIR: kernels before 3.11 take it for an attempt to write to the directory.
        if !matches!(errno, Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) {
            return Err(errno);
        }
        let flags = FLAGS | OFlags::CREATE | OFlags::EXCL;
        let (dir, name) = (atomic.final_name.dir(), atomic.final_name.name());
        let (name, fd) = create_temporary(&cx.security, &entry.src, (dir, name), |name| {
            let fd = openat(dir, name, flags, mode)?;
            lock_created(&fd, dir, name)?;
            Ok(fd)
        })?;
        atomic.beside = Some(name);
        Ok(fd)
    });
    Ok((opened.map_err(failed(Action::CreateRegular, &entry.dst))?, atomic))
}

/// Looks for what [`open_atomic`] would replace, and whether it may.
pub(crate) fn check(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    state: &DestinationState,
) -> Result<(), Diagnostic> {
    find_final_name(cx, entry, state).map(drop)
}

const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

fn open_unnamed(dir: BorrowedFd<'_>, mode: Mode) -> io::Result<OwnedFd> {
    openat(dir, c".", FLAGS | OFlags::TMPFILE, mode)
}

fn find_final_name<'j>(
    cx: &DestinationContext<'_>,
    entry: &'j Entry<'_>,
    state: &DestinationState,
) -> Result<AtomicFile<'j>, Diagnostic> {
    let here = FinalName::Here(entry.dst.dir, entry.dst.name);
    let Some(found) = state.found.as_deref() else {
        return Ok(AtomicFile::new(here, None, None));
    };
    let replaced = Some(FileId::of(&found.link));
    if state.replace {
        return Ok(AtomicFile::new(here, replaced, None));
    }
    let (final_name, held) = if found.through_link {
        let entry = find_behind_link(cx, entry, found)?;
        (FinalName::BehindLink(entry.dir, entry.name), entry.held)
    } else {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = openat(entry.dst.dir, entry.dst.name, flags, Mode::empty());
        (here, held.map_err(failed(Action::CreateRegular, &entry.dst))?)
    };
    let stat = fstat(&held).map_err(failed(Action::Fstat, &entry.dst))?;
    if FileId::of(&stat) != FileId::of(found.effective()) {
        return Err(Diagnostic::DestinationReplaced { dst: entry.dst.path() });
    }
    // A rename asks nobody whether the file may be written to; whoever protected it expects us to.
    let path = Handle::proc_path(held.as_fd());
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => {
            let replaced = Some(FileId::of(&stat));
            Ok(AtomicFile::new(final_name, replaced, Some(ReplacedFile { held, stat })))
        }
        // It would have been removed, and a new one made.
        Err(errno) if cx.options.force && may_be_removed(errno) => {
            let here = FinalName::Here(entry.dst.dir, entry.dst.name);
            Ok(AtomicFile::new(here, replaced, None))
        }
        Err(errno) => Err(failed(Action::CreateRegular, &entry.dst)(errno)),
    }
}

/// The file that the symbolic link at the destination leads to, in its own directory.
fn find_behind_link(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
) -> Result<Resolved, Diagnostic> {
    let named = entry.dst.trust == Trust::Operand;
    if !named {
        refuse_untrusted_link(cx, entry, found)?;
    }
    match resolve_symlink(&cx.security, entry.dst.dir, entry.dst.name, named) {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(Diagnostic::NameUnknown { dst: entry.dst.path() }),
        Err(NotFollowed::Untrusted) => Err(Diagnostic::ForeignSymlink { dst: entry.dst.path() }),
        Err(NotFollowed::Errno(errno)) => Err(failed(Action::CreateRegular, &entry.dst)(errno)),
    }
}

impl<'j> AtomicFile<'j> {
    fn new(
        final_name: FinalName<'j>,
        replaced: Option<FileId>,
        old: Option<ReplacedFile>,
    ) -> AtomicFile<'j> {
        AtomicFile { final_name, beside: None, keeps: false, journal: None, replaced, old }
    }

    /// Keeps no part of it: it is not what it should be.
    pub(crate) fn discard(&mut self) {
        if std::mem::take(&mut self.keeps) {
            partial::clear(self.final_name.dir(), self.final_name.name());
        }
    }

    /// The mode that the file was made with, before the umask.
    pub(crate) fn made_with(&self, mode: Mode) -> Mode {
        if self.keeps { Mode::RUSR | Mode::WUSR } else { mode }
    }

    /// Gives `fd`, which is whole now, its name.
    pub(crate) fn commit(
        mut self,
        cx: &DestinationContext<'_>,
        entry: &Entry<'_>,
        fd: &OwnedFd,
    ) -> Result<(), Diagnostic> {
        if cx.options.durable {
            // After a crash the name must not stand for a file whose data was still on its way.
            sync_file(fd.as_fd()).map_err(failed(Action::Sync, &entry.dst))?;
        }
        // Closing is when some file systems tell of failed writes, and it must not come too late.
        let again = fcntl_dupfd_cloexec(fd, 0).map_err(failed(Action::Close, &entry.dst))?;
        close(again).map_err(failed(Action::Close, &entry.dst))?;
        match self.replaced {
            None => self.take_new_name(fd).map_err(failed(Action::CreateRegular, &entry.dst)),
            Some(replaced) => self.take_over(cx, entry, fd, replaced),
        }?;
        if let FinalName::BehindLink(dir, _) = &self.final_name {
            // Nobody else knows this directory.
            cx.sync.sync_directory(dir.as_fd(), || entry.dst.path());
        }
        if self.keeps {
            partial::clear(self.final_name.dir(), self.final_name.name());
        }
        Ok(())
    }

    fn take_new_name(&mut self, fd: &OwnedFd) -> io::Result<()> {
        let (dir, name) = (self.final_name.dir(), self.final_name.name());
        let Some(beside) = self.beside.as_deref() else { return link(fd, dir, name) };
        match renameat_with(dir, beside, dir, name, RenameFlags::NOREPLACE) {
            // Network file systems have no such flag, but links.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno),
            Ok(()) => {
                self.beside = None;
                return Ok(());
            }
        }
        match linkat(dir, beside, dir, name, AtFlags::empty()) {
            // Nor that: the gap between looking and renaming stays.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno),
                    Ok(_) => return Err(Errno::EXIST),
                }
                renameat(dir, beside, dir, name)?;
                self.beside = None;
                Ok(())
            }
            // The first name goes away with this.
            result => result,
        }
    }

    fn take_over(
        &mut self,
        cx: &DestinationContext<'_>,
        entry: &Entry<'_>,
        fd: &OwnedFd,
        replaced: FileId,
    ) -> Result<(), Diagnostic> {
        let (dir, name) = (self.final_name.dir(), self.final_name.name());
        if self.beside.is_none() {
            // Nobody can have it before it has a name.
            let _ = lock_temporary(fd);
            let (beside, ()) = create_temporary(&cx.security, &entry.src, (dir, name), |beside| {
                link(fd, dir, beside)
            })
            .map_err(failed(Action::CreateRegular, &entry.dst))?;
            self.beside = Some(beside);
        }
        match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if FileId::of(&now) != replaced => {
                return Err(Diagnostic::DestinationReplaced { dst: entry.dst.path() });
            }
            // Nothing is there to be lost.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(Action::Stat, &entry.dst)(errno)),
        }
        let beside = self.beside.as_deref().expect("it was given above");
        renameat(dir, beside, dir, name).map_err(failed(Action::Replace, &entry.dst))?;
        self.beside = None;
        Ok(())
    }
}

impl Drop for AtomicFile<'_> {
    fn drop(&mut self) {
        if let Some(beside) = self.beside.as_ref().filter(|_| !self.keeps) {
            let _ = unlinkat(self.final_name.dir(), &**beside, AtFlags::empty());
        }
    }
}

/// Gives the file without a name one that nobody has.
fn link(fd: &OwnedFd, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let path = Handle::proc_path(fd.as_fd());
    match linkat(CWD, path, dir, name, AtFlags::SYMLINK_FOLLOW) {
        // Without /proc: since Linux 6.10 whoever opened the file may link it.
        Err(Errno::NOENT) => linkat(fd, c"", dir, name, AtFlags::EMPTY_PATH),
        result => result,
    }
}
