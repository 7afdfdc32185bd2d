//! Entries without data: symbolic links, fifos, sockets, devices; and links to the source (`-l`,
//! `-s`).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, FileType, Mode, fstat, mknodat, statat, symlinkat};
use rustix::io::{self, Errno};

use super::context::{CopyWorker, Made, remember};
use crate::destination::alias::refuse_to_remove_source;
use crate::destination::context::Job;
use crate::destination::dry_run::{may_create, may_remove};
use crate::destination::prepare::{DestinationState, remove};
use crate::destination::temporary::replace_by;
use crate::fs::{
    EXT4, FileId, Handle, Place, Trust, cannot_be_linked, fs_type, fs_type_of, hold, is_one_file,
    is_reliable, is_smb, is_symlink, kind, may_have_any,
};
use crate::metadata::{
    Source, Target, apply, drops_inherited_acl, is_created_private, new_file_mode, reads_xattrs,
    sets_attributes_later,
};
use crate::report::{Action, Announcement, Diagnostic, Loss, Method, Result, failed};
use crate::request::{Context, Keep, Options};
use crate::shared::hard_links::link_known;
use crate::shared::{Claim, Claimant, FirstCopy};

/// Creates a symbolic link with the same target.
pub(super) fn copy_symlink(job: Job<'_>, state: &DestinationState) -> Result<Made> {
    let Job { cx, entry } = job;
    // Reading a link sets its access time.
    let text = match (&state.link_text, cx.dry_run.as_ref()) {
        (Some(text), _) => text.clone(),
        (None, None) => entry.src.read_link().map_err(failed(Action::ReadLink, &entry.src))?,
        (None, Some(_)) => CString::default(),
    };
    create_or_replace(job, state, |name| symlinkat(&*text, entry.dst.dir, name))
        .map_err(failed(Action::CreateSymlink, &entry.dst))?;
    finish_like_source(job, None)
}

/// Creates a fifo, socket or device like the source. Nothing is opened, so nothing can block.
pub(super) fn copy_node(job: Job<'_>, state: &DestinationState) -> Result<Made> {
    let Job { cx, entry } = job;
    let kind = kind(&entry.src_stat);
    let action = match kind {
        FileType::Fifo => Action::CreateFifo,
        FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice => {
            Action::CreateSpecial
        }
        _ => return Err(Diagnostic::UnknownKind { src: entry.src.path() }),
    };
    let mode = new_file_mode(cx.options, &entry.src_stat, cx.umask, entry.inherits_acl);
    let is_device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
    // The number of the device itself, not of the one that it is on.
    let device = if is_device { entry.src_stat.st_rdev } else { 0 };
    let make = |name: &CStr| mknodat(entry.dst.dir, name, kind, mode.initial, device);
    create_or_replace(job, state, make).map_err(failed(action, &entry.dst))?;
    let later = is_created_private(cx.options, entry.inherits_acl);
    finish_like_source(job, later.then_some(mode.wanted))
}

/// Makes the destination a hard link to the source (`-l`).
pub(super) fn link_source(job: Job<'_>, state: &DestinationState) -> Result<Made> {
    let Job { cx, entry } = job;
    let error =
        |errno| Diagnostic::HardLink { src: entry.src.path(), dst: entry.dst.path(), errno };
    let follow = entry.src_through_link && !is_symlink(&entry.src_stat);
    let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
    let src = (entry.src.dir, entry.src.name, flags);
    let link = |name: &CStr| {
        link_known(cx.report, src, FileId::of(&entry.src_stat), &Place { name, ..entry.dst })
    };
    let before = match &cx.dry_run {
        None => cx.options.verbose && entry.dst.stat(false).is_ok(),
        Some(_) => state.found.is_some(),
    };
    create_or_replace(job, state, link).map_err(|errno| match errno {
        // The name of the source was given to another file meanwhile.
        Errno::STALE => Diagnostic::SourceReplaced { src: entry.src.path() },
        errno => error(errno),
    })?;
    if let Some(dry_run) = &cx.dry_run {
        dry_run.may_have_another_name(cx.security.caller, entry, follow).map_err(error)?;
    }
    // A backup keeps the file, under its own name until it is replaced with `--atomic`.
    if before && cx.options.backup.is_none() {
        cx.report.announce(|| Announcement::Removed { dst: entry.dst.path() });
    }
    if cx.options.dry_run {
        return Ok(Made::file(FileId::of(&entry.src_stat)));
    }
    // What the source has may not be on the medium yet.
    cx.data.syncer.note_file_system(entry.dst.dir, || entry.dst.path());
    let made = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
    Ok(Made::file(FileId::of(&made)))
}

