//! Decides about an existing destination: skip, overwrite, back up, remove, or refuse ([`decide`]).
//! Symbolic links at the destination are looked up in [`super::state`].

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    Access, AtFlags, Mode, OFlags, StatxFlags, accessat, fstat, readlinkat, statat, statx,
};
use rustix::io::Errno;

use super::backup::{self, BackedUp, BackupError, BackupMethod};
use super::context::DestinationContext;
use super::same_file::{SameFile, check_same_file};
use super::state::{DestinationState, Found};
use super::time_resolution::{self, Older};
use crate::data::verify::compare_existing;
use crate::entry::{Entry, OpenSource, copies_data, open_source};
use crate::fs::{
    FileId, Place, file_bytes, is_directory, is_regular, is_symlink, lists_all, may_be_one_name,
    may_have_spellings, mtime, names_like, open_looked_at, split,
};
use crate::report::{Action, Announcement, Diagnostic, Question, Result, Verified, failed};
use crate::request::{Backup, BackupKind, Existing, Follow, Make, Options};

/// What is done with an existing destination.
pub(crate) enum Decision {
    /// Copy. The existing file may have been removed or backed up.
    Proceed(DestinationState),
    /// Keep it.
    Skip,
    /// Keep it because it is up to date; with the result of the comparison, if there was one.
    UpToDate(Option<Verified>),
}

/// Decides about the existing destination `found`, and removes it or makes a backup if that comes
/// before the copy.
pub(crate) fn decide(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: Box<Found>,
) -> Result<Decision> {
    let keeps = matches!(cx.options.existing, Existing::Skip | Existing::Fail);
    if keeps
        && !is_directory(&entry.src_stat)
        && let Some(kept) = check_update_options(cx, entry, &found)?
    {
        return Ok(kept);
    }
    match check_same_file(cx.options, entry, &found)? {
        SameFile::Different => {}
        SameFile::AlreadyDone => {
            if cx.options.ask {
                // GNU cp asks, although the answer changes nothing.
                check_update_options(cx, entry, &found)?;
            }
            return Ok(Decision::Skip);
        }
        SameFile::Same => {
            return Err(Diagnostic::SameFile { src: entry.src.path(), dst: entry.dst.path() });
        }
    }
    refuse_other_spelling(cx, entry, &found)?;
    if !is_directory(&entry.src_stat)
        && let Some(kept) = check_update_options(cx, entry, &found)?
    {
        return Ok(kept);
    }
    if cx.options.record == Some(FileId::of(found.effective())) {
        return Err(Diagnostic::Record { src: entry.src.path(), dst: entry.dst.path() });
    }
    check_kinds(cx, entry, &found)?;
    if is_directory(&entry.src_stat) && is_directory(found.effective()) {
        return Ok(Decision::Proceed(DestinationState::existing(found)));
    }
    remove_or_back_up(cx, entry, found)
}

/// Applies the options that keep an existing destination: `--resume`, `--update`, `-i`.
fn check_update_options(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
) -> Result<Option<Decision>> {
    let skipped = || {
        cx.report.announce_debug(|| Announcement::Skipped { dst: entry.dst.path() });
    };
    if cx.options.resume
        && is_complete(cx, entry, found)?
        && let Some(verified) = verify_existing(cx, entry, found)?
    {
        skipped();
        return Ok(Some(Decision::UpToDate(verified)));
    }
    match cx.options.existing {
        Existing::Replace => {}
        Existing::ReplaceOlder => {
            // This includes a directory, which is kept because it is newer.
            if mtime(found.effective()) >= mtime(&entry.src_stat)
                || cx.options.preserve.timestamps && has_source_time(cx, entry, found)?
            {
                skipped();
                return Ok(Some(Decision::UpToDate(None)));
            }
        }
        Existing::Skip => {
            skipped();
            return Ok(Some(Decision::Skip));
        }
        Existing::Fail => return Err(Diagnostic::NotReplacing { dst: entry.dst.path() }),
    }
    let asks = cx.options.ask && cx.dry_run.is_none();
    if asks && !cx.report.observer.confirm(question(cx, entry, found)) {
        skipped();
        cx.report.add_failures(1);
        return Ok(Some(Decision::Skip));
    }
    Ok(None)
}

