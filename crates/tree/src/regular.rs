//! A regular file, or anything else that is copied by its data.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::sys::close;
use rustix::fs::{Mode, OFlags, Stat, fstat, openat};
use rustix::io::{self, Errno};

use crate::contents::{Contents, Files, copy_contents};
use crate::diagnostic::{Action, Diagnostic};
use crate::entry::Job;
use crate::existing::{Found, Ground, remove};
use crate::follow::{Astray, open_followed};
use crate::identity::{FileId, file_bytes, is_regular};
use crate::journal::Journal;
use crate::metadata::{self, NewMode, Target};
use crate::observer::Announcement;
use crate::open::{FileSystem, look_at_new, open_listed, open_looked_at, open_looked_at_on};
use crate::options::{Make, Reflink};
use crate::place::Trust;
use crate::receipt::Loss;
use crate::rehearsal::may_create;
use crate::run::{Run, Worker, failed};
use crate::staged::{self, Staged, is_staged, stage};
use crate::verify::verify;
use crate::xattr::Handle;

/// What came of a file.
pub(crate) struct FileCopied {
    pub(crate) dst: FileId,
    /// `None` for a copy of attributes only.
    pub(crate) contents: Option<Contents>,
    pub(crate) lost: Vec<Loss>,
}

/// An open source, and what it was when it was opened.
pub(crate) struct OpenSource {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
}

/// An open destination.
struct Opened<'j> {
    fd: OwnedFd,
    stat: Stat,
    new: bool,
    /// It has yet to come to its name.
    staged: Option<Staged<'j>>,
}

/// Copies data and attributes of the file that `src_stat` describes.
pub(crate) fn copy_file(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    src_stat: &Stat,
    mut ground: Ground,
) -> Result<FileCopied, Diagnostic> {
    if !is_regular(src_stat) {
        // To open a fifo waits for a writer.
        run.begin_in_earnest();
    }
    let opened = match ground.source.take() {
        Some(source) => *source,
        None => open_source_on(worker.known(src_stat), job, src_stat)?,
    };
    let OpenSource { fd: src, stat: src_now } = opened;
    let mut mode = new_mode(run, job, &src_now);
    let mut _turn = None;
    let mut dst = if let Some(fd) = ground.made.take() {
        look_at_made(job, fd, &src_now)?
    } else if is_staged(run, job, &ground) {
        let (fd, staged) = stage(run, job, &ground, (&src_now, mode))?;
        mode.at_first = staged.made_with(mode.at_first);
        let stat = look_at_new(&fd, &src_now).map_err(failed(Action::Fstat, &job.dst))?;
        Opened { fd, stat, new: true, staged: Some(staged) }
    } else {
        if ground.gives_way {
            remove(run, job)?;
            ground.found = None;
        }
        let found = ground.found.as_deref();
        // Before it is looked at: whoever has the turn may give it other attributes.
        _turn = found.map(|found| run.writing.turn(FileId::of(found.effective())));
        let found = found.map(|found| (found, worker.known(found.effective())));
        open_destination(run, job, found, ground.dangling, (&src_now, mode))?
    };
    let _shows = worker.station.show(&job.dst, file_bytes(&src_now), dst.staged.is_some());
    // The last moment at which nothing is lost: two descriptors of one file cannot be mistaken.
    let old = dst.staged.as_ref().and_then(|staged| staged.old.as_ref());
    let replaced = old.map_or(&dst.stat, |old| &old.stat);
    if FileId::of(&src_now) == FileId::of(replaced) {
        return Err(Diagnostic::SameFile { src: job.src.path(), dst: job.dst.path() });
    }
    let mut journal = dst.staged.as_mut().and_then(|staged| staged.journal.take());
    let copied = fill(run, worker, job, (src.as_fd(), &src_now), (&dst, journal.as_mut()), mode);
    if let (Err(Diagnostic::Differs { .. }), Some(staged)) = (&copied, &mut dst.staged) {
        staged.discard();
    }
    if ground.dangling {
        // Which directory it was made in only the link knows.
        run.remainder.note(run, dst.fd.as_fd(), || job.dst.path());
    }
    let is_named = dst.new && dst.staged.is_none();
    if copied.is_err() && is_named && run.options.reflink == Reflink::Always {
        // A clone that was refused leaves no empty file.
        let _ = job.dst.unlink();
    }
    let (contents, lost) = copied?;
    let id = FileId::of(&dst.stat);
    close(src).map_err(failed(Action::Close, &job.src))?;
    if let Some(staged) = dst.staged {
        staged.settle(run, job, &dst.fd)?;
        close(dst.fd).map_err(failed(Action::Close, &job.dst))?;
    } else {
        worker.close(run, dst.fd, &job.dst)?;
    }
    Ok(FileCopied { dst: id, contents, lost })
}

