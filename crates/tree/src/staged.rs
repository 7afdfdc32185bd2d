//! `--atomic`: a file is made where nobody sees it, and takes its name when it is whole.
//!
//! It has no name at all until then (O_TMPFILE), or one of ours where the file system knows no such
//! files. A new name is given by a link, which replaces nothing. An old one is taken over by a rename
//! from a name of ours, so that it stands for the old file or the new at every moment.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, RenameFlags, Stat, accessat, fstat, linkat, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};

use engines::sys::close;

use crate::beside::{keep_from_others, keep_made, make_beside};
use crate::diagnostic::{Action, Diagnostic};
use crate::durable::{sync_directory, sync_file};
use crate::entry::Job;
use crate::existing::{Found, Ground};
use crate::follow::{Astray, Entry, find_followed};
use crate::identity::{FileId, file_bytes, is_regular};
use crate::journal::{self, FILE_BYTES_MIN, Journal, may_have_part, take_up};
use crate::metadata::NewMode;
use crate::options::{Make, Reflink};
use crate::place::Trust;
use crate::regular::{may_yield, refuse_untrusted_link};
use crate::run::{Run, failed};
use crate::xattr::Handle;

/// A file on its way to a name.
pub(crate) struct Staged<'j> {
    spot: Spot<'j>,
    /// The name that it has meanwhile.
    beside: Option<CString>,
    /// What that file holds is worth keeping for another run.
    keeps: bool,
    /// What is known to be right of it.
    pub(crate) journal: Option<Journal>,
    /// What stands at the name now, and is to be replaced.
    replaced: Option<FileId>,
    /// The file whose attributes it takes over, as it would if it were written into.
    pub(crate) old: Option<Old>,
}

/// A file that is to be replaced, held open without any rights to it.
pub(crate) struct Old {
    held: OwnedFd,
    pub(crate) stat: Stat,
}

impl Old {
    pub(crate) fn handle(&self) -> Handle<'_> {
        Handle::Path(self.held.as_fd())
    }
}

/// The name that the file gets, and the directory that it is in.
enum Spot<'j> {
    Here(BorrowedFd<'j>, &'j CStr),
    /// Where a symbolic link at the destination leads.
    BehindLink(OwnedFd, CString),
}

impl Spot<'_> {
    fn dir(&self) -> BorrowedFd<'_> {
        match self {
            Spot::Here(dir, _) => *dir,
            Spot::BehindLink(dir, _) => dir.as_fd(),
        }
    }

    fn name(&self) -> &CStr {
        match self {
            Spot::Here(_, name) => name,
            Spot::BehindLink(_, name) => name,
        }
    }
}

/// Whether the copy is made aside. What is no file is written to as ever: a device keeps nothing
/// that could be lost. A name of several components is left to the kernel, which says what is wrong
/// with it: no file can be made there.
pub(crate) fn is_staged(run: &Run<'_>, job: &Job<'_>, ground: &Ground) -> bool {
    let single = !job.dst.name.to_bytes().contains(&b'/') && !job.dst.name.is_empty();
    let is_file = |found: &Found| ground.gives_way || is_regular(found.effective());
    run.options.atomic
        && run.options.make == Make::Copy
        && single
        && !ground.dangling
        && ground.found.as_deref().is_none_or(is_file)
}

/// Makes a file for the copy of `job`, which comes to its name with [`Staged::settle`].
pub(crate) fn stage<'j>(
    run: &Run<'_>,
    job: &'j Job<'_>,
    ground: &Ground,
    (src, mode): (&Stat, NewMode),
) -> Result<(OwnedFd, Staged<'j>), Diagnostic> {
    let mut staged = find_spot(run, job, ground)?;
    let long = is_regular(src) && file_bytes(src) >= FILE_BYTES_MIN;
    if run.options.resume
        && long
        && run.options.reflink != Reflink::Always
        && may_have_part(&job.src, staged.spot.dir(), staged.spot.name())
    {
        let part = take_up(staged.spot.dir(), staged.spot.name(), src, run.euid);
        if let Some(part) = part.map_err(failed(Action::CreateRegular, &job.dst))? {
            staged.beside = Some(part.name);
            staged.journal = Some(part.journal);
            staged.keeps = true;
            return Ok((part.fd, staged));
        }
    }
    // What takes over an old file's attributes is private until it has them.
    let mode = if staged.old.is_some() { Mode::RUSR | Mode::WUSR } else { mode.at_first };
    let opened = open_unnamed(staged.spot.dir(), mode).or_else(|errno| {
        // EISDIR: kernels before 3.11 take it for an attempt to write to the directory.
        if !matches!(errno, Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) {
            return Err(errno);
        }
        let flags = FLAGS | OFlags::CREATE | OFlags::EXCL;
        let (dir, name) = (staged.spot.dir(), staged.spot.name());
        let (name, fd) = make_beside(run, &job.src, (dir, name), |name| {
            let fd = openat(dir, name, flags, mode)?;
            keep_made(&fd, dir, name)?;
            Ok(fd)
        })?;
        staged.beside = Some(name);
        Ok(fd)
    });
    Ok((opened.map_err(failed(Action::CreateRegular, &job.dst))?, staged))
}

/// Looks for what [`stage`] would replace, and whether it may.
pub(crate) fn rehearse(run: &Run<'_>, job: &Job<'_>, ground: &Ground) -> Result<(), Diagnostic> {
    find_spot(run, job, ground).map(drop)
}

const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