/// Makes the destination a symbolic link to the source's name (`-s`).
pub(super) fn link_to_name(job: Job<'_>, state: &DestinationState) -> Result<Made> {
    let entry = job.entry;
    let text = entry.src.path();
    if !text.has_root() && !is_working_directory(&entry.dst) {
        return Err(Diagnostic::RelativeSymlinkElsewhere { dst: entry.dst.path() });
    }
    if let Some(found) = &state.found {
        refuse_to_remove_source(job, found)?;
    }
    let make = |name: &CStr| symlinkat(text.as_os_str().as_bytes(), entry.dst.dir, name);
    create_or_replace(job, state, make).map_err(|errno| Diagnostic::SymbolicLink {
        src: text.clone(),
        dst: entry.dst.path(),
        errno,
    })?;
    let source = Source { handle: None, stat: &entry.src_stat };
    finish(job, source, FileType::Symlink, None)
}

/// Creates a file at the destination. An existing one that may be replaced is replaced in one step:
/// the new file is created under a temporary name and renamed.
fn create_or_replace(
    job: Job<'_>,
    state: &DestinationState,
    make: impl Fn(&CStr) -> io::Result<()>,
) -> io::Result<()> {
    let Job { cx, entry } = job;
    let may_replace = state.replace || cx.options.force || cx.options.ask;
    if cx.options.dry_run {
        return match state.found {
            None => may_create(&entry.dst, Some(Errno::NOENT)),
            Some(_) if may_replace => may_remove(cx.security.caller, &entry.dst),
            Some(_) => Err(Errno::EXIST),
        };
    }
    match make(entry.dst.name) {
        // What was not found before is of another process, or of another spelling of the name.
        Err(Errno::EXIST) if may_replace && (state.replace || state.found.is_some()) => {}
        result => return result,
    }
    replace_by(job, &entry.dst, |temp| make(temp.name))
}

/// Whether `place` is in the working directory. Also true if its directory does not exist: then
/// creating the link fails.
fn is_working_directory(place: &Place<'_>) -> bool {
    if place.trust == Trust::Created {
        // In a dry run that directory does not exist and cannot be compared.
        return false;
    }
    match (statat(CWD, c".", AtFlags::empty()), place.stat_above()) {
        (Ok(here), Ok(there)) => FileId::of(&here) == FileId::of(&there),
        (_, there) => there.is_err(),
    }
}

/// Sets the attributes of a new file that is of the same kind as its source.
fn finish_like_source(job: Job<'_>, mode: Option<Mode>) -> Result<Made> {
    let Job { cx, entry } = job;
    // If the source cannot be opened, only the attributes in its stat are copied.
    let reads = !cx.options.dry_run && reads_xattrs(cx.options, kind(&entry.src_stat));
    let (dir, name, follow) = (entry.src.dir, entry.src.name, entry.src_through_link);
    let is_read = reads && (follow || may_have_any(dir, name));
    let held = is_read.then(|| hold(dir, name, follow).ok()).flatten();
    let src =
        held.filter(|held| !follow || FileId::of_open(held) == Ok(FileId::of(&entry.src_stat)));
    let source =
        Source { handle: src.as_ref().map(|src| Handle::Path(src.as_fd())), stat: &entry.src_stat };
    finish(job, source, kind(&entry.src_stat), mode)
}

