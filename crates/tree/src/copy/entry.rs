//! One entry: the steps that all kinds share, in this order: look at the source, decide about the
//! destination, link or copy, remember the copy, write the receipt.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};

use super::context::{CopyWorker, keep, note_kept, remember, restore_attributes, skipped};
use super::directory::{Next, enter_directory};
use super::regular::{copy_file, dry_run_file};
use super::special::{self, NotLinked, link_or_claim, link_up_to_date};
use crate::destination::backup::{self, BackedUp};
use crate::destination::context::{CopyContext, Job};
use crate::destination::decide::{Decision, decide};
use crate::destination::partial::remove_all;
use crate::destination::prepare::{DestinationState, prepare};
use crate::destination::temporary::Beside;
use crate::entry::{Entry, ListedEntry, Prepared, bytes_to_copy, copies_data};
use crate::fs::{FileId, OpenFile, Trust, data_bytes, is_directory, is_symlink, kind, path_in};
use crate::report::{Action, Announcement, Diagnostic, Method, Result, failed};
use crate::request::Make;
use crate::security::resolve_symlink;

/// Copies one entry; of a directory only the directory itself. Errors are reported to the observer.
/// `prepared` is what a batch has done for the entry already.
pub(crate) fn copy_entry(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &ListedEntry<'_>,
    prepared: Option<Prepared>,
) -> Next {
    let next = try_copy(cx, worker, entry, prepared).unwrap_or_else(|diagnostic| {
        let is_repeated = matches!(diagnostic, Diagnostic::IntoItself { .. })
            && entry.operand.into_itself.swap(true, Ordering::Relaxed);
        if cx.report.keeps_receipts() {
            let stat = entry.src.stat(entry.src_through_link);
            let kind = stat.map_or(FileType::Unknown, |stat| kind(&stat));
            let mut receipt = entry.receipt(kind, Method::Failed);
            // The receipt has also what was copied before the failure.
            worker.data.add_failure(&mut receipt, &diagnostic);
            cx.report.observer.finished(receipt);
        }
        if !is_repeated {
            cx.report.report(diagnostic);
        }
        Next::Done
    });
    if let Next::Done = next {
        worker.data.finish_entry();
    }
    next
}

fn try_copy(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    listed: &ListedEntry<'_>,
    prepared: Option<Prepared>,
) -> Result<Next> {
    let (src_stat, opened, created) = match prepared {
        Some(Prepared { source, created }) => (source.stat, Some(source), created),
        None => {
            let (src_stat, opened) = look_at_source(cx, worker, listed)?;
            (src_stat, opened, None)
        }
    };
    let bytes = bytes_to_copy(cx.options, &src_stat);
    if bytes.min(data_bytes(&src_stat)) >= listed.give_from_bytes
        && created.is_none()
        // Workers with other names of the file would wait for the one that copies it.
        && !listed.may_have_links(cx.options, &src_stat)
    {
        return Ok(Next::Give(listed.src.name.to_owned(), listed.listed_as));
    }
    let entry = &Entry { listed, src_stat };
    let job = Job { cx, entry };
    worker.data.progress.start_entry(bytes);
    if cx.options.record == Some(FileId::of(&src_stat)) {
        return Err(Diagnostic::SourceIsRecord { src: entry.src.path() });
    }
    if is_directory(&src_stat) && !cx.options.recursive {
        return Err(Diagnostic::OmittingDirectory { src: entry.src.path() });
    }
    if is_repeated_operand(job) {
        cx.report.report(Diagnostic::SourceTwice { src: entry.src.path(), directory: false });
        skipped(job);
        return Ok(Next::Done);
    }
    let Some(mut state) = prepare_destination(job, worker)? else {
        return Ok(Next::Done);
    };
    let backup = state.backup.clone();
    if backup.is_some() {
        // The old file may not be on the medium yet.
        cx.data.syncer.note_file_system(entry.dst.dir, || entry.dst.path());
    }
    let is_new = state.found.is_none();
    let through_link = state.found.as_deref().is_some_and(|found| found.through_link);
    let copied = if is_directory(&src_stat) {
        enter_directory(job, state.found.as_deref())
            .inspect(|_| backup::note_created(cx, &entry.dst))
    } else {
        entry.announce_copy(cx.report, backup.as_ref().map(|backup| &*backup.path));
        state.source = state.source.or(opened.map(Box::new));
        state.created = created;
        make(job, worker, state).map(|()| Next::Done)
    };
    match &copied {
        Ok(_) => {
            let is_made = is_new && !cx.options.dry_run;
            if is_made && let Err(errno) = worker.kept_names.check(&entry.dst, entry.dst_dev()) {
                cx.report.report(failed(Action::KeepName, &entry.dst)(errno));
            }
            remove_stale(job, through_link);
        }
        Err(diagnostic) => {
            if let Some(Err(unrestored)) = backup.map(|backup| restore(job, &backup)) {
                // Then the destination is not as it was before.
                if let Diagnostic::InterruptedBefore { .. } = diagnostic {
                    return Err(unrestored);
                }
                cx.report.report(unrestored);
            }
        }
    }
    copied
}

