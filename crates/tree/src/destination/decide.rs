//! Decides what is done about a destination ([`decide`]): create, overwrite, replace, back up, skip or refuse.
//! What exists there is looked up in [`super::found`]; what comes before the copy is done in [`super::prepare`].

use std::ffi::CString;
use std::path::PathBuf;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fstat};

use super::backup;
use super::context::Job;
use super::found::{Found, SameFile, check_same_file, look_up};
use super::time_resolution::{self, Older};
use crate::data::verify::compare_existing;
use crate::entry::{Entry, open_source};
use crate::fs::{
    FileId, OpenFile, Place, are_one_name, c_name, file_bytes, is_directory, is_regular,
    is_symlink, lstat, may_be_one_name, may_have_spellings, may_number_spellings, mtime,
    names_like, open_looked_at, split,
};
use crate::report::{Action, Announcement, Diagnostic, Question, Result, Verified, failed};
use crate::request::{Backup, BackupKind, Existing, Follow, Make, Options};

/// What is done about the destination of an entry.
pub(crate) enum Decision {
    /// Nothing has the name.
    Create,
    /// A dangling symbolic link has the name; the file is created at its target.
    CreateAtTarget,
    /// A directory has the name, and gets the entries of the source.
    Enter(Box<Found>),
    /// The file gets the data; with `--atomic` a new file in its place has its attributes.
    Overwrite(Box<Found>),
    /// A new file gets the name.
    Replace(Box<Found>),
    /// The file gets another name first.
    BackUp(Box<Found>),
    /// The destination stays.
    Skip,
    /// The destination stays, because it is up to date; with the result of the comparison, if there was one.
    UpToDate { id: FileId, verified: Option<Verified>, through_link: bool },
}

/// Looks at the destination and decides. Nothing is changed.
///
/// # Errors
/// The copy is refused, or something cannot be looked at.
pub(crate) fn decide(job: Job<'_>) -> Result<Decision> {
    backup::refresh(job.cx, &job.entry.dst);
    match look_up(job)? {
        Some(found) if found.through_link && found.target.is_none() => Ok(Decision::CreateAtTarget),
        Some(found) => decide_about(job, found),
        None => Ok(Decision::Create),
    }
}

/// Decides about the existing destination `found`.
fn decide_about(job: Job<'_>, found: Box<Found>) -> Result<Decision> {
    let Job { cx, entry } = job;
    let keeps = matches!(cx.options.existing, Existing::Skip | Existing::Fail);
    if keeps
        && !is_directory(&entry.src_stat)
        && let Some(kept) = check_update_options(job, &found)?
    {
        return Ok(kept);
    }
    match check_same_file(job, &found)? {
        SameFile::Different => {}
        SameFile::AlreadyDone => {
            if cx.options.ask && !is_directory(&entry.src_stat) {
                // GNU cp asks, although the answer changes nothing.
                check_update_options(job, &found)?;
            }
            return Ok(Decision::Skip);
        }
        SameFile::Same => {
            return Err(Diagnostic::SameFile { src: entry.src.path(), dst: entry.dst.path() });
        }
    }
    refuse_other_spelling(job, &found)?;
    if !is_directory(&entry.src_stat)
        && let Some(kept) = check_update_options(job, &found)?
    {
        return Ok(kept);
    }
    if cx.options.record == Some(FileId::of(found.effective())) {
        return Err(Diagnostic::Record { src: entry.src.path(), dst: entry.dst.path() });
    }
    check_kinds(job, &found)?;
    if is_directory(&entry.src_stat) && is_directory(found.effective()) {
        return Ok(Decision::Enter(found));
    }
    if let Some(backup) = &cx.options.backup {
        refuse_to_destroy_source(entry, backup)?;
        return Ok(Decision::BackUp(found));
    }
    Ok(if is_replaced(job, &found) { Decision::Replace(found) } else { Decision::Overwrite(found) })
}

/// Whether a new file gets the name of the file `found`.
fn is_replaced(Job { cx, entry }: Job<'_>, found: &Found) -> bool {
    let options = cx.options;
    // -H follows links on the command line only.
    let below = options.follow == Follow::CommandLine && !entry.is_operand;
    let follows_none = options.follow == Follow::Never || below;
    // Other hard links of the destination must keep their data, and a special file must not be
    // written to. But with attributes only no data may be lost.
    let is_kept_from_writing = (options.preserve.links && found.effective().st_nlink > 1)
        || (follows_none && !is_regular(&entry.src_stat));
    // The copy that another operand made of the same source is kept.
    let is_its_copy = || cx.links.is_copy(FileId::of(&entry.src_stat), FileId::of(&found.link));
    let replaces =
        options.remove_destination || is_kept_from_writing && options.make != Make::AttributesOnly;
    replaces && !is_its_copy()
}

