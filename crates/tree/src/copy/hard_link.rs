//! Entries whose source has several names: the first is copied, the others are linked to the copy.

use std::os::fd::BorrowedFd;

use rustix::fs::Stat;
use rustix::io::{self, Errno};

use super::context::{CopyContext, CopyWorker};
use super::finish::{remember, skipped_as};
use crate::destination::existing::{NameState, remove};
use crate::destination::replace::replace_by;
use crate::entry::Entry;
use crate::fs::{FileId, is_symlink, kind};
use crate::report::{Action, Diagnostic, Method, Verified, failed};
use crate::shared::{Claim, Claimant, FirstCopy};

/// What the destination's name stands for.
pub(super) enum Name<'r> {
    /// The copy that another name of the source has.
    Linked,
    /// A copy of its own. Whoever makes it tells those with other names, if there may be any.
    Own(Option<Claimant<'r>>),
}

/// Makes the destination a name of the copy that there is of its source, when names of one file are to
/// stay so; else claims the source.
pub(super) fn link_or_claim<'r>(
    cx: &'r CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    src_stat: &Stat,
    old: NameState,
) -> Result<Name<'r>, Diagnostic> {
    if !entry.may_have_links(cx.options, src_stat) {
        return Ok(Name::Own(None));
    }
    let mut lost = None;
    loop {
        match cx.destination.links.claim(FileId::of(src_stat), lost.as_ref()) {
            Claim::First(claimant) => return Ok(Name::Own(Some(claimant))),
            Claim::Copied(made) => {
                worker.last_was_linked = true;
                if link_again(cx, worker, entry, src_stat, &made, old)? {
                    return Ok(Name::Linked);
                }
                lost = Some(made);
            }
        }
    }
}

/// Makes the destination another name of the copy that was made before, unless that has lost its name: to
/// a backup, or to what another operand has put there.
fn link_again(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    src_stat: &Stat,
    made: &FirstCopy,
    old: NameState,
) -> Result<bool, Diagnostic> {
    let error = |errno| Diagnostic::HardLink { src: made.path(), dst: entry.dst.path(), errno };
    let same = entry.dst_dir.is_some_and(|dst_dir| dst_dir.is(&made.home));
    let from = if same || cx.options.dry_run {
        entry.dst.dir
    } else {
        worker.last_reopened.reach(cx.security(), &made.home).map_err(error)?
    };
    match link_to_copy(cx, entry, (made, from), old) {
        Err(Errno::STALE | Errno::NOENT) if !cx.options.dry_run && made.is_lost(from) => {
            return Ok(false);
        }
        Err(Errno::EXIST) => {
            let stands = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
            if made.id == FileId::of(&stands) {
                // It is one already.
            } else if !cx.options.dry_run && made.is_lost(from) {
                // What stands here must not go before it is sure what comes.
                return Ok(false);
            } else if cx.options.dry_run {
                if !cx.options.atomic {
                    remove(cx.destination, entry)?;
                }
            } else if cx.options.atomic {
                replace_by(cx.security(), &entry.src, &entry.dst, |beside| {
                    made.link_to(beside, from)
                })
                .map_err(error)?;
            } else {
                remove(cx.destination, entry)?;
                made.link_to(&entry.dst, from).map_err(error)?;
            }
        }
        result => result.map_err(error)?,
    }
    remember(cx, entry, made.id);
    if cx.report.keeps_receipts() {
        entry.finish(cx.report, entry.receipt(kind(src_stat), Method::Linked));
    }
    Ok(true)
}

/// Links to `made`. In a rehearsal only what stands in the way is looked at.
fn link_to_copy(
    cx: &CopyContext<'_>,
    entry: &Entry<'_>,
    (made, from): (&FirstCopy, BorrowedFd<'_>),
    old: NameState,
) -> io::Result<()> {
    match (cx.options.dry_run, old) {
        (false, _) => made.link_to(&entry.dst, from),
        (true, NameState::Vacant) => Ok(()),
        (true, NameState::Occupied | NameState::Replaceable) => Err(Errno::EXIST),
    }
}

/// A destination that is up to date stays, yet the names of one source become names of one copy.
pub(super) fn link_up_to_date(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    entry: &Entry<'_>,
    src_stat: &Stat,
    verified: Option<Verified>,
) -> Result<(), Diagnostic> {
    if src_stat.st_nlink < 2 {
        skipped_as(cx, entry, src_stat, verified);
        return Ok(());
    }
    let stands = entry.dst.stat(false).map_err(failed(Action::Stat, &entry.dst))?;
    let Name::Own(claimant) = link_or_claim(cx, worker, entry, src_stat, NameState::Occupied)?
    else {
        return Ok(());
    };
    if let (Some(claimant), Some(dst_dir)) = (claimant, entry.dst_dir)
        && !is_symlink(&stands)
    {
        claimant.publish(dst_dir, entry.dst.name, FileId::of(&stands));
    }
    skipped_as(cx, entry, src_stat, verified);
    Ok(())
}
