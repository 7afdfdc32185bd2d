//! `--atomic`: a file gets its name when it is complete.
//!
//! Until then it has no name (O_TMPFILE), or a temporary one if the file system has no such files or a server keeps it.
//! A new name is given by linkat(2) or RENAME_NOREPLACE, which replace nothing. An existing name is
//! replaced by rename(2) from a temporary name, so that it always stands for the old file or the whole new one.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    Access, AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, Stat, StatxAttributes,
    StatxFlags, accessat, flock, fstat, linkat, openat, renameat, renameat_with, statx,
};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};
use sys::close;

use super::context::Job;
use super::dry_run::may_remove;
use super::found::{Found, refuse_untrusted_link, stat_found};
use super::partial::{self, resume_or_create};
use super::prepare::{DestinationState, NewFile, is_gone, may_be_removed};
use super::temporary::{Beside, LeftOver, lock_created, remove_own, try_lock};
use crate::data::journal::{FILE_BYTES_MIN, Journal};
use crate::data::sync::{is_written_without_name, write_after_name, write_before_name};
use crate::fs::{
    FileId, Handle, OpenFile, Place, Trust, file_bytes, fs_type_of, give_name, hold, is_regular,
    is_renamed_instead, is_renumbered, is_served, keeps_number, lstat, open_to_write, path_in,
    rename_if_absent,
};
use crate::metadata::set_permissions;
use crate::report::{Action, Diagnostic, Result, failed};
use crate::request::{Existing, Make, Options, Reflink};
use crate::security::{Resolved, resolve_symlink, unless_untrusted};

/// A new file that does not have its final name yet.
pub(crate) struct AtomicFile<'j> {
    job: Job<'j>,
    /// The directory and the name of the file if that is the target of a symbolic link at the destination.
    target: Option<(OwnedFd, CString)>,
    temp_name: Option<CString>,
    /// The file is a partial file that is kept if the copy fails.
    resumable: bool,
    /// How much of it is valid, if it is resumable.
    pub(crate) journal: Option<Journal>,
    /// It was created as a file that nobody may write.
    is_protected: bool,
    /// The file that has the final name now.
    replaced: Option<Stat>,
    /// The file whose attributes it gets, as if that file were overwritten.
    /// It is open with O_PATH.
    pub(crate) old: Option<OpenFile>,
}

/// Whether `--atomic` applies. Devices and fifos are written to directly. A name of several
/// components is an error, which the ordinary open reports.
pub(crate) fn is_atomic(Job { cx, entry }: Job<'_>, state: &DestinationState) -> bool {
    let single = !entry.dst.name.to_bytes().contains(&b'/') && !entry.dst.name.is_empty();
    let is_file = |found: &Found| state.replace || is_regular(found.effective());
    cx.options.atomic
        && cx.options.make == Make::Copy
        && single
        && !state.dangling
        && state.found.as_deref().is_none_or(is_file)
}

/// Creates a file for the copy of `entry`. [`AtomicFile::commit`] gives it its name.
pub(crate) fn open_atomic<'j>(
    job: Job<'j>,
    state: &DestinationState,
    NewFile { src, mode, is_named, fs_type }: NewFile<'_>,
) -> Result<(OwnedFd, AtomicFile<'j>)> {
    let Job { cx, entry } = job;
    let mut atomic = find_final_name(job, state)?;
    let long = is_regular(src) && file_bytes(src) >= FILE_BYTES_MIN;
    if cx.options.resume && long && cx.options.reflink != Reflink::Always {
        let partial = resume_or_create(&atomic.beside(), src);
        if let Some(partial) = partial.map_err(failed(Action::CreateRegular, &entry.dst))? {
            atomic.temp_name = Some(partial.name);
            atomic.journal = Some(partial.journal);
            atomic.resumable = true;
            return Ok((partial.fd, atomic));
        }
    }
    // A file that gets the attributes of an old one is private until it has them.
    let mode = if atomic.old.is_some() { Mode::RUSR | Mode::WUSR } else { mode.initial };
    atomic.is_protected = !mode.intersects(WRITABLE);
    let (dir, _) = atomic.final_name();
    let fs_type = if atomic.target.is_some() { fs_type_of(dir) } else { fs_type };
    // A client of SMB forgets the times of a directory in which such a file gets a name (Linux 7.2).
    let unnamed = match is_named || fs_type.is_some_and(is_served) {
        false => openat(dir, c".", FLAGS | OFlags::TMPFILE, mode).map(|fd| (None, fd)),
        true => Err(Errno::OPNOTSUPP),
    };
    let opened = unnamed.or_else(|errno| {
        // EISDIR: kernels before 3.11 do not know O_TMPFILE, and refuse to open a directory for
        // writing.
        if !matches!(errno, Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) {
            return Err(errno);
        }
        let flags = FLAGS | OFlags::CREATE | OFlags::EXCL;
        let (name, fd) = atomic.beside().create(|name| {
            let fd = open_to_write(fs_type, (dir, name), flags, mode)?;
            lock_created(&fd, dir, name)?;
            Ok(fd)
        })?;
        Ok((Some(name), fd))
    });
    let (temp_name, fd) = opened.map_err(failed(Action::CreateRegular, &entry.dst))?;
    atomic.temp_name = temp_name;
    Ok((fd, atomic))
}

