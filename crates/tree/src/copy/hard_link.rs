//! Sources with several hard links: the first is copied, the others are linked to its copy.

use std::os::fd::BorrowedFd;

use rustix::io::{self, Errno};

use super::context::{CopyContext, CopyWorker};
use super::context::{remember, skipped};
use crate::destination::prepare::NameState;
use crate::destination::prepare::remove;
use crate::destination::temporary::replace_by;
use crate::entry::Entry;
use crate::fs::{FileId, cannot_be_linked, is_one_file, is_symlink, kind};
use crate::report::{Action, Announcement, Diagnostic, Loss, Method, Result, Verified, failed};
use crate::shared::{Claim, Claimant, FirstCopy};

/// What becomes of the destination.
pub(super) enum LinkOrCopy<'r> {
    /// The destination was linked to an earlier copy of the source.
    Linked,
    /// The caller has to copy, and then to publish the copy if the source may have other names. The copy is
    /// one of its own if the link that was due is `lost`.
    Copy { claimant: Option<Claimant<'r>>, lost: Option<Loss> },
}

/// Links the destination to an earlier copy of its source, if hard links are preserved and there is
/// one; else claims the source.
pub(super) fn link_or_claim<'r>(
    cx: &'r CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    old: NameState,
) -> Result<LinkOrCopy<'r>> {
    if !entry.may_have_links(cx.options, &entry.src_stat) {
        return Ok(LinkOrCopy::Copy { claimant: None, lost: None });
    }
    let (mut not_linked, mut lost) = (None, None);
    loop {
        match cx.destination.links.claim(FileId::of(&entry.src_stat), not_linked.as_ref()) {
            Claim::First(claimant) => {
                return Ok(LinkOrCopy::Copy { claimant: Some(claimant), lost });
            }
            Claim::Copied(made) => {
                worker.last_was_linked = true;
                lost = link_to_earlier(cx, worker, entry, &made, old)?;
                if lost.is_none() {
                    return Ok(LinkOrCopy::Linked);
                }
                not_linked = Some(made);
            }
        }
    }
}

/// Links the destination to the earlier copy `made`. Returns the loss if that copy has lost its name, to a backup or to
/// the copy of another operand, cannot be recognised, where the numbers of files change, or cannot be linked to.
fn link_to_earlier(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    made: &FirstCopy,
    old: NameState,
) -> Result<Option<Loss>> {
    let error = |errno| Diagnostic::HardLink { src: made.path(), dst: entry.dst.path(), errno };
    let same = entry.dst_dir.is_some_and(|dst_dir| dst_dir.is(&made.dir));
    let from = if same || cx.options.dry_run {
        entry.dst.dir
    } else {
        worker.last_reopened.open(cx.security(), &made.dir).map_err(error)?
    };
    let linked = match link_to_copy(cx, entry, (made, from), old) {
        Err(Errno::EXIST) => replace_by_link(cx, entry, (made, from))?,
        linked => linked,
    };
    match linked {
        Err(errno @ Errno::STALE) => return Ok(Some(Loss::Links(errno))),
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
    remember(cx, entry, by_name.map_or(made.id, |linked| FileId::of(&linked)));
    if cx.report.keeps_receipts() {
        entry.finish(cx.report, entry.receipt(kind(&entry.src_stat), Method::Linked));
    }
    Ok(None)
}

/// Replaces the existing destination by a link to `made`, unless it is one already. The inner error is that of the
/// link, without which the existing file stays.
fn replace_by_link(
    cx: &CopyContext<'_>,
    entry: &Entry<'_>,
    (made, from): (&FirstCopy, BorrowedFd<'_>),
) -> Result<io::Result<()>> {
    let existing = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
    if cx.options.dry_run {
        if made.id != FileId::of(&existing) && !cx.options.atomic {
            remove(cx.destination, entry)?;
        }
        return Ok(Ok(()));
    }
    if made.id == FileId::of(&existing)
        && made.stat(from).is_ok_and(|first| is_one_file(&first, &existing))
    {
        return Ok(Ok(()));
    }
    let replaced = replace_by((cx.security(), cx.report), &entry.src, &entry.dst, |temp| {
        made.link_to(cx.report, temp, from)
    });
    if replaced.is_ok() && !cx.options.atomic {
        cx.report.announce(|| Announcement::Removed { dst: entry.dst.path() });
    }
    Ok(replaced)
}

/// Links to `made`. A dry run only checks whether the name is free.
fn link_to_copy(
    cx: &CopyContext<'_>,
    entry: &Entry<'_>,
    (made, from): (&FirstCopy, BorrowedFd<'_>),
    old: NameState,
) -> io::Result<()> {
    match (cx.options.dry_run, old) {
        (false, _) => made.link_to(cx.report, &entry.dst, from),
        (true, NameState::Vacant) => Ok(()),
        (true, NameState::Occupied | NameState::Replaceable) => Err(Errno::EXIST),
    }
}

/// Keeps a destination that is up to date, but links it if its source has other names that were
/// copied.
pub(super) fn link_up_to_date(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    verified: Option<Verified>,
) -> Result<()> {
    if entry.src_stat.st_nlink < 2 {
        skipped(cx, entry, verified);
        return Ok(());
    }
    let existing = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
    let LinkOrCopy::Copy { claimant, .. } = link_or_claim(cx, worker, entry, NameState::Occupied)?
    else {
        return Ok(());
    };
    if let (Some(claimant), Some(dst_dir)) = (claimant, entry.dst_dir)
        && !is_symlink(&existing)
    {
        claimant.publish(dst_dir, entry.dst.name, FileId::of(&existing));
    }
    skipped(cx, entry, verified);
    Ok(())
}