/// The mode that a new file gets, at first and at last.
fn new_mode(run: &Run<'_>, job: &Job<'_>, src: &Stat) -> NewMode {
    let mut mode = metadata::new_file_mode(run.options, src, run.umask, job.inherits_acl);
    let settable = mode.at_last.contains(Mode::WUSR);
    let loses_acl = metadata::loses_acl(run.options, job.inherits_acl);
    let sets_later = metadata::sets_later(run.options) && !loses_acl;
    if sets_later && job.dst.trust == Trust::Made && run.is_own(src) && settable {
        // Nobody else has access to the directory yet, nor is the file to be given away. Attributes
        // of the user's own can be set on what is writable only. Where none are, the directory may
        // have a list that takes the place of the umask.
        mode.at_first = mode.at_last;
    }
    mode
}

/// Makes the file that [`copy_file`] is going to fill in a directory of this run's own; `None` if it
/// cannot be made.
pub(crate) fn make_ahead(run: &Run<'_>, job: &Job<'_>, src: &Stat) -> Option<OwnedFd> {
    openat(job.dst.dir, job.dst.name, NEW, new_mode(run, job, src).at_first).ok()
}

/// Data, then attributes, from descriptor to descriptor.
fn fill(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    (src, src_stat): (BorrowedFd<'_>, &Stat),
    (dst, journal): (&Opened<'_>, Option<&mut Journal>),
    mode: NewMode,
) -> Result<(Option<Contents>, Vec<Loss>), Diagnostic> {
    let mut contents = None;
    if run.options.make != Make::AttributesOnly {
        let files = Files {
            src,
            src_stat,
            src_place: &job.src,
            dst: dst.fd.as_fd(),
            dst_stat: &dst.stat,
            dst_place: &job.dst,
            new: dst.new,
            staged: dst.staged.is_some(),
        };
        let mut copied = copy_contents(run, worker, &files, journal)?;
        if run.options.verify {
            // Before any attribute: times of access are set with those, and an old file that is to
            // be replaced is there still.
            copied.verified = Some(verify(run, &files)?);
        }
        contents = Some(copied);
        if let Some(contents) = &contents
            && run.options.debug
        {
            run.announce(|| Announcement::Data(contents.offload));
            if let Some(chosen) = &contents.chosen {
                run.announce(|| Announcement::Way {
                    src: job.src.path(),
                    dst: job.dst.path(),
                    chosen: chosen.clone(),
                    attempts: contents.attempts.clone(),
                });
            }
        }
    }
    if !is_regular(&dst.stat) {
        // What was copied onto a device belongs to whoever reads it; the device stays as it was.
        return Ok((contents, Vec::new()));
    }
    let source = metadata::Source { handle: Some(Handle::Open(src)), stat: src_stat };
    let is_set_later = metadata::loses_acl(run.options, job.inherits_acl)
        || mode.at_first & !run.umask != mode.at_last;
    let target = Target {
        handle: Handle::Open(dst.fd.as_fd()),
        place: &job.dst,
        stat: &dst.stat,
        new: dst.new,
        inherits_acl: job.inherits_acl,
        mode: (dst.new && is_set_later).then_some(mode.at_last),
    };
    let Some(old) = dst.staged.as_ref().and_then(|staged| staged.old.as_ref()) else {
        return Ok((contents, metadata::apply(run, source, target)));
    };
    // From here on it is what the old file would be with new contents.
    let old = metadata::Source { handle: Some(old.handle()), stat: &old.stat };
    let mut lost = metadata::take_over(run, old, target);
    let stat = fstat(&dst.fd).map_err(failed(Action::Fstat, &job.dst))?;
    let target = Target { stat: &stat, new: false, mode: None, ..target };
    lost.extend(metadata::apply(run, source, target));
    Ok((contents, lost))
}

/// Opens a source that its directory calls a regular file, if that is what it is.
pub(crate) fn open_listed_source(worker: &mut Worker, job: &Job<'_>) -> Option<OpenSource> {
    let flags = READ | OFlags::NOFOLLOW;
    let (fd, stat) = open_listed(worker, job.src.dir, job.src.name, flags)?;
    Some(OpenSource { fd, stat })
}

/// Opens the file that `stat` describes.
pub(crate) fn open_source(job: &Job<'_>, stat: &Stat) -> Result<OpenSource, Diagnostic> {
    open_source_on(FileSystem::Any, job, stat)
}

fn open_source_on(
    file_system: FileSystem,
    job: &Job<'_>,
    stat: &Stat,
) -> Result<OpenSource, Diagnostic> {
    let fd = open_for_reading(file_system, job, stat)?;
    let now = fstat(&fd).map_err(failed(Action::Fstat, &job.src))?;
    if FileId::of(&now) != FileId::of(stat) {
        return Err(Diagnostic::SourceReplaced { src: job.src.path() });
    }
    Ok(OpenSource { fd, stat: now })
}

fn open_for_reading(
    file_system: FileSystem,
    job: &Job<'_>,
    stat: &Stat,
) -> Result<OwnedFd, Diagnostic> {
    let mut flags = READ;
    if !job.src_through_link {
        flags |= OFlags::NOFOLLOW;
    }
    let opened = open_looked_at_on(file_system, job.src.dir, job.src.name, flags, stat);
    opened.map_err(|errno| match errno {
        Errno::LOOP if !job.src_through_link => Diagnostic::SourceReplaced { src: job.src.path() },
        errno => failed(Action::OpenForReading, &job.src)(errno),
    })
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const WRITE: OFlags = OFlags::WRONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const NEW: OFlags = WRITE.union(OFlags::CREATE).union(OFlags::EXCL);

fn open_destination<'j>(
    run: &Run<'_>,
    job: &'j Job<'_>,
    found: Option<(&Found, FileSystem)>,
    dangling: bool,
    (src, mode): (&Stat, NewMode),
) -> Result<Opened<'j>, Diagnostic> {
    if let Some(found) = found
        && let Some(opened) = open_old(run, job, found)?
    {
        return Ok(opened);
    }
    refuse_dangling(run, job, dangling)?;
    let flags = if dangling { WRITE | OFlags::CREATE } else { NEW };
    let opened = openat(job.dst.dir, job.dst.name, flags, mode.at_first).map_err(|errno| {
        // `new/` names a directory, and none is there.
        let slash = job.dst.name.to_bytes().ends_with(b"/");
        let errno = if errno == Errno::ISDIR && slash { Errno::NOTDIR } else { errno };
        failed(Action::CreateRegular, &job.dst)(errno)
    })?;
    look_at_made(job, opened, src)
}

fn look_at_made<'j>(job: &Job<'_>, fd: OwnedFd, src: &Stat) -> Result<Opened<'j>, Diagnostic> {
    let stat = look_at_new(&fd, src).map_err(failed(Action::Fstat, &job.dst))?;
    Ok(Opened { fd, stat, new: true, staged: None })
}