const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// The file that gets its name later, before it is created.
///
/// # Errors
/// The existing file may not be replaced.
pub(crate) fn find_final_name<'j>(
    job: Job<'j>,
    state: &DestinationState,
) -> Result<AtomicFile<'j>> {
    let Some(found) = state.found.as_deref() else {
        return Ok(AtomicFile::new(job, None));
    };
    if state.replace {
        return Ok(AtomicFile::new(job, Some(&found.link)));
    }
    let looked = find_old_file(job, found);
    // Another process has removed the file. If one of another host has, the name was known from before.
    let Err(Diagnostic::Failed { errno: Errno::NOENT | Errno::STALE, .. }) = looked else {
        return looked;
    };
    match !found.through_link && is_gone(&job.entry.dst) {
        true => Ok(AtomicFile::new(job, None)),
        false => find_old_file(job, found),
    }
}

/// Looks at the existing file `found`, whose attributes the new one gets.
fn find_old_file<'j>(job: Job<'j>, found: &Found) -> Result<AtomicFile<'j>> {
    let Job { cx, entry } = job;
    let (target, fd) = if found.through_link {
        let Resolved { dir, name, held, .. } = find_link_target(job, found)?;
        (Some((dir, name)), held)
    } else {
        let held = hold(entry.dst.dir, entry.dst.name, false);
        (None, held.map_err(failed(Action::CreateRegular, &entry.dst))?)
    };
    let is_writable = check_writable(fd.as_fd());
    let stat = stat_found(job, &fd, found)?;
    match is_writable {
        Ok(()) => {
            let mut atomic = AtomicFile::new(job, Some(&stat));
            (atomic.target, atomic.old) = (target, Some(OpenFile { fd, stat }));
            Ok(atomic)
        }
        // Without `--atomic` it would be removed, and a new file created.
        Err(errno) if cx.options.force && may_be_removed(errno) => {
            Ok(AtomicFile::new(job, Some(&found.link)))
        }
        Err(errno) => Err(failed(Action::CreateRegular, &entry.dst)(errno)),
    }
}

/// Checks whether the file that is open with O_PATH could be written into, which a rename over it does not.
///
/// # Errors
/// ESTALE if another host has removed it. Only a request for attributes that are not from a cache tells.
fn check_writable(held: BorrowedFd<'_>) -> io::Result<()> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    match statx(held, c"", flags, StatxFlags::MODE) {
        Err(Errno::STALE) => return Err(Errno::STALE),
        // Such a file cannot be opened for writing, which accessat(2) does not tell.
        Ok(now) if now.stx_attributes.intersects(NOT_WRITABLE) => return Err(Errno::PERM),
        // Some sandboxes forbid statx(2).
        _ => {}
    }
    accessat(CWD, Handle::proc_path(held), Access::WRITE_OK, AtFlags::EACCESS)
}

/// With fs-verity, or only to be appended to.
const NOT_WRITABLE: StatxAttributes = StatxAttributes::VERITY.union(StatxAttributes::APPEND);

/// The target of the symbolic link at the destination, in its own directory.
fn find_link_target(job: Job<'_>, found: &Found) -> Result<Resolved> {
    let Job { cx, entry } = job;
    let named = entry.dst.trust == Trust::Operand;
    if !named {
        refuse_untrusted_link(job, found)?;
    }
    let resolved = resolve_symlink(&cx.security, entry.dst.dir, entry.dst.name, named);
    let resolved = unless_untrusted(resolved, &entry.dst)?;
    let target = resolved.map_err(failed(Action::CreateRegular, &entry.dst))?;
    target.ok_or_else(|| Diagnostic::NameUnknown { dst: entry.dst.path() })
}

