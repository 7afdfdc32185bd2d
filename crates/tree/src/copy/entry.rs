//! One entry: what is to be made of it, and what came of that.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};

use super::context::{CopyContext, CopyWorker};
use super::directory::enter_directory;
use super::directory_pair::DirectoryPair;
use super::finish::{remember, skipped};
use super::hard_link::{Name, link_or_claim, link_up_to_date};
use super::regular::{copy_file, dry_run_file};
use super::special;
use crate::data::worker::FailedData;
use crate::destination::backup::{self, BackedUp, BackupMethod};
use crate::destination::dry_run::{DryRun, EarlierOperand, check_earlier_operand};
use crate::destination::existing::{Decision, DestinationState, Lookup, decide, look_up};
use crate::entry::{
    Entry, OpenSource, Prepared, bytes_to_copy, copies_data, elapsed_ns, open_listed_source,
};
use crate::fs::{FileId, Listing, Trust, is_directory, is_symlink, kind};
use crate::metadata::kept;
use crate::report::{Action, Announcement, Diagnostic, Method, Receipt, failed};
use crate::request::Make;
use crate::shared::Claimant;

/// Whether the walk has to go down.
pub(crate) enum Next {
    Done,
    Enter(Arc<DirectoryPair>, Listing),
}

/// Copies one entry; of a directory only the directory itself. Whatever goes wrong is told to the
/// observer. `prepared` is what has been done for it before.
pub(crate) fn copy_entry(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    prepared: Option<Prepared>,
) -> Next {
    let next = copy_or_report(cx, worker, entry, prepared);
    if let Next::Done = next {
        worker.data.progress.settle();
    }
    next
}

fn copy_or_report(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    prepared: Option<Prepared>,
) -> Next {
    match try_copy(cx, worker, entry, prepared) {
        Ok(next) => next,
        Err(diagnostic) => {
            let again = matches!(diagnostic, Diagnostic::IntoItself { .. })
                && entry.operand.into_itself.swap(true, Ordering::Relaxed);
            if cx.report.keeps_receipts() {
                let receipt = receipt_of_failure(worker, entry, diagnostic.clone());
                entry.finish(cx.report, receipt);
            }
            if !again {
                cx.report.report(diagnostic);
            }
            Next::Done
        }
    }
}

fn receipt_of_failure(
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    diagnostic: Diagnostic,
) -> Receipt {
    let kind = entry.src.stat(entry.src_through_link).map_or(FileType::Unknown, |s| kind(&s));
    let mut receipt = entry.receipt(kind, Method::Failed);
    if let Some(FailedData { data, diagnostic: first }) = worker.data.failed_data.take() {
        receipt.add_data(data);
        // A file that is incomplete is so because of what was told before.
        if first != diagnostic {
            receipt.failures.push(first);
        }
    }
    receipt.failures.push(diagnostic);
    receipt
}