/// Opens what stands at the destination for writing; `None` where a new file is to take its place.
fn open_old<'j>(
    run: &Run<'_>,
    job: &'j Job<'_>,
    (found, file_system): (&Found, FileSystem),
) -> Result<Option<Opened<'j>>, Diagnostic> {
    match open_existing(run, job, (found, file_system))? {
        Ok(fd) => return look_at(job, fd, found).map(Some),
        Err(Errno::NOENT) => {}
        // Only what is no regular file has no such device.
        Err(Errno::NXIO) if is_regular(found.effective()) => {
            return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
        }
        Err(errno) if run.options.force && may_yield(errno) => remove(run, job)?,
        Err(errno) => return Err(failed(Action::CreateRegular, &job.dst)(errno)),
    }
    Ok(None)
}

fn refuse_dangling(run: &Run<'_>, job: &Job<'_>, dangling: bool) -> Result<(), Diagnostic> {
    let written_through = run.options.through_dangling_symlink && !run.options.atomic;
    if dangling && (!written_through || job.dst.trust != Trust::Operand) {
        return Err(Diagnostic::DanglingSymlink { dst: job.dst.path() });
    }
    Ok(())
}

/// Does what [`copy_file`] does up to where something would be made: opens both files, which changes
/// neither, and looks whether a new one could be made.
pub(crate) fn rehearse_file(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    mut ground: Ground,
) -> Result<FileId, Diagnostic> {
    // Devices and fifos notice that they are opened.
    if is_regular(src_stat) && ground.source.is_none() {
        open_source(job, src_stat)?;
    }
    let staged = is_staged(run, job, &ground);
    if staged {
        staged::rehearse(run, job, &ground)?;
    }
    if ground.gives_way && !staged {
        remove(run, job)?;
        ground.found = None;
    }
    if let Some(found) = ground.found.filter(|_| !staged) {
        let opens = is_regular(found.effective());
        if !opens || open_old(run, job, (&found, FileSystem::Any))?.is_some() {
            return Ok(FileId::of(found.effective()));
        }
    }
    refuse_dangling(run, job, ground.dangling)?;
    may_create(&job.dst, Action::CreateRegular)?;
    let rehearsal = run.rehearsal.as_ref().expect("only a rehearsal comes here");
    Ok(rehearsal.new_id())
}