/// Whether an earlier run has completed this copy. With `--atomic` a file gets its name when it has
/// all its data and the time of its source.
fn is_complete(cx: &DestinationContext<'_>, entry: &Entry<'_>, found: &Found) -> Result<bool> {
    let (src, dst) = (&entry.src_stat, found.effective());
    let may_be_complete = cx.options.preserve.timestamps
        && cx.options.make == Make::Copy
        && is_regular(src)
        && is_regular(dst)
        && file_bytes(src) == file_bytes(dst);
    Ok(may_be_complete && (mtime(src) == mtime(dst) || has_source_time(cx, entry, found)?))
}

/// Whether the destination, which seems older than the source, is a copy of it as it is now, with its time as
/// far as the file system keeps it.
fn has_source_time(cx: &DestinationContext<'_>, entry: &Entry<'_>, found: &Found) -> Result<bool> {
    let differs = || Ok(compare_data(cx, entry, found)?.is_none());
    let known = cx.dry_run.is_none().then_some(&cx.resolutions);
    let older = Older { entry, dst: found.effective(), through_link: found.through_link };
    time_resolution::has_source_time(known, &older, differs)
}

/// Compares the data with `--verify`. The outer `None` means that the file has to be copied again:
/// it differs, or cannot be compared.
fn verify_existing(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
) -> Result<Option<Option<Verified>>> {
    match cx.options.verify {
        true => compare_data(cx, entry, found),
        false => Ok(Some(None)),
    }
}

/// Compares the data. The outer `None` means that it differs, or cannot be compared.
fn compare_data(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
) -> Result<Option<Option<Verified>>> {
    if found.through_link {
        return Ok(None);
    }
    cx.report.deferred_init();
    let src = open_source(None, entry)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let (dir, name) = (entry.dst.dir, entry.dst.name);
    let Ok(dst) = open_looked_at(None, dir, name, flags, &found.link) else {
        return Ok(None);
    };
    if fstat(&dst).map_or(true, |now| FileId::of(&now) != FileId::of(&found.link)) {
        return Ok(None);
    }
    let (src, dst) = ((src.fd.as_fd(), &entry.src), (dst.as_fd(), &entry.dst));
    compare_existing(cx.report, src, dst)
}

fn question(cx: &DestinationContext<'_>, entry: &Entry<'_>, found: &Found) -> Question {
    let dst = entry.dst.path();
    let link = is_symlink(found.effective());
    let writable =
        link || accessat(entry.dst.dir, entry.dst.name, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if writable {
        return Question::Overwrite { dst };
    }
    Question::OverwriteUnwritable {
        dst,
        mode: Mode::from_raw_mode(found.effective().st_mode & 0o7777),
        removing: cx.options.force || cx.options.remove_destination,
    }
}

/// Refuses to replace a directory by another file or another file by a directory, and to replace
/// the copy of another operand.
fn check_kinds(cx: &DestinationContext<'_>, entry: &Entry<'_>, found: &Found) -> Result<()> {
    let dst = found.effective();
    if is_directory(&entry.src_stat) {
        // With a backup another file gives its name to the directory.
        if !is_directory(dst) && cx.options.backup.is_none() {
            let (src, dst) = (entry.src.path(), entry.dst.path());
            return Err(Diagnostic::NonDirectoryInTheWay { src, dst });
        }
        return Ok(());
    }
    if is_directory(dst) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(Diagnostic::DirectoryInTheWay { src, dst });
    }
    let id = FileId::of(&found.link);
    if entry.is_operand
        && !makes_numbered_backups(cx.options)
        && cx.operands.was_made(&entry.dst, id)
    {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(if is_symlink(&found.link) && found.through_link {
            Diagnostic::JustCreatedSymlink { src, dst }
        } else {
            Diagnostic::JustCreated { src, dst }
        });
    }
    Ok(())
}

fn makes_numbered_backups(options: &Options) -> bool {
    options.backup.as_ref().is_some_and(|backup| backup.kind == BackupKind::Numbered)
}