fn try_copy(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    prepared: Option<Prepared>,
) -> Result<Next, Diagnostic> {
    let (src_stat, opened, created) = match prepared {
        Some(Prepared { source, created }) => (source.stat, Some(source), created),
        None => {
            let (src_stat, opened) = look_at_source(cx, worker, entry)?;
            (src_stat, opened, None)
        }
    };
    worker.data.progress.due(bytes_to_copy(cx.options, &src_stat));
    if cx.options.record == Some(FileId::of(&src_stat)) {
        return Err(Diagnostic::SourceIsRecord { src: entry.src.path() });
    }
    if is_directory(&src_stat) && !cx.options.recursive {
        return Err(Diagnostic::OmittingDirectory { src: entry.src.path() });
    }
    if is_repeated_operand(cx, entry, &src_stat) {
        cx.report.report(Diagnostic::SourceTwice { src: entry.src.path(), directory: false });
        skipped(cx, entry, &src_stat);
        return Ok(Next::Done);
    }
    let earlier = match is_directory(&src_stat) {
        true => EarlierOperand::None,
        false => check_earlier_operand(cx.dry_run(), cx.options, entry)?,
    };
    if let EarlierOperand::Skipped = earlier {
        skipped(cx, entry, &src_stat);
        return Ok(Next::Done);
    }
    backup::refresh(cx.destination, &entry.dst);
    let mut state = match look_up(cx.destination, entry, &src_stat)? {
        Lookup::Absent if matches!(earlier, EarlierOperand::Copy) => {
            DestinationState { backup: back_up_copy(cx, entry)?, ..DestinationState::default() }
        }
        Lookup::Absent => DestinationState::default(),
        Lookup::DanglingSymlink => {
            DestinationState { dangling: true, ..DestinationState::default() }
        }
        Lookup::Found(existing) => match decide(cx.destination, entry, &src_stat, existing)? {
            Decision::Proceed(state) => state,
            Decision::Skip => {
                skipped(cx, entry, &src_stat);
                return Ok(Next::Done);
            }
            Decision::UpToDate(verified) => {
                link_up_to_date(cx, worker, entry, &src_stat, verified)?;
                remove_stale(cx, entry);
                return Ok(Next::Done);
            }
        },
    };
    let backup = state.backup.take();
    if is_directory(&src_stat) {
        return enter_directory(cx, entry, &src_stat, state.found.as_deref())
            .map(|entered| match entered {
                Some((pair, listing)) => Next::Enter(pair, listing),
                None => Next::Done,
            })
            .inspect(|_| {
                backup::note_created(cx.destination, &entry.dst);
                remove_stale(cx, entry);
            })
            .inspect_err(|_| {
                if let Some(backup) = &backup {
                    restore(cx, entry, backup);
                }
            });
    }
    cx.report.announce(|| Announcement::Copied {
        src: entry.src.path(),
        dst: entry.dst.path(),
        backup: backup.as_ref().map(|backup| backup.path.clone()),
    });
    state.source = state.source.or(opened.map(Box::new));
    state.created = created;
    match make(cx, worker, entry, &src_stat, state) {
        Ok(()) => {
            remove_stale(cx, entry);
            Ok(Next::Done)
        }
        Err(diagnostic) => {
            if let Some(backup) = &backup {
                restore(cx, entry, backup);
            }
            Err(diagnostic)
        }
    }
}

/// What the source is, and the source itself where it has been opened to find that out.
fn look_at_source(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
) -> Result<(Stat, Option<OpenSource>), Diagnostic> {
    // What goes into a directory that this run made meets nothing there, so a regular file is going
    // to be read. Should it not be what the directory said, or not let itself be opened, the usual
    // way finds out.
    // Where the one before got only another name this one will not be read either.
    let is_read = entry.listed_as == FileType::RegularFile
        && entry.dst.trust == Trust::Created
        && cx.options.make == Make::Copy
        && !worker.last_was_linked;
    if is_read && let Some(opened) = open_listed_source(&mut worker.data.fs_types, entry) {
        return Ok((opened.stat, Some(opened)));
    }
    let stat = entry.src.stat(entry.src_through_link).map_err(failed(Action::Stat, &entry.src))?;
    Ok((stat, None))
}

/// The same file operand, by the same name, a second time.
fn is_repeated_operand(cx: &CopyContext<'_>, entry: &Entry<'_>, src_stat: &Stat) -> bool {
    entry.is_operand
        && entry.operand.into_directory
        && !is_directory(src_stat)
        && cx.options.backup.is_none()
        && cx.destination.operands.is_repeated_file(FileId::of(src_stat), entry.src.name)
}