impl<'j> AtomicFile<'j> {
    /// A file that gets the name of the destination, which the file `replaced` has now.
    fn new(job: Job<'j>, replaced: Option<&Stat>) -> AtomicFile<'j> {
        AtomicFile {
            job,
            target: None,
            temp_name: None,
            resumable: false,
            journal: None,
            is_protected: false,
            replaced: replaced.copied(),
            old: None,
        }
    }

    /// The final name and its directory.
    fn final_name(&self) -> (BorrowedFd<'_>, &CStr) {
        match &self.target {
            None => (self.job.entry.dst.dir, self.job.entry.dst.name),
            Some((dir, name)) => (dir.as_fd(), name),
        }
    }

    /// The error of giving it its name, as far as a dry run can know it.
    pub(crate) fn may_take_over(&self) -> Result<()> {
        let Job { cx, entry } = self.job;
        let (dir, name) = self.final_name();
        may_remove(cx.security.caller, &Place { dir, name, ..entry.dst })
            .map_err(failed(Action::Replace, &entry.dst))
    }

    fn beside(&self) -> Beside<'_> {
        Beside::of(self.job, self.final_name())
    }

    /// The name that it has until then beside the destination; `None` if it has none there.
    pub(crate) fn name_beside_destination(&self) -> Option<&CStr> {
        self.temp_name.as_deref().filter(|_| self.target.is_none())
    }

    /// Removes a partial file that would not be continued.
    pub(crate) fn discard(&mut self) {
        if std::mem::take(&mut self.resumable) {
            self.report_left_over(partial::clear(self.final_name()));
        }
    }

    fn report_left_over(&self, removed: Result<(), LeftOver>) {
        if let Err(left_over) = removed {
            let path = match self.target {
                None => self.job.entry.dst.path(),
                // The kernel's name of the directory, where /proc tells it.
                Some(_) => path_in(self.final_name()),
            };
            left_over.report(self.job.cx.report, &path);
        }
    }

    /// The mode that the file was created with, before the umask, where `mode` was wanted.
    pub(crate) fn created_mode(&self, mode: Mode) -> Mode {
        if self.resumable { Mode::RUSR | Mode::WUSR } else { mode }
    }

    /// Gives the complete file `fd`, which is on a file system of the type `fs_type`, its final name. With
    /// `--durable` the caller has to sync it after that.
    pub(crate) fn commit(mut self, (fd, fs_type): (&OwnedFd, Option<u64>)) -> Result<()> {
        let Job { cx, entry } = self.job;
        if !is_written_without_name(fs_type) {
            self.take_temporary_name(fd)?;
        }
        let protected = protected_mode((fd, fs_type), self.is_protected);
        // After a loss of power the name must not stand for a file whose data was not written.
        write_before_name(fd.as_fd(), fs_type).map_err(failed(Action::Sync, &entry.dst))?;
        // Some file systems report failed writes on close, which must be known before the rename.
        let again = fcntl_dupfd_cloexec(fd, 0).map_err(failed(Action::Close, &entry.dst))?;
        close(again).map_err(failed(Action::Close, &entry.dst))?;
        match self.replaced {
            None => self.take_new_name(fd).map_err(failed(Action::CreateRegular, &entry.dst)),
            Some(replaced) => self.take_over(fd, replaced),
        }?;
        if let Some(mode) = protected
            && let Err(errno) = set_permissions(Handle::Open(fd.as_fd()), mode)
        {
            cx.report.report(failed(Action::Permissions, &entry.dst)(errno));
        }
        if cx.options.durable {
            // The file stays open until it is synced. Where locks are mandatory nobody could read it.
            let _ = flock(fd, FlockOperation::Unlock);
        } else {
            write_after_name(fd.as_fd(), fs_type).map_err(failed(Action::Sync, &entry.dst))?;
        }
        if let Some((dir, _)) = &self.target {
            // The walk does not sync this directory.
            cx.data.syncer.sync_directory(dir.as_fd(), || entry.dst.path());
        }
        if self.resumable {
            let own = partial::clear_journal(self.final_name());
            // A killed run without `--resume` may have left a temporary of this name.
            let temporary = self.beside().remove_stale();
            // Otherwise the entry's own are removed, and reported, once it is complete.
            if self.target.is_some() || !cx.stale.may_exist_for(entry) {
                self.report_left_over(own);
                self.report_left_over(temporary);
            }
        }
        Ok(())
    }