/// Refuses to replace the copy of another source whose name this directory takes for the same.
fn refuse_other_spelling(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
) -> Result<()> {
    let id = FileId::of(&found.link);
    let (dir, name) = (entry.dst.dir, entry.dst.name);
    if !cx.operands.may_be_of_this_run(id)
        || makes_numbered_backups(cx.options)
        || !may_have_spellings(dir, name)
    {
        return Ok(());
    }
    let others = match entry.is_operand {
        true => cx.operands.names_made(&entry.dst, id),
        // A directory that cannot be listed is not copied.
        false => names_like(entry.src.dir, name).unwrap_or_default(),
    };
    let is_at = |dir, other: &CStr, id| {
        statat(dir, other, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| FileId::of(&stat) == id)
    };
    let is_same_name = |other: &CString| {
        // Two names of one source are no loss.
        (entry.is_operand || !is_at(entry.src.dir, other, FileId::of(&entry.src_stat)))
            && is_at(dir, other, id)
            && may_be_one_name(other.to_bytes(), name.to_bytes())
            && lists_all(dir, [other.to_bytes(), name.to_bytes()]) == Ok(false)
    };
    match others.iter().any(|other| **other != *name && is_same_name(other)) {
        true => Err(Diagnostic::JustCreated { src: entry.src.path(), dst: entry.dst.path() }),
        false => Ok(()),
    }
}

/// Makes a backup of the destination, or removes it, if that comes before the copy.
fn remove_or_back_up(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: Box<Found>,
) -> Result<Decision> {
    let options = cx.options;
    if let Some(backup) = &options.backup {
        refuse_to_destroy_source(entry, backup)?;
        let source_read = read_source_first(cx, entry)?;
        let id = FileId::of(&found.link);
        // A directory has no hard links.
        let keeps_name = options.atomic && !is_directory(&entry.src_stat);
        let method = match (cx.dry_run.is_some(), keeps_name) {
            (true, _) => BackupMethod::DryRun,
            (false, true) => BackupMethod::Link,
            (false, false) => BackupMethod::Rename,
        };
        let backup = match backup::back_up(cx, (&entry.src, &entry.dst), id, backup, method) {
            Ok(backup) => Some(backup),
            // Another process has removed the file. The error may be of the directory's listing as well.
            Err(BackupError::Errno(Errno::NOENT)) if is_gone(&entry.dst) => None,
            Err(error) => return Err(error.diagnostic(&entry.dst)),
        };
        let is_replaced = keeps_name && backup.as_ref().is_some_and(BackedUp::keeps_name);
        let found = is_replaced.then(|| without_target(found));
        let replace = found.is_some();
        return Ok(Decision::Proceed(DestinationState { found, replace, backup, ..source_read }));
    }
    // -H follows links on the command line only.
    let below = options.follow == Follow::CommandLine && !entry.is_operand;
    let follows_none = options.follow == Follow::Never || below;
    // Other hard links of the destination must keep their data, and a special file must not be
    // written to. But with attributes only no data may be lost.
    let replace = (options.preserve.links && found.effective().st_nlink > 1)
        || (follows_none && !is_regular(&entry.src_stat));
    // The copy that another operand made of the same source is kept.
    let is_its_copy = || cx.links.is_copy(FileId::of(&entry.src_stat), FileId::of(&found.link));
    if !options.remove_destination && (!replace || options.make == Make::AttributesOnly)
        || is_its_copy()
    {
        return Ok(Decision::Proceed(DestinationState::existing(found)));
    }
    let source_read = read_source_first(cx, entry)?;
    if options.atomic && !is_directory(&entry.src_stat) {
        let found = Some(without_target(found));
        return Ok(Decision::Proceed(DestinationState { found, replace: true, ..source_read }));
    }
    remove(cx, entry)?;
    Ok(Decision::Proceed(source_read))
}