/// Applies the options that keep an existing destination: `--resume`, `--update`, `-i`.
fn check_update_options(job: Job<'_>, found: &Found) -> Result<Option<Decision>> {
    let Job { cx, entry } = job;
    let through_link = found.through_link;
    let id = FileId::of(&found.link);
    let is_unwritten = cx.options.dry_run && is_of_another_operand(job, found);
    // A file that was just written is newer than its source; the target of a copied link was not written.
    let keeps_time = || {
        cx.options.preserve.timestamps
            || cx.options.make == Make::HardLink
            || through_link && !id.is_at(entry.dst.dir, entry.dst.name)
    };
    let up_to_date = |verified| match is_unwritten {
        true => Decision::Skip,
        false => Decision::UpToDate { id, verified, through_link },
    };
    let kept = |decision| {
        cx.report.announce_debug(|| Announcement::Skipped { dst: entry.dst.path() });
        Ok(Some(decision))
    };
    if cx.options.resume
        && !is_of_another_operand(job, found)
        && is_complete(job, found)?
        // A file that differs, or cannot be compared, has to be copied again.
        && let Some(verified) = match cx.options.verify || has_merged_source(job) {
            true => compare_data(job, found)?,
            false => Some(None),
        }
    {
        return kept(up_to_date(verified.filter(|_| cx.options.verify)));
    }
    match cx.options.existing {
        Existing::Replace => {}
        Existing::ReplaceOlder => {
            // This includes a directory, which is kept because it is newer.
            if mtime(found.effective()) >= mtime(&entry.src_stat)
                || is_unwritten && !keeps_time()
                || cx.options.preserve.timestamps && has_source_time(job, found)?
            {
                return kept(up_to_date(None));
            }
        }
        Existing::Skip => return kept(Decision::Skip),
        Existing::Fail => return Err(Diagnostic::NotReplacing { dst: entry.dst.path() }),
    }
    let asks = cx.options.ask && cx.dry_run.is_none();
    if asks && !cx.report.observer.confirm(question(job, found)) {
        cx.report.add_failures(1);
        return kept(Decision::Skip);
    }
    Ok(None)
}

/// Whether this run has made the file, as the copy of another operand.
fn is_of_another_operand(Job { cx, entry }: Job<'_>, found: &Found) -> bool {
    entry.is_operand && cx.operands.was_made(&entry.dst, FileId::of(&found.link))
}

/// Whether another operand has a file of that name, too. The destination may be the copy of that one, with the same
/// length and time.
fn has_merged_source(Job { entry, .. }: Job<'_>) -> bool {
    let is_other = |path: PathBuf| {
        lstat(CWD, &path).is_ok_and(|stat| FileId::of(&stat) != FileId::of(&entry.src_stat))
    };
    entry.operand.merged_sources(&entry.src, entry.dst.name).any(is_other)
}

/// Whether an earlier run has completed this copy. With `--atomic` a file gets its name when it has
/// all its data and the time of its source.
fn is_complete(job: Job<'_>, found: &Found) -> Result<bool> {
    let (src, dst) = (&job.entry.src_stat, found.effective());
    let may_be_complete = job.cx.options.preserve.timestamps
        && job.cx.options.make == Make::Copy
        && is_regular(src)
        && is_regular(dst)
        && file_bytes(src) == file_bytes(dst);
    Ok(may_be_complete && (mtime(src) == mtime(dst) || has_source_time(job, found)?))
}

/// Whether the destination, which seems older than the source, is a copy of it as it is now, with its time as
/// far as the file system keeps it.
fn has_source_time(job: Job<'_>, found: &Found) -> Result<bool> {
    let differs = || Ok(compare_data(job, found)?.is_none());
    let known = job.cx.dry_run.is_none().then_some(&job.cx.resolutions);
    let (dst, through_link) = (found.effective(), found.through_link);
    time_resolution::has_source_time(known, &Older { entry: job.entry, dst, through_link }, differs)
}

