//! A regular file, or another file whose data is copied.
//!
//! The order: open the source, open or create the destination, copy the data, verify, set the
//! attributes ([`crate::metadata`]), give a file of `--atomic` its name, close; with `--durable` sync
//! first.

use std::os::fd::{AsFd, OwnedFd};

use engines::fs_types::{OVERLAY, fs_type_of};
use rustix::fs::{Access, AtFlags, FlockOperation, Mode, Stat, accessat, flock, fstat};
use rustix::io::Errno;
use sys::close;

use super::context::{CopyWorker, Made};
use super::range_owner::{OwnedFile, may_share};
use crate::data::context::{Files, Shared};
use crate::data::copy::{copy_data, verify_copy};
use crate::data::journal::Journal;
use crate::destination::alias::is_source;
use crate::destination::atomic::{AtomicFile, find_final_name, is_atomic, open_atomic};
use crate::destination::context::{CopyContext, Job};
use crate::destination::dry_run::may_create;
use crate::destination::found::Found;
use crate::destination::open::{
    Opened, look_at_created, new_flags, open_destination, open_old, refuse_dangling,
};
use crate::destination::prepare::{DestinationState, NewFile, may_be_removed, remove};
use crate::entry::{ListedEntry, open_source};
use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::{
    FileAt, FileId, FsTypes, Handle, OpenFile, Trust, file_bytes, id_by_name, is_regular,
    is_reliable, is_served, open_to_write,
};
use crate::metadata::{
    NewMode, Source, Target, apply, apply_replaced, drops_inherited_acl, new_file_mode,
    sets_attributes_later,
};
use crate::report::{Action, Announcement, DataReport, Diagnostic, Loss, Result, failed};
use crate::request::{Make, Reflink};
use crate::shared::FileGuard;

/// Copies data and attributes of a file.
pub(super) fn copy_file(
    job: Job<'_>,
    worker: &mut CopyWorker,
    mut state: DestinationState,
) -> Result<Made> {
    let Job { cx, entry } = job;
    if !is_regular(&entry.src_stat) {
        // Opening a fifo waits for a writer.
        cx.report.deferred_init();
    }
    let OpenFile { fd: src, stat: src_now } = match state.source.take() {
        Some(source) => *source,
        None => open_source(worker.data.fs_types.known_of(FileId::of(&entry.src_stat).dev), entry)?,
    };
    let mut mode = new_mode(cx, entry, &src_now);
    let is_shared = may_share(job, &state, &src_now);
    let new = NewFile { src: &src_now, mode, is_named: is_shared, fs_type: None };
    // In this order: the file is closed before the lock is released.
    let (_write_lock, mut dst) = open_or_create(job, worker, &mut state, new)?;
    if let Some(atomic) = &dst.atomic {
        mode.initial = atomic.created_mode(mode.initial);
    }
    let _shown = worker.data.progress.show(&entry.dst, file_bytes(&src_now), dst.atomic.is_some());
    // Both files are open and nothing is lost yet: descriptors of one file are recognised reliably.
    let old = dst.atomic.as_ref().and_then(|atomic| atomic.old.as_ref());
    let replaced = old.map_or(&dst.stat, |old| &old.stat);
    let is_written_to = !dst.new && is_source((src.as_fd(), &src_now), (dst.fd.as_fd(), &dst.stat));
    if is_written_to || FileId::of(&src_now) == FileId::of(replaced) {
        return Err(Diagnostic::SameFile { src: entry.src.path(), dst: entry.dst.path() });
    }
    let mut journal = dst.atomic.as_mut().and_then(|atomic| atomic.journal.take());
    let is_locked = lock_against_partners(job, &state, &mut dst)?;
    let owned = is_shared.then(|| OwnedFile::new(job, &src_now, (&dst, journal.as_ref())));
    let src_at = FileAt { fd: src.as_fd(), stat: &src_now, place: &entry.src };
    let dst_at = FileAt { fd: dst.fd.as_fd(), stat: &dst.stat, place: &entry.dst };
    let stays = dst.atomic.is_some() || state.backup.is_some();
    let files = Files { atomic: stays, ..Files::opened(src_at, dst_at, dst.new) };
    let copied = copy_and_verify(cx, worker, &files, journal.as_mut(), owned.flatten());
    let copied = copied.and_then(|data| Ok((data, set_attributes(job, &files, &dst, mode)?)));
    if is_locked {
        // The descriptor may stay open for longer.
        let _ = flock(&dst.fd, FlockOperation::Unlock);
    }
    if let (Err(diagnostic), Some(atomic)) = (&copied, &mut dst.atomic)
        && diagnostic.recurs()
    {
        atomic.discard();
    }
    if state.dangling {
        // The file is in a directory that only the symbolic link names.
        cx.data.syncer.note_file_system(dst.fd.as_fd(), || entry.dst.path());
    }
    let is_named = dst.new && dst.atomic.is_none();
    if copied.is_err() && is_named && cx.options.reflink == Reflink::Always {
        // A refused clone must not leave an empty file.
        let _ = entry.dst.unlink();
    }
    let (data, lost) = copied?;
    let mut id = FileId::of(&dst.stat);
    // An SMB server keeps the name of a removed file until it is closed.
    drop(journal);
    close(src).map_err(failed(Action::Close, &entry.src))?;
    let may_be_synced = cx.options.durable || cx.options.verify || dst.atomic.is_some();
    let fs_type = may_be_synced.then(|| worker.data.fs_types.of(dst.fd.as_fd(), id.dev)).flatten();
    if let Some(atomic) = dst.atomic {
        atomic.commit((&dst.fd, fs_type))?;
        let may_depend_on_name = !fs_type.is_some_and(is_reliable);
        if may_depend_on_name && entry.is_compared_later(cx.options, &src_now) {
            let by_name = id_by_name(dst.fd.as_fd(), entry.dst.dir, entry.dst.name);
            id = by_name.unwrap_or(id);
        }
    }
    let is_timed_last = cx.options.preserve.timestamps && fs_type.is_some_and(is_served);
    let times_of = is_timed_last.then_some(&src_now);
    worker.data.close(cx.data, (dst.fd, &entry.dst), times_of)?;
    Ok(Made { dst: Some(id), data, lost })
}