/// Sets the attributes of a new file through an O_PATH descriptor. A symbolic link in a private
/// directory is addressed by name, since no other user can exchange it.
fn finish(job: Job<'_>, source: Source<'_>, made: FileType, mode: Option<Mode>) -> Result<Made> {
    let Job { cx, entry } = job;
    if let Some(dry_run) = &cx.dry_run {
        return Ok(Made::file(dry_run.new_id()));
    }
    if entry.is_operand || !cx.options.preserve.timestamps || !is_synced_with_its_directory(job) {
        // Such an entry cannot be synced by itself.
        cx.data.syncer.note_file_system(entry.dst.dir, || entry.dst.path());
    }
    if !keeps_anything(cx.options) && !drops_inherited_acl(cx.options, entry.inherits_acl) {
        if !entry.is_compared_later(cx.options, source.stat) && entry.dst.trust == Trust::Created {
            return Ok(Made::default());
        }
        let made = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
        return Ok(Made::file(FileId::of(&made)));
    }
    let is_held = made != FileType::Symlink || !entry.private;
    let held = is_held.then(|| hold(entry.dst.dir, entry.dst.name, false)).transpose();
    let held = held.map_err(failed(Action::Stat, &entry.dst))?;
    let looked = held.as_ref().map_or_else(|| entry.dst.stat(false), fstat);
    let dst_stat = looked.map_err(failed(Action::Stat, &entry.dst))?;
    // Another user may have exchanged the new file for a hard link, so that we give that file away.
    let is_own = held.as_ref().is_none_or(|held| {
        cx.security.caller.owns(&dst_stat) || !fs_type::is_on_reliable_fs(held.as_fd())
    });
    if kind(&dst_stat) != made || dst_stat.st_nlink != 1 || !is_own {
        return Err(Diagnostic::DestinationReplaced { dst: entry.dst.path() });
    }
    let link = Handle::Link(entry.dst.dir, entry.dst.name);
    let target = Target {
        handle: held.as_ref().map_or(link, |held| Handle::Path(held.as_fd())),
        place: &entry.dst,
        stat: &dst_stat,
        new: true,
        inherits_acl: entry.inherits_acl,
        mode,
    };
    let lost = apply(cx.metadata(), source, target);
    Ok(Made { lost, ..Made::file(FileId::of(&dst_stat)) })
}

/// Whether a sync of the directory has its new entries on the medium too: the journal commits them before the
/// attributes of the directory. An ext4 may have none.
fn is_synced_with_its_directory(Job { cx, entry }: Job<'_>) -> bool {
    !cx.options.durable || fs_type_of(entry.dst.dir).is_some_and(|of| is_reliable(of) && of != EXT4)
}

fn keeps_anything(options: &Options) -> bool {
    sets_attributes_later(options)
        || options.preserve.timestamps
        || options.preserve.context != Keep::No
        || matches!(options.context, Context::Named(_))
}

// Sources with several hard links: the first is copied, the others are linked to its copy.

/// A destination that is not linked to an earlier copy of its source. The caller has to copy, and then to publish the
/// copy if the source may have other names.
#[derive(Default)]
pub(super) struct NotLinked<'r> {
    pub(super) claimant: Option<Claimant<'r>>,
    /// The link that was due, in place of which the copy is one of its own.
    pub(super) lost: Option<Loss>,
}

/// Links the destination to an earlier copy of its source, if hard links are preserved and there is
/// one, and returns `None`; else claims the source.
pub(super) fn link_or_claim<'r>(
    job: Job<'r>,
    worker: &mut CopyWorker,
    exists: bool,
) -> Result<Option<NotLinked<'r>>> {
    let Job { cx, entry } = job;
    let id = FileId::of(&entry.src_stat);
    let may_be_first = entry.may_have_links(cx.options, &entry.src_stat);
    // Without a cache of attributes, Linux 5.10 counts one name of a file of SMB that another worker has opened.
    let may_be_other = || {
        let is_on_smb = worker.data.fs_types.known_of(id.dev).is_some_and(is_smb);
        is_on_smb && entry.keeps_links(cx.options, &entry.src_stat)
    };
    if !may_be_first && !may_be_other() {
        return Ok(Some(NotLinked::default()));
    }
    let (mut not_linked, mut lost) = (None, None);
    loop {
        match cx.links.claim(id, not_linked.as_ref()) {
            Claim::First(claimant) => {
                return Ok(Some(NotLinked { claimant: may_be_first.then_some(claimant), lost }));
            }
            Claim::Copied(made) => {
                worker.last_was_linked = true;
                lost = link_to_earlier(job, worker, &made, exists)?;
                if lost.is_none() {
                    return Ok(None);
                }
                not_linked = Some(made);
            }
        }
    }
}