/// Compares the data. The outer `None` means that it differs, or cannot be compared.
fn compare_data(Job { cx, entry }: Job<'_>, found: &Found) -> Result<Option<Option<Verified>>> {
    if found.through_link {
        return Ok(None);
    }
    cx.report.deferred_init();
    let src = open_source(None, entry)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let (dir, name) = (entry.dst.dir, entry.dst.name);
    let Ok(fd) = open_looked_at(None, dir, name, flags, &found.link) else {
        return Ok(None);
    };
    match fstat(&fd) {
        Ok(stat) if FileId::of(&stat) == FileId::of(&found.link) => {
            let dst = OpenFile { fd, stat };
            compare_existing(cx.report, (src.at(&entry.src), dst.at(&entry.dst)))
        }
        _ => Ok(None),
    }
}

fn question(Job { cx, entry }: Job<'_>, found: &Found) -> Question {
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
fn check_kinds(job: Job<'_>, found: &Found) -> Result<()> {
    let Job { cx, entry } = job;
    let (src, dst) = (|| entry.src.path(), || entry.dst.path());
    match (is_directory(&entry.src_stat), is_directory(found.effective())) {
        // With a backup another file gives its name to the directory.
        (true, false) if cx.options.backup.is_none() => {
            Err(Diagnostic::NonDirectoryInTheWay { src: src(), dst: dst() })
        }
        (true, _) => Ok(()),
        (false, true) => Err(Diagnostic::DirectoryInTheWay { src: src(), dst: dst() }),
        (false, false) => {
            if makes_numbered_backups(cx.options) || !is_of_another_operand(job, found) {
                return Ok(());
            }
            Err(match is_symlink(&found.link) && found.through_link {
                true => Diagnostic::JustCreatedSymlink { src: src(), dst: dst() },
                false => Diagnostic::JustCreated { src: src(), dst: dst() },
            })
        }
    }
}

fn makes_numbered_backups(options: &Options) -> bool {
    options.backup.as_ref().is_some_and(|backup| backup.kind == BackupKind::Numbered)
}

/// Refuses to replace the copy of another source whose name this directory takes for the same.
fn refuse_other_spelling(Job { cx, entry }: Job<'_>, found: &Found) -> Result<()> {
    let id = FileId::of(&found.link);
    let (dir, name) = (entry.dst.dir, entry.dst.name);
    // Another worker may have created the file just now, and not yet noted it.
    drop(cx.operands.lock_creation(entry.dst_dir));
    if !cx.operands.may_be_of_this_run(&entry.dst, id)
        || makes_numbered_backups(cx.options)
        || !may_have_spellings(dir, name)
    {
        return Ok(());
    }
    let others = match entry.is_operand {
        true => cx.operands.names_made_beside(&entry.dst),
        // A directory that cannot be listed is not copied.
        false => names_like(entry.src.dir, name).unwrap_or_default(),
    };
    let is_same_name = |other: &CString| {
        let there = Place { name: other, ..entry.dst };
        // Two names of one source are no loss.
        (entry.is_operand || !FileId::of(&entry.src_stat).is_at(entry.src.dir, &**other))
            && may_be_one_name(other.to_bytes(), name.to_bytes())
            && there
                .stat(false)
                .is_ok_and(|stat| FileId::of(&stat) == id || may_number_spellings(&entry.dst))
            && are_one_name(&there, &entry.dst) == Ok(true)
    };
    match others.iter().any(|other| **other != *name && is_same_name(other)) {
        true => Err(Diagnostic::JustCreated { src: entry.src.path(), dst: entry.dst.path() }),
        false => Ok(()),
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
    let name = c_name(&name).map_err(failed(Action::Stat, &entry.dst))?;
    let existing = Place { name: &name, ..entry.dst };
    let is_source = existing.stat(false).is_ok_and(|stat| {
        let is_exact = src_base == backup_base;
        let is_one_inode = FileId::of(&stat) == FileId::of(&entry.src_stat);
        // Otherwise they may be two hard links.
        is_one_inode && (is_exact || stat.st_nlink == 1)
            || !is_exact
                && may_number_spellings(&existing)
                && are_one_name(&entry.src, &existing) == Ok(true)
    });
    if !is_source {
        return Ok(());
    }
    Err(Diagnostic::BackupDestroysSource { src: entry.src.path(), dst: entry.dst.path() })
}