/// Opens or creates the destination, and locks it if it was or is in a pre-existing directory: no other worker writes to
/// it, by another spelling of its name or by another name of its directory.
fn open_or_create<'j>(
    job: Job<'j>,
    worker: &mut CopyWorker,
    state: &mut DestinationState,
    new: NewFile<'_>,
) -> Result<(Option<FileGuard<'j>>, Opened<'j>)> {
    let Job { cx, entry } = job;
    if let Some(fd) = state.created.take() {
        return Ok((None, look_at_created(&entry.dst, fd, new.src)?));
    }
    let fs_type = fs_type_of_directory(cx, &mut worker.data.fs_types, entry);
    let new = NewFile { fs_type, ..new };
    if is_atomic(job, state) {
        let (fd, atomic) = open_atomic(job, state, new)?;
        let opened = look_at_created(&entry.dst, fd, new.src)?;
        return Ok((None, Opened { atomic: Some(atomic), ..opened }));
    }
    if state.replace {
        remove(job)?;
        state.found = None;
    }
    let found = state.found.as_deref();
    // Locked before fstat(2): a worker that writes to the file may change its attributes.
    let lock = found.map(|found| {
        let (found, id) = (found.effective(), FileId::of(found.effective()));
        // Where its other names may have other numbers, files with several names have one lock.
        let may_differ = found.st_nlink > 1 && !is_on_reliable_fs(entry.dst.dir);
        let ino = if may_differ { 0 } else { id.ino };
        cx.destination_locks.lock_file(FileId { ino, ..id })
    });
    let known = |found: &Found| worker.data.fs_types.known_of(FileId::of(found.effective()).dev);
    let found = found.map(|found| (found, known(found)));
    let is_found_by_others = entry.dst.trust != Trust::Created && !state.dangling;
    if found.is_some() || !is_found_by_others {
        return Ok((lock, open_destination(job, found, state.dangling, new)?));
    }
    let _creation = cx.operands.lock_creation(entry.dst_dir);
    let opened = open_destination(job, None, false, new)?;
    let id = FileId::of(&opened.stat);
    cx.operands.note_in_preexisting(&entry.dst, id);
    Ok((Some(cx.destination_locks.lock_file(id)), opened))
}