fn open_unnamed(dir: BorrowedFd<'_>, mode: Mode) -> io::Result<OwnedFd> {
    openat(dir, c".", FLAGS | OFlags::TMPFILE, mode)
}

fn find_spot<'j>(
    run: &Run<'_>,
    job: &'j Job<'_>,
    ground: &Ground,
) -> Result<Staged<'j>, Diagnostic> {
    let here = Spot::Here(job.dst.dir, job.dst.name);
    let Some(found) = ground.found.as_deref() else {
        return Ok(Staged::new(here, None, None));
    };
    let replaced = Some(FileId::of(&found.link));
    if ground.gives_way {
        return Ok(Staged::new(here, replaced, None));
    }
    let (spot, held) = if found.through_link {
        let entry = find_behind_link(run, job, found)?;
        (Spot::BehindLink(entry.dir, entry.name), entry.held)
    } else {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = openat(job.dst.dir, job.dst.name, flags, Mode::empty());
        (here, held.map_err(failed(Action::CreateRegular, &job.dst))?)
    };
    let stat = fstat(&held).map_err(failed(Action::Fstat, &job.dst))?;
    if FileId::of(&stat) != FileId::of(found.effective()) {
        return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
    }
    // A rename asks nobody whether the file may be written to; whoever protected it expects us to.
    let path = Handle::proc_path(held.as_fd());
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => {
            let replaced = Some(FileId::of(&stat));
            Ok(Staged::new(spot, replaced, Some(Old { held, stat })))
        }
        // It would have been removed, and a new one made.
        Err(errno) if run.options.force && may_yield(errno) => {
            let here = Spot::Here(job.dst.dir, job.dst.name);
            Ok(Staged::new(here, replaced, None))
        }
        Err(errno) => Err(failed(Action::CreateRegular, &job.dst)(errno)),
    }
}

/// The file that the symbolic link at the destination leads to, in its own directory.
fn find_behind_link(run: &Run<'_>, job: &Job<'_>, found: &Found) -> Result<Entry, Diagnostic> {
    let named = job.dst.trust == Trust::Operand;
    if !named {
        refuse_untrusted_link(run, job, found)?;
    }
    match find_followed(run, job.dst.dir, job.dst.name, named) {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(Diagnostic::NameUnknown { dst: job.dst.path() }),
        Err(Astray::Foreign) => Err(Diagnostic::ForeignSymlink { dst: job.dst.path() }),
        Err(Astray::Errno(errno)) => Err(failed(Action::CreateRegular, &job.dst)(errno)),
    }
}

impl<'j> Staged<'j> {
    fn new(spot: Spot<'j>, replaced: Option<FileId>, old: Option<Old>) -> Staged<'j> {
        Staged { spot, beside: None, keeps: false, journal: None, replaced, old }
    }

    /// Keeps no part of it: it is not what it should be.
    pub(crate) fn discard(&mut self) {
        if std::mem::take(&mut self.keeps) {
            journal::clear(self.spot.dir(), self.spot.name());
        }
    }

    /// The mode that the file was made with, before the umask.
    pub(crate) fn made_with(&self, mode: Mode) -> Mode {
        if self.keeps { Mode::RUSR | Mode::WUSR } else { mode }
    }

    /// Gives `fd`, which is whole now, its name.
    pub(crate) fn settle(
        mut self,
        run: &Run<'_>,
        job: &Job<'_>,
        fd: &OwnedFd,
    ) -> Result<(), Diagnostic> {
        if run.options.durable {
            // After a crash the name must not stand for a file whose data was still on its way.
            sync_file(fd.as_fd()).map_err(failed(Action::Sync, &job.dst))?;
        }
        // Closing is when some file systems tell of failed writes, and it must not come too late.
        let again = fcntl_dupfd_cloexec(fd, 0).map_err(failed(Action::Close, &job.dst))?;
        close(again).map_err(failed(Action::Close, &job.dst))?;
        match self.replaced {
            None => self.take_new_name(fd).map_err(failed(Action::CreateRegular, &job.dst)),
            Some(replaced) => self.take_over(run, job, fd, replaced),
        }?;
        if let Spot::BehindLink(dir, _) = &self.spot {
            // Nobody else knows this directory.
            sync_directory(run, dir.as_fd(), || job.dst.path());
        }
        if self.keeps {
            journal::clear(self.spot.dir(), self.spot.name());
        }
        Ok(())
    }

    fn take_new_name(&mut self, fd: &OwnedFd) -> io::Result<()> {
        let (dir, name) = (self.spot.dir(), self.spot.name());
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
        run: &Run<'_>,
        job: &Job<'_>,
        fd: &OwnedFd,
        replaced: FileId,
    ) -> Result<(), Diagnostic> {
        let (dir, name) = (self.spot.dir(), self.spot.name());
        if self.beside.is_none() {
            // Nobody can have it before it has a name.
            let _ = keep_from_others(fd);
            let (beside, ()) =
                make_beside(run, &job.src, (dir, name), |beside| link(fd, dir, beside))
                    .map_err(failed(Action::CreateRegular, &job.dst))?;
            self.beside = Some(beside);
        }
        match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if FileId::of(&now) != replaced => {
                return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
            }
            // Nothing is there to be lost.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(Action::Stat, &job.dst)(errno)),
        }
        let beside = self.beside.as_deref().expect("it was given above");
        renameat(dir, beside, dir, name).map_err(failed(Action::Replace, &job.dst))?;
        self.beside = None;
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(beside) = self.beside.as_ref().filter(|_| !self.keeps) {
            let _ = unlinkat(self.spot.dir(), &**beside, AtFlags::empty());
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