/// Whether an old destination that could not be opened so may be removed for a new one. For want of
/// descriptors or memory, or on a broken disk, the new one would not come to be either.
pub(crate) fn may_yield(errno: Errno) -> bool {
    !matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO)
}

/// Looks at what was opened, which must be what was found before.
fn look_at<'j>(job: &Job<'_>, fd: OwnedFd, found: &Found) -> Result<Opened<'j>, Diagnostic> {
    let stat = fstat(&fd).map_err(failed(Action::Fstat, &job.dst))?;
    if FileId::of(found.effective()) != FileId::of(&stat) {
        return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
    }
    Ok(Opened { fd, stat, new: false, staged: None })
}

/// Opens an existing destination for writing, its contents untouched. The outer error is ours, the
/// inner one the kernel's.
fn open_existing(
    run: &Run<'_>,
    job: &Job<'_>,
    (found, file_system): (&Found, FileSystem),
) -> Result<io::Result<OwnedFd>, Diagnostic> {
    let (dir, name) = (job.dst.dir, job.dst.name);
    if !found.through_link {
        let flags = WRITE | OFlags::NOFOLLOW;
        return Ok(open_looked_at_on(file_system, dir, name, flags, &found.link));
    }
    if job.dst.trust == Trust::Operand {
        return Ok(open_looked_at(dir, name, WRITE, found.effective()));
    }
    refuse_untrusted_link(run, job, found)?;
    match open_followed(run, dir, name, WRITE, Some(FileId::of(found.effective()))) {
        Err(Astray::Errno(Errno::STALE)) => {
            Err(Diagnostic::DestinationReplaced { dst: job.dst.path() })
        }
        Err(Astray::Foreign) => Err(Diagnostic::ForeignSymlink { dst: job.dst.path() }),
        Err(Astray::Errno(errno)) => Ok(Err(errno)),
        Ok(fd) => Ok(Ok(fd)),
    }
}

/// A symbolic link inside a directory is written through only where nobody can have put it there to
/// that end.
pub(crate) fn refuse_untrusted_link(
    run: &Run<'_>,
    job: &Job<'_>,
    found: &Found,
) -> Result<(), Diagnostic> {
    if job.dst.trust == Trust::Made || run.is_younger(&found.link) {
        let (src, dst) = (job.src.path(), job.dst.path());
        return Err(Diagnostic::JustCreatedSymlink { src, dst });
    }
    if !run.trusts_owner(&found.link) {
        return Err(Diagnostic::ForeignSymlink { dst: job.dst.path() });
    }
    Ok(())
}
