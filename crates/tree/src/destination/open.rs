//! Opens or creates the destination of a file.

use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, Stat};
use rustix::io::{self, Errno};

use super::alias::refuse_to_remove_source;
use super::atomic::AtomicFile;
use super::context::Job;
use super::found::{Found, refuse_untrusted_link, stat_found};
use super::prepare::{NewFile, may_be_removed, remove};
use crate::fs::{FileId, Place, Trust, is_regular, open_looked_at, open_to_write, stat_new};
use crate::report::{Action, Diagnostic, Result, failed};
use crate::request::Options;
use crate::security::{NotFollowed, open_through_symlink, unless_untrusted};

/// An open destination.
pub(crate) struct Opened<'j> {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
    pub(crate) new: bool,
    /// Set if the file does not have its final name yet (`--atomic`).
    pub(crate) atomic: Option<AtomicFile<'j>>,
}

pub(crate) const WRITE: OFlags = OFlags::WRONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
pub(crate) const NEW: OFlags = WRITE.union(OFlags::CREATE).union(OFlags::EXCL);

/// With `--verify` the new file is read as well, which the umask may deny to any other descriptor.
pub(crate) fn new_flags(options: &Options) -> OFlags {
    if options.verify { NEW.difference(OFlags::WRONLY).union(OFlags::RDWR) } else { NEW }
}

/// Opens the destination of a regular file for writing: the existing file, or a new one.
pub(crate) fn open_destination<'j>(
    job: Job<'_>,
    found: Option<(&Found, Option<u64>)>,
    dangling: bool,
    new: NewFile<'_>,
) -> Result<Opened<'j>> {
    if let Some(found) = found
        && let Some(opened) = open_old(job, found)?
    {
        return Ok(opened);
    }
    refuse_dangling(job, dangling)?;
    let entry = job.entry;
    let flags = if dangling { WRITE | OFlags::CREATE } else { new_flags(job.cx.options) };
    let opened =
        open_to_write(new.fs_type, (entry.dst.dir, entry.dst.name), flags, new.mode.initial);
    let opened = opened.map_err(|errno| {
        // `new/` names a directory, and none is there.
        let slash = entry.dst.name.to_bytes().ends_with(b"/");
        let errno = if errno == Errno::ISDIR && slash { Errno::NOTDIR } else { errno };
        failed(Action::CreateRegular, &entry.dst)(errno)
    })?;
    look_at_created(&entry.dst, opened, new.src)
}

/// The new file `fd`, with its attributes.
pub(crate) fn look_at_created<'j>(dst: &Place<'_>, fd: OwnedFd, src: &Stat) -> Result<Opened<'j>> {
    let stat = stat_new(&fd, src).map_err(failed(Action::Fstat, dst))?;
    Ok(Opened { fd, stat, new: true, atomic: None })
}

/// Opens the existing destination for writing; `None` if a new file has to be created.
pub(crate) fn open_old<'j>(
    job: Job<'_>,
    (found, fs_type): (&Found, Option<u64>),
) -> Result<Option<Opened<'j>>> {
    let Job { cx, entry } = job;
    match open_existing(job, (found, fs_type))? {
        Ok(fd) => {
            let stat = stat_found(job, &fd, found)?;
            return Ok(Some(Opened { fd, stat, new: false, atomic: None }));
        }
        Err(Errno::NOENT) => {}
        // ENXIO means a device or a fifo.
        Err(Errno::NXIO) if is_regular(found.effective()) => {
            return Err(Diagnostic::DestinationReplaced { dst: entry.dst.path() });
        }
        Err(errno) if cx.options.force && may_be_removed(errno) => {
            refuse_to_remove_source(job, found)?;
            remove(job)?;
        }
        Err(errno) => return Err(failed(Action::CreateRegular, &entry.dst)(errno)),
    }
    Ok(None)
}

/// Refuses to write through a dangling symbolic link, unless POSIXLY_CORRECT asks for it.
pub(crate) fn refuse_dangling(Job { cx, entry }: Job<'_>, dangling: bool) -> Result<()> {
    let written_through = cx.options.through_dangling_symlink && !cx.options.atomic;
    if dangling && (!written_through || entry.dst.trust != Trust::Operand) {
        return Err(Diagnostic::DanglingSymlink { dst: entry.dst.path() });
    }
    Ok(())
}

/// Opens an existing destination for writing, without truncating it. The inner error is that of
/// openat(2).
fn open_existing(
    job: Job<'_>,
    (found, fs_type): (&Found, Option<u64>),
) -> Result<io::Result<OwnedFd>> {
    let Job { cx, entry } = job;
    let (dir, name) = (entry.dst.dir, entry.dst.name);
    if !found.through_link {
        let flags = WRITE | OFlags::NOFOLLOW;
        return Ok(open_looked_at(fs_type, dir, name, flags, &found.link));
    }
    if entry.dst.trust == Trust::Operand {
        return Ok(open_looked_at(fs_type, dir, name, WRITE, found.effective()));
    }
    refuse_untrusted_link(job, found)?;
    match open_through_symlink(&cx.security, dir, name, WRITE, Some(FileId::of(found.effective())))
    {
        Err(NotFollowed::Errno(Errno::STALE)) => {
            Err(Diagnostic::DestinationReplaced { dst: entry.dst.path() })
        }
        opened => unless_untrusted(opened, &entry.dst),
    }
}