/// Removes what an earlier run left for the destination of `entry`, which is complete. If that was
/// written `through_link`, the earlier run has written beside the target of the link.
fn remove_stale(job: Job<'_>, through_link: bool) {
    let Job { cx, entry } = job;
    if !cx.options.resume || cx.options.dry_run {
        return;
    }
    let (dir, name) = (entry.dst.dir, entry.dst.name);
    if cx.stale.may_exist_for(entry) {
        remove_all(cx.report, &Beside::of(job, (dir, name)), || entry.dst.path());
    }
    // Nothing was written through a link that is not trusted, or that leads nowhere.
    let named = entry.dst.trust == Trust::Operand;
    if through_link
        && !is_directory(&entry.src_stat)
        && let Ok(Some(target)) = resolve_symlink(&cx.security, dir, name, named)
    {
        let (dir, name) = (target.dir.as_fd(), &*target.name);
        remove_all(cx.report, &Beside::of(job, (dir, name)), || path_in((dir, name)));
    }
}

/// Decides about the destination and does what has to be done before the copy. `None` if the entry is
/// finished, because the destination stays as it is.
fn prepare_destination(job: Job<'_>, worker: &mut CopyWorker) -> Result<Option<DestinationState>> {
    let decision = decide(job)?;
    match &decision {
        Decision::Skip => keep(job, &mut worker.data, (false, None))?,
        Decision::UpToDate { id, verified, through_link } => {
            note_kept(job, *id);
            if !through_link {
                restore_attributes(job)?;
            }
            if !link_up_to_date(job, worker)? {
                keep(job, &mut worker.data, (*through_link, *verified))?;
            }
            remove_stale(job, *through_link);
        }
        _ => {}
    }
    prepare(job, decision)
}

/// The attributes of the source, and the open source if it had to be opened for them.
fn look_at_source(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &ListedEntry<'_>,
) -> Result<(Stat, Option<OpenFile>)> {
    // Nothing exists in a directory that this run created, so a file that is listed as regular will
    // be read. If it cannot be opened, or is not regular, the usual order of calls finds out. After
    // a hard link the next entry probably is one too, and is not read.
    let is_read = entry.listed_as == FileType::RegularFile
        && entry.dst.trust == Trust::Created
        && cx.options.make == Make::Copy
        && !worker.last_was_linked;
    if is_read && let Some(opened) = entry.open_listed(cx.options, &mut worker.data.fs_types) {
        return Ok((opened.stat, Some(opened)));
    }
    let stat = entry.src.stat(entry.src_through_link).map_err(failed(Action::Stat, &entry.src))?;
    Ok((stat, None))
}

/// Whether a file operand is given twice by the same name.
fn is_repeated_operand(Job { cx, entry }: Job<'_>) -> bool {
    entry.is_operand
        && entry.operand.into_directory
        && !is_directory(&entry.src_stat)
        && cx.options.backup.is_none()
        && cx.operands.is_repeated_file(FileId::of(&entry.src_stat), entry.src.name)
}

/// Copies an entry that is no directory, or links it to an earlier copy or to its source.
fn make(job: Job<'_>, worker: &mut CopyWorker, state: DestinationState) -> Result<()> {
    let Job { cx, entry } = job;
    let exists = state.found.is_some();
    let linked = state.found.as_ref().filter(|found| found.through_link);
    let link = linked.map(|found| FileId::of(&found.link));
    let Some(NotLinked { claimant, lost: link_lost }) = link_or_claim(job, worker, exists)? else {
        return Ok(());
    };
    worker.last_was_linked = false;
    let is_data = matches!(cx.options.make, Make::Copy | Make::AttributesOnly)
        && copies_data(cx.options, &entry.src_stat);
    let is_found_by_others = entry.dst.trust != Trust::Created;
    let _creation =
        (!is_data && is_found_by_others).then(|| cx.operands.lock_creation(entry.dst_dir));
    let (method, made) = match cx.options.make {
        Make::HardLink => (Method::Linked, special::link_source(job, &state)),
        Make::SymbolicLink => (Method::SymbolicLink, special::link_to_name(job, &state)),
        Make::Copy | Make::AttributesOnly => {
            let made = match is_data {
                true if cx.options.dry_run => dry_run_file(job, state),
                true => copy_file(job, worker, state),
                false if is_symlink(&entry.src_stat) => special::copy_symlink(job, &state),
                false => special::copy_node(job, &state),
            };
            (Method::Copied, made)
        }
    };
    let mut made = made?;
    if let Some(dst) = made.dst {
        // A symbolic link that was written through is not a name of the copy.
        if let (Some(claimant), Some(dst_dir), None) = (claimant, entry.dst_dir, link) {
            claimant.publish(dst_dir, entry.dst.name, dst);
        }
        // A second operand of this name finds the link, not its target.
        remember(job, link.unwrap_or(dst));
    }
    if cx.report.keeps_receipts() {
        let mut receipt = entry.receipt(kind(&entry.src_stat), method);
        if method == Method::Copied {
            made.lost.extend(link_lost);
            made.add_to(&mut receipt, cx.options);
        }
        worker.data.finish(cx.data, receipt);
    }
    worker.data.sync_if_many(cx.data);
    Ok(())
}

fn restore(Job { cx, entry }: Job<'_>, backup: &BackedUp) -> Result<()> {
    if backup.undo(cx, &entry.dst).map_err(failed(Action::UnBackup, &entry.dst))? {
        cx.report.announce(|| Announcement::Restored {
            backup: backup.path.clone(),
            dst: entry.dst.path(),
        });
    }
    Ok(())
}