/// The type of the file system of the destination's directory, for copies that depend on it: to keep times, or to have
/// no name until the end.
fn fs_type_of_directory(
    cx: &CopyContext<'_>,
    fs_types: &mut FsTypes,
    entry: &ListedEntry<'_>,
) -> Option<u64> {
    if !cx.options.preserve.timestamps && !cx.options.atomic {
        return None;
    }
    let dir = entry.dst.dir;
    let dev = entry.dst_dev().or_else(|| fstat(dir).ok().map(|stat| FileId::of(&stat).dev));
    fs_types.of(dir, dev?)
}

/// Waits until no partner writes to an existing file that another name may lead to: a hard link, or a
/// symbolic link, which the file does not show. Returns whether the file is locked against them.
///
/// # Errors
/// The run was interrupted, or fstat(2) failed.
fn lock_against_partners(
    Job { cx, entry }: Job<'_>,
    state: &DestinationState,
    dst: &mut Opened<'_>,
) -> Result<bool> {
    let is_existing = !dst.new && dst.atomic.is_none() && is_regular(&dst.stat);
    let through_link = state.found.as_deref().is_some_and(|found| found.through_link);
    let has_names = || dst.stat.st_nlink > 1 || through_link || cx.options.may_write_through();
    let locked = match is_existing && has_names() {
        true => cx.partners.others.lock(dst.fd.as_fd()),
        false => Ok(false),
    };
    let is_locked = locked.map_err(|_| Diagnostic::InterruptedBefore { dst: entry.dst.path() })?;
    if is_locked {
        // The partner that had the lock may have changed the length.
        dst.stat = fstat(&dst.fd).map_err(failed(Action::Fstat, &entry.dst))?;
    }
    Ok(is_locked)
}

/// The mode that a new file is created with, and its final one.
fn new_mode(cx: &CopyContext<'_>, entry: &ListedEntry<'_>, src: &Stat) -> NewMode {
    let mut mode = new_file_mode(cx.options, src, cx.umask, entry.inherits_acl);
    let settable = mode.wanted.contains(Mode::WUSR);
    let drops_inherited_acl = drops_inherited_acl(cx.options, entry.inherits_acl);
    let sets_attributes_later = sets_attributes_later(cx.options) && !drops_inherited_acl;
    if sets_attributes_later
        && entry.dst.trust == Trust::Created
        && cx.security.caller.owns_with_group(src)
        && settable
    {
        // No other user has access to the directory yet, and the file keeps its owner. It must be
        // writable, because extended attributes can be set on writable files only. If no attributes
        // are set later, a default access control list may replace the umask.
        mode.initial = mode.wanted;
    }
    mode
}

/// Creates the file that [`copy_file`] fills later, in a private directory; `None` on an error.
pub(crate) fn create_prepared(
    cx: &CopyContext<'_>,
    fs_types: &mut FsTypes,
    entry: &ListedEntry<'_>,
    src: &Stat,
) -> Option<OwnedFd> {
    let fs_type = fs_type_of_directory(cx, fs_types, entry);
    let (place, mode) = ((entry.dst.dir, entry.dst.name), new_mode(cx, entry, src).initial);
    open_to_write(fs_type, place, new_flags(cx.options), mode).ok()
}

/// Copies the data and verifies it. `None` if the options leave it out.
fn copy_and_verify(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    files: &Files<'_>,
    journal: Option<&mut Journal>,
    owned: Option<OwnedFile<'_>>,
) -> Result<Option<DataReport>> {
    if cx.options.make == Make::AttributesOnly {
        return Ok(None);
    }
    let look = || owned.iter().for_each(OwnedFile::look);
    let shared = owned.as_ref().map(|owned| Shared { owned: Some(&owned.file), look: &look });
    let files = Files { shared, ..*files };
    let mut copied = copy_data(cx.data, &mut worker.data, &files, journal)?;
    // With `--atomic` the old file still has its name.
    verify_copy(cx.data, &worker.data, &files, &mut copied)?;
    cx.report.announce_debug(|| Announcement::Data(copied.offload));
    if let Some(chosen) = &copied.chosen {
        cx.report.announce_debug(|| Announcement::Engine {
            src: files.src.place.path(),
            dst: files.dst.place.path(),
            chosen: chosen.clone(),
            attempts: copied.attempts.clone(),
        });
    }
    Ok(Some(copied))
}