/// Links the destination to the earlier copy `made`. Returns the loss if that copy has lost its name, to a backup or to
/// the copy of another operand, cannot be recognised, where the numbers of files change, or cannot be linked to.
fn link_to_earlier(
    job: Job<'_>,
    worker: &mut CopyWorker,
    made: &FirstCopy,
    exists: bool,
) -> Result<Option<Loss>> {
    let Job { cx, entry } = job;
    let error = |errno| Diagnostic::HardLink { src: made.path(), dst: entry.dst.path(), errno };
    let same = entry.dst_dir.is_some_and(|dst_dir| dst_dir.is(&made.dir));
    let from = if same || cx.options.dry_run {
        entry.dst.dir
    } else {
        worker.last_reopened.open(&cx.security, &made.dir).map_err(error)?
    };
    let linked = match (cx.options.dry_run, exists) {
        (false, _) => made.link_to(cx.report, &entry.dst, from),
        // A dry run only checks whether the name is free.
        (true, false) => Ok(()),
        (true, true) => Err(Errno::EXIST),
    };
    let linked = match linked {
        Err(Errno::EXIST) => replace_by_link(job, (made, from), exists)?,
        linked => linked,
    };
    match linked {
        // The call itself may have failed with ESTALE, on NFS.
        Err(errno @ Errno::STALE) if !made.is_in(from) => return Ok(Some(Loss::Links(errno))),
        Err(errno @ Errno::NOENT) if made.stat(from).is_err() => {
            return Ok(Some(Loss::Links(errno)));
        }
        Err(errno) if cannot_be_linked(errno) => {
            // The link is lost, as with GNU cp, but the data is not.
            cx.report.report(error(errno));
            return Ok(Some(Loss::Links(errno)));
        }
        linked => linked.map_err(error)?,
    }
    // Some file systems give each name of a file a number of its own.
    let is_compared = (entry.is_operand || cx.options.backup.is_some()) && !cx.options.dry_run;
    let by_name = is_compared.then(|| entry.dst.stat(false).ok()).flatten();
    remember(job, by_name.map_or(made.id, |linked| FileId::of(&linked)));
    if cx.report.keeps_receipts() {
        cx.report.observer.finished(entry.receipt(kind(&entry.src_stat), Method::Linked));
    }
    Ok(None)
}

/// Replaces the existing destination by a link to `made`, unless it is one already, or was not there when that was
/// decided. The inner error is that of the link, without which the existing file stays.
fn replace_by_link(
    job: Job<'_>,
    (made, from): (&FirstCopy, BorrowedFd<'_>),
    was_found: bool,
) -> Result<io::Result<()>> {
    let Job { cx, entry } = job;
    if cx.options.dry_run {
        return match made.id.is_at(entry.dst.dir, entry.dst.name) {
            true => Ok(Ok(())),
            false if cx.options.atomic => Ok(may_remove(cx.security.caller, &entry.dst)),
            false => remove(job).map(Ok),
        };
    }
    let existing = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
    if made.id == FileId::of(&existing)
        && made.stat(from).is_ok_and(|first| is_one_file(&first, &existing))
    {
        return Ok(Ok(()));
    }
    if !was_found {
        return Ok(Err(Errno::EXIST));
    }
    let replaced = replace_by(job, &entry.dst, |temp| made.link_to(cx.report, temp, from));
    if replaced.is_ok() && !cx.options.atomic {
        cx.report.announce(|| Announcement::Removed { dst: entry.dst.path() });
    }
    Ok(replaced)
}

/// Links a destination that is up to date, if its source has other names that were copied. Returns whether it did.
pub(super) fn link_up_to_date(job: Job<'_>, worker: &mut CopyWorker) -> Result<bool> {
    let entry = job.entry;
    if entry.src_stat.st_nlink < 2 {
        return Ok(false);
    }
    let existing = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
    let Some(NotLinked { claimant, .. }) = link_or_claim(job, worker, true)? else {
        return Ok(true);
    };
    if let (Some(claimant), Some(dst_dir)) = (claimant, entry.dst_dir)
        && !is_symlink(&existing)
    {
        claimant.publish(dst_dir, entry.dst.name, FileId::of(&existing));
    }
    Ok(false)
}