/// Makes what stands for an entry that is no directory.
fn make(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    src_stat: &Stat,
    state: DestinationState,
) -> Result<(), Diagnostic> {
    let linked = state.found.as_ref().filter(|found| found.through_link);
    let link = linked.map(|found| FileId::of(&found.link));
    let old = state.old();
    let Name::Own(claimant) = link_or_claim(cx, worker, entry, src_stat, old)? else {
        return Ok(());
    };
    worker.last_was_linked = false;
    let mut receipt =
        cx.report.keeps_receipts().then(|| entry.receipt(kind(src_stat), Method::Copied));
    let dst = match cx.options.make {
        Make::HardLink => {
            set_method(&mut receipt, Method::Linked);
            Some(special::link_source(cx, entry, src_stat, old)?)
        }
        Make::SymbolicLink => {
            set_method(&mut receipt, Method::SymbolicLink);
            special::link_to_name(cx, entry, src_stat, old)?
        }
        Make::Copy | Make::AttributesOnly
            if cx.options.dry_run && copies_data(cx.options, src_stat) =>
        {
            Some(dry_run_file(cx, entry, src_stat, state)?)
        }
        Make::Copy | Make::AttributesOnly if copies_data(cx.options, src_stat) => {
            let copied = copy_file(cx, worker, entry, src_stat, state)?;
            if let Some(receipt) = &mut receipt {
                receipt.kept = kept(cx.options, kind(src_stat), &copied.lost);
                receipt.lost = copied.lost;
                if let Some(data) = copied.data {
                    receipt.add_data(data);
                }
            }
            Some(copied.dst)
        }
        Make::Copy | Make::AttributesOnly => {
            let (dst, lost) = if is_symlink(src_stat) {
                special::copy_symlink(cx, entry, src_stat, old)?
            } else {
                special::copy_node(cx, entry, src_stat, old)?
            };
            if let Some(receipt) = &mut receipt {
                receipt.kept = kept(cx.options, kind(src_stat), &lost);
                receipt.lost = lost;
            }
            dst
        }
    };
    if let Some(dst) = dst {
        publish_copy(cx, entry, claimant, dst, link);
    }
    if let Some(mut receipt) = receipt {
        receipt.elapsed_ns = elapsed_ns(entry.started);
        worker.data.finish(cx.data, receipt);
    }
    worker.data.sync_if_many(cx.data);
    Ok(())
}

fn set_method(receipt: &mut Option<Receipt>, method: Method) {
    if let Some(receipt) = receipt {
        receipt.method = method;
    }
}

/// Remembers what was made, for other names of the source and for other operands.
fn publish_copy(
    cx: &CopyContext<'_>,
    entry: &Entry<'_>,
    claimant: Option<Claimant<'_>>,
    dst: FileId,
    link: Option<FileId>,
) {
    if let (Some(claimant), Some(dst_dir)) = (claimant, entry.dst_dir)
        // The name of a link that was written through is not a name of the copy.
        && link.is_none()
    {
        claimant.publish(dst_dir, entry.dst.name, dst);
    }
    // A second operand of this name meets the link, not what lies behind it.
    remember(cx, entry, link.unwrap_or(dst));
}

fn restore(cx: &CopyContext<'_>, entry: &Entry<'_>, backup: &BackedUp) {
    if let Err(errno) = backup.undo(cx.destination, &entry.dst) {
        cx.report.report(failed(Action::UnBackup, &entry.dst)(errno));
    } else {
        cx.report.announce(|| Announcement::Restored {
            backup: backup.path.clone(),
            dst: entry.dst.path(),
        });
    }
}

/// The backup that would be made of the copy of another operand, which is not there.
///
/// # Errors
/// Why the backups that are there cannot be listed.
fn back_up_copy(cx: &CopyContext<'_>, entry: &Entry<'_>) -> Result<Option<BackedUp>, Diagnostic> {
    let Some(backup) = &cx.options.backup else { return Ok(None) };
    // Which file it is matters for simple backups only.
    let id = cx.dry_run().map_or_else(|| FileId { dev: 0, ino: 0 }, DryRun::new_id);
    let backup =
        backup::back_up(cx.destination, (&entry.src, &entry.dst), id, backup, BackupMethod::DryRun);
    backup.map(Some).map_err(|error| error.diagnostic(&entry.dst))
}

fn remove_stale(cx: &CopyContext<'_>, entry: &Entry<'_>) {
    cx.destination.stale.remove_for(cx.options, cx.security(), entry);
}