/// Whether the destination has no file any more. A server is asked again, whatever is known from before.
pub(super) fn is_gone(dst: &Place<'_>) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
    let is_absent = |errno| errno == Errno::NOENT;
    statx(dst.dir, dst.name, flags, StatxFlags::MODE).is_err_and(is_absent)
        // Some sandboxes forbid statx(2).
        || dst.stat(false).is_err_and(is_absent)
}

/// A symbolic link itself is replaced, not its target.
fn without_target(found: Box<Found>) -> Box<Found> {
    Box::new(Found { through_link: false, ..*found })
}

/// Opens or reads the source before the destination is changed. The state has nothing but that.
fn read_source_first(cx: &DestinationContext<'_>, entry: &Entry<'_>) -> Result<DestinationState> {
    let (source, link_text) = (open_first(cx, entry)?, read_link_first(cx, entry)?);
    Ok(DestinationState { source, link_text, ..DestinationState::default() })
}

/// Opens a source whose data is copied, before the destination is changed: if the source cannot be
/// read, the destination must stay.
fn open_first(cx: &DestinationContext<'_>, entry: &Entry<'_>) -> Result<Option<Box<OpenSource>>> {
    let copies = matches!(cx.options.make, Make::Copy | Make::AttributesOnly);
    if !copies || !copies_data(cx.options, &entry.src_stat) {
        return Ok(None);
    }
    // Opening a device or a fifo has effects.
    if cx.dry_run.is_some() && !is_regular(&entry.src_stat) {
        return Ok(None);
    }
    let opened = open_source(None, entry).inspect_err(|_| {
        // GNU cp announces the copy of every file before its error.
        let (src, dst) = (entry.src.path(), entry.dst.path());
        cx.report.announce(|| Announcement::Copied { src, dst, backup: None });
    })?;
    Ok(Some(Box::new(opened)))
}

/// The target of a symbolic link that is copied, before the destination is changed. The path of the source may
/// lead through a link at the destination.
fn read_link_first(cx: &DestinationContext<'_>, entry: &Entry<'_>) -> Result<Option<CString>> {
    let copies = matches!(cx.options.make, Make::Copy | Make::AttributesOnly);
    // Reading a link sets its access time.
    if !copies || !is_symlink(&entry.src_stat) || cx.dry_run.is_some() {
        return Ok(None);
    }
    read_link(entry).map(Some)
}

/// The target of the source, which is a symbolic link.
pub(crate) fn read_link(entry: &Entry<'_>) -> Result<CString> {
    readlinkat(entry.src.dir, entry.src.name, Vec::new())
        .map_err(failed(Action::ReadLink, &entry.src))
}

/// Removes the destination's name.
pub(crate) fn remove(cx: &DestinationContext<'_>, entry: &Entry<'_>) -> Result<()> {
    let removed = if cx.dry_run.is_some() { Ok(()) } else { entry.dst.unlink() };
    match removed {
        Ok(()) => {
            cx.report.announce(|| Announcement::Removed { dst: entry.dst.path() });
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed(Action::Remove, &entry.dst)(errno)),
    }
}

/// `cp -b a~ a` would rename `a` over its source.
fn refuse_to_destroy_source(entry: &Entry<'_>, backup: &Backup) -> Result<()> {
    let (src_base, backup_base) =
        (split(entry.src.name).1, backup::simple_name(split(entry.dst.name).1, backup));
    if backup.kind == BackupKind::Numbered || !may_be_one_name(src_base, &backup_base) {
        return Ok(());
    }
    let name = backup::simple_name(entry.dst.name.to_bytes(), backup);
    let existing = statat(entry.dst.dir, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW);
    match existing {
        Ok(existing)
            if FileId::of(&existing) == FileId::of(&entry.src_stat)
                // Otherwise they may be two hard links.
                && (src_base == backup_base || existing.st_nlink == 1) =>
        {
            Err(Diagnostic::BackupDestroysSource { src: entry.src.path(), dst: entry.dst.path() })
        }
        _ => Ok(()),
    }
}

/// Whether `--force` removes a destination that could not be opened. Without descriptors or memory,
/// or on a broken disk, the new file could not be created either.
pub(crate) fn may_be_removed(errno: Errno) -> bool {
    !matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO)
}