    fn take_new_name(&mut self, fd: &OwnedFd) -> io::Result<()> {
        let (dir, name) = self.final_name();
        let Some(temp_name) = self.temp_name.as_deref() else {
            return give_name(fd.as_fd(), dir, name);
        };
        let keeps_temporary = match renameat_with(dir, temp_name, dir, name, RenameFlags::NOREPLACE)
        {
            // Network file systems have no RENAME_NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rename_or_link(self.job.cx.options, dir, (temp_name, name))
            }
            Err(errno) => return Err(errno),
            Ok(()) => Ok(false),
        };
        if keeps_temporary? {
            self.report_left_over(remove_own(dir, temp_name));
        }
        self.temp_name = None;
        Ok(())
    }

    /// Gives a file without a name a temporary one.
    fn take_temporary_name(&mut self, fd: &OwnedFd) -> Result<()> {
        if self.temp_name.is_none() {
            let beside = self.beside();
            // No other process can have locked a file without a name.
            let _ = try_lock(fd);
            let linked = beside.create(|temp_name| give_name(fd.as_fd(), beside.dir, temp_name));
            let (temp_name, ()) =
                linked.map_err(failed(Action::CreateRegular, &self.job.entry.dst))?;
            self.temp_name = Some(temp_name);
        }
        Ok(())
    }

    fn take_over(&mut self, fd: &OwnedFd, replaced: Stat) -> Result<()> {
        self.take_temporary_name(fd)?;
        let entry = self.job.entry;
        let (dir, name) = self.final_name();
        match lstat(dir, name) {
            Ok(now)
                if FileId::of(&now) != FileId::of(&replaced)
                    && keeps_number(fd)
                    && !is_renumbered(fd, &replaced, &now) =>
            {
                return Err(Diagnostic::DestinationReplaced { dst: entry.dst.path() });
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(Action::Stat, &entry.dst)(errno)),
        }
        // A client of NFS gives a replaced file that is open another name, and removes that after the close. The
        // directory may be modified by it after its times were set.
        self.old = None;
        let (dir, name) = self.final_name();
        let temp_name = self.temp_name.as_deref().expect("it was given above");
        renameat(dir, temp_name, dir, name).map_err(failed(Action::Replace, &entry.dst))?;
        self.temp_name = None;
        Ok(())
    }
}

impl Drop for AtomicFile<'_> {
    fn drop(&mut self) {
        if let Some(temp_name) = self.temp_name.as_ref().filter(|_| !self.resumable) {
            self.report_left_over(remove_own(self.final_name().0, temp_name));
        }
    }
}

/// Gives the file `temp_name` the name `name`, which must be unused, without RENAME_NOREPLACE. Returns whether the
/// temporary name is still there.
///
/// Another process may create the name just before a rename, which replaces that file. A hard link replaces
/// nothing, but other programs see a file with two names, and some clients and servers forget its times. So it
/// is left to options that keep existing files.
fn rename_or_link(
    options: &Options,
    dir: BorrowedFd<'_>,
    (temp_name, name): (&CStr, &CStr),
) -> io::Result<bool> {
    let replaces =
        options.existing == Existing::Replace && !options.ask && options.backup.is_none();
    if !replaces {
        match linkat(dir, temp_name, dir, name, AtFlags::empty()) {
            Err(errno) if is_renamed_instead(errno) => {}
            linked => return linked.map(|()| true),
        }
    }
    rename_if_absent(dir, temp_name, name).map(|()| false)
}

/// The mode of a file that its owner may not write, on a file system that a server keeps. It is set again after the
/// file has got its name: a server of SMB takes the write protection off a file that is renamed, and the client still
/// reports it. Of a file that was created with it, the client reports another mode.
fn protected_mode((fd, fs_type): (&OwnedFd, Option<u64>), is_created_so: bool) -> Option<Mode> {
    let stat = fs_type.filter(|&fs_type| is_served(fs_type)).and_then(|_| fstat(fd).ok())?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    match is_created_so {
        true => Some(mode & !WRITABLE),
        false => (!mode.contains(Mode::WUSR)).then_some(mode),
    }
}

const WRITABLE: Mode = Mode::WUSR.union(Mode::WGRP).union(Mode::WOTH);