/// Sets the attributes of the destination. Returns those that are lost.
fn set_attributes(
    Job { cx, entry }: Job<'_>,
    &Files { src, dst, new, .. }: &Files<'_>,
    opened: &Opened<'_>,
    mode: NewMode,
) -> Result<Vec<Loss>> {
    let source = Source { handle: Some(Handle::Open(src.fd)), stat: src.stat };
    let is_set_later = drops_inherited_acl(cx.options, entry.inherits_acl)
        || mode.initial & !cx.umask != mode.wanted;
    let target = Target {
        handle: Handle::Open(dst.fd),
        place: dst.place,
        stat: dst.stat,
        new,
        inherits_acl: entry.inherits_acl,
        mode: (new && is_set_later).then_some(mode.wanted),
    };
    let Some(old) = opened.atomic.as_ref().and_then(|atomic| atomic.old.as_ref()) else {
        return Ok(apply(cx.metadata(), source, target));
    };
    // Now the new file is what the old one would be with new data.
    let old = Source { handle: Some(Handle::Path(old.fd.as_fd())), stat: &old.stat };
    let mut lost = apply_replaced(cx.metadata(), old, target);
    let stat = fstat(dst.fd).map_err(failed(Action::Fstat, dst.place))?;
    let target = Target { stat: &stat, new: false, mode: None, ..target };
    lost.extend(apply(cx.metadata(), source, target));
    Ok(lost)
}

/// Does what [`copy_file`] does before anything changes: opens both files, and checks whether a new
/// one could be created.
pub(super) fn dry_run_file(job: Job<'_>, mut state: DestinationState) -> Result<Made> {
    let Job { cx, entry } = job;
    let dry_run = cx.dry_run.as_ref().expect("only a dry run calls this");
    // Opening a device or a fifo has effects.
    if is_regular(&entry.src_stat) {
        let src = state.source.take().map_or_else(|| open_source(None, entry), |src| Ok(*src))?;
        if cx.options.reflink == Reflink::Always && cx.options.make == Make::Copy {
            let found = state.found.as_deref().map(Found::effective);
            dry_run.may_clone(&src, entry, found).map_err(|errno| Diagnostic::Clone {
                src: entry.src.path(),
                dst: entry.dst.path(),
                errno,
            })?;
        }
    }
    let atomic = is_atomic(job, &state).then(|| find_final_name(job, &state)).transpose()?;
    if state.replace && atomic.is_none() {
        remove(job)?;
        state.found = None;
    }
    if let Some(found) = state.found.filter(|_| atomic.is_none()) {
        let opens = is_regular(found.effective());
        if !opens || may_open_old(job, &found)? {
            return Ok(Made::file(FileId::of(found.effective())));
        }
    }
    refuse_dangling(job, state.dangling)?;
    may_create(&entry.dst, Some(Errno::NOTDIR))
        .map_err(failed(Action::CreateRegular, &entry.dst))?;
    atomic.as_ref().map_or(Ok(()), AtomicFile::may_take_over)?;
    Ok(Made::file(dry_run.new_id()))
}

/// Whether [`open_old`] would open the existing destination.
fn may_open_old(job: Job<'_>, found: &Found) -> Result<bool> {
    let Job { cx, entry } = job;
    // Overlayfs copies a file of a lower layer when it is opened for writing.
    if fs_type_of(entry.dst.dir) != Some(OVERLAY) {
        return Ok(open_old(job, (found, None))?.is_some());
    }
    match accessat(entry.dst.dir, entry.dst.name, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(true),
        Err(errno) if cx.options.force && may_be_removed(errno) => remove(job).map(|()| false),
        Err(errno) => Err(failed(Action::CreateRegular, &entry.dst)(errno)),
    }
}
