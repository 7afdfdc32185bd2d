//! One entry: what is to be made of it, and what came of that.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::fs::{FileType, Stat};
use rustix::io::{self, Errno};

use crate::backup::{self, BackedUp};
use crate::contents::Unfinished;
use crate::copies::Made;
use crate::count;
use crate::diagnostic::{Action, Diagnostic};
use crate::directory::make_directory;
use crate::existing::{self, Ground, Look, Old, Verdict, copies_data, look, settle};
use crate::identity::{FileId, is_directory, is_symlink, kind};
use crate::links::{Claim, Holder};
use crate::listing::Listing;
use crate::metadata;
use crate::observer::Announcement;
use crate::options::{Follow, Make};
use crate::place::{Place, Trust};
use crate::plan::Operand;
use crate::receipt::{Method, Receipt, Verified};
use crate::regular::{OpenSource, copy_file, open_listed_source, rehearse_file};
use crate::rehearsal::{self, Met};
use crate::remains;
use crate::run::{Run, Worker, failed};
use crate::special;
use crate::trail::Trail;
use crate::walk::{Ahead, DirTask};

/// One entry to copy.
pub(crate) struct Job<'a> {
    pub(crate) src: Place<'a>,
    pub(crate) dst: Place<'a>,
    /// The destination's directory, if it can be found again when another name of the same file is
    /// met.
    pub(crate) home: Option<&'a Trail>,
    /// What the user named.
    pub(crate) operand: &'a Operand,
    /// This is the operand itself.
    pub(crate) is_top: bool,
    /// What its directory says it is.
    pub(crate) listed_as: FileType,
    /// The source's name stands for what it leads to, should it be a symbolic link.
    pub(crate) src_through_link: bool,
    /// The only file system to enter.
    pub(crate) device: Option<u64>,
    /// What is made in the destination's directory gets an access control list from it.
    pub(crate) inherits_acl: bool,
    /// Nobody else may give or take names in the destination's directory as yet.
    pub(crate) private: bool,
    /// When it was first looked at, if receipts are kept.
    pub(crate) begun: Option<Instant>,
}

impl Job<'_> {
    fn receipt(&self, kind: FileType, method: Method) -> Receipt {
        Receipt::new(self.src.path(), self.dst.path(), kind, method)
    }

    fn finish(&self, run: &Run<'_>, mut receipt: Receipt) {
        receipt.elapsed_ns = elapsed_ns(self.begun);
        run.observer.finished(receipt);
    }
}

/// How long ago an entry was begun, in nanoseconds.
pub(crate) fn elapsed_ns(begun: Option<Instant>) -> u64 {
    begun.map_or(0, |begun| u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Whether the walk has to go down.
pub(crate) enum Next {
    Done,
    Enter(Arc<DirTask>, Listing),
}

/// Copies one entry; of a directory only the directory itself. Whatever goes wrong is told to the
/// observer. `ahead` is what has been done for it before.
pub(crate) fn copy_entry(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    ahead: Option<Ahead>,
) -> Next {
    let next = copy_or_tell(run, worker, job, ahead);
    if let Next::Done = next {
        worker.station.settle();
    }
    next
}

fn copy_or_tell(run: &Run<'_>, worker: &mut Worker, job: &Job<'_>, ahead: Option<Ahead>) -> Next {
    match try_copy(run, worker, job, ahead) {
        Ok(next) => next,
        Err(diagnostic) => {
            let again = matches!(diagnostic, Diagnostic::IntoItself { .. })
                && job.operand.into_itself.swap(true, Ordering::Relaxed);
            if run.observer.keeps_receipts() {
                let receipt = receipt_of_failure(worker, job, diagnostic.clone());
                job.finish(run, receipt);
            }
            if !again {
                run.report(diagnostic);
            }
            Next::Done
        }
    }
}

fn receipt_of_failure(worker: &mut Worker, job: &Job<'_>, diagnostic: Diagnostic) -> Receipt {
    let kind = job.src.stat(job.src_through_link).map_or(FileType::Unknown, |s| kind(&s));
    let mut receipt = job.receipt(kind, Method::Failed);
    if let Some(Unfinished { contents, diagnostic: first }) = worker.unfinished.take() {
        receipt.take_over(contents);
        // A file that is incomplete is so because of what was told before.
        if first != diagnostic {
            receipt.failures.push(first);
        }
    }
    receipt.failures.push(diagnostic);
    receipt
}

/// Whether a symbolic link among the sources stands for what it leads to.
pub(crate) fn follows(follow: Follow, is_top: bool) -> bool {
    match follow {
        Follow::Never => false,
        Follow::CommandLine => is_top,
        Follow::Always => true,
    }
}

fn try_copy(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    ahead: Option<Ahead>,
) -> Result<Next, Diagnostic> {
    let (src_stat, opened, made) = match ahead {
        Some(Ahead { source, made }) => (source.stat, Some(source), made),
        None => {
            let (src_stat, opened) = look_at_source(run, worker, job)?;
            (src_stat, opened, None)
        }
    };
    worker.station.due(count::bytes_due(run.options, &src_stat));
    if run.options.record == Some(FileId::of(&src_stat)) {
        return Err(Diagnostic::SourceIsRecord { src: job.src.path() });
    }
    if is_directory(&src_stat) && !run.options.recursive {
        return Err(Diagnostic::OmittingDirectory { src: job.src.path() });
    }
    if stands_twice(run, job, &src_stat) {
        run.report(Diagnostic::SourceTwice { src: job.src.path(), directory: false });
        return Ok(skipped(run, job, &src_stat));
    }
    let met = match is_directory(&src_stat) {
        true => Met::Nothing,
        false => rehearsal::meets_own(run, job)?,
    };
    if let Met::Left = met {
        return Ok(skipped(run, job, &src_stat));
    }
    backup::begin(run, &job.dst);
    let mut ground = match look(run, job, &src_stat)? {
        Look::Nothing if matches!(met, Met::Copy) => {
            Ground { backup: rehearsal::back_up_copy(run, job)?, ..Ground::default() }
        }
        Look::Nothing => Ground::default(),
        Look::Dangling => Ground { dangling: true, ..Ground::default() },
        Look::Found(existing) => match settle(run, job, &src_stat, existing)? {
            Verdict::Proceed(ground) => ground,
            Verdict::Leave => return Ok(skipped(run, job, &src_stat)),
            Verdict::UpToDate(verified) => {
                return link_up_to_date(run, worker, job, &src_stat, verified)
                    .inspect(|_| remains::clear_beside(run, job));
            }
        },
    };
    let backup = ground.backup.take();
    if is_directory(&src_stat) {
        return make_directory(run, job, &src_stat, ground.found.as_deref())
            .inspect(|_| {
                backup::came(run, &job.dst);
                remains::clear_beside(run, job);
            })
            .inspect_err(|_| {
                if let Some(backup) = &backup {
                    restore(run, job, backup);
                }
            });
    }
    run.announce(|| Announcement::Copied {
        src: job.src.path(),
        dst: job.dst.path(),
        backup: backup.as_ref().map(|backup| backup.path.clone()),
    });
    ground.source = ground.source.or(opened.map(Box::new));
    ground.made = made;
    match make(run, worker, job, &src_stat, ground) {
        Ok(()) => {
            remains::clear_beside(run, job);
            Ok(Next::Done)
        }
        Err(diagnostic) => {
            if let Some(backup) = &backup {
                restore(run, job, backup);
            }
            Err(diagnostic)
        }
    }
}

/// What the source is, and the source itself where it has been opened to find that out.
fn look_at_source(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
) -> Result<(Stat, Option<OpenSource>), Diagnostic> {
    // What goes into a directory that this run made meets nothing there, so a regular file is going
    // to be read. Should it not be what the directory said, or not let itself be opened, the usual
    // way finds out.
    // Where the one before got only another name this one will not be read either.
    let is_read = job.listed_as == FileType::RegularFile
        && job.dst.trust == Trust::Made
        && run.options.make == Make::Copy
        && !worker.links_again;
    if is_read && let Some(opened) = open_listed_source(worker, job) {
        return Ok((opened.stat, Some(opened)));
    }
    let stat = job.src.stat(job.src_through_link).map_err(failed(Action::Stat, &job.src))?;
    Ok((stat, None))
}

/// The same file operand, by the same name, a second time.
fn stands_twice(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> bool {
    job.is_top
        && job.operand.several
        && !is_directory(src_stat)
        && run.options.backup.is_none()
        && run.tops.is_file_again(FileId::of(src_stat), job.src.name)
}

/// Makes what stands for an entry that is no directory.
fn make(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    src_stat: &Stat,
    ground: Ground,
) -> Result<(), Diagnostic> {
    let linked = ground.found.as_ref().filter(|found| found.through_link);
    let link = linked.map(|found| FileId::of(&found.link));
    let old = ground.old();
    let Name::Own(holder) = link_or_claim(run, worker, job, src_stat, old)? else { return Ok(()) };
    worker.links_again = false;
    let mut receipt =
        run.observer.keeps_receipts().then(|| job.receipt(kind(src_stat), Method::Copied));
    let dst = match run.options.make {
        Make::HardLink => {
            set_method(&mut receipt, Method::Linked);
            Some(special::link_source(run, job, src_stat, old)?)
        }
        Make::SymbolicLink => {
            set_method(&mut receipt, Method::SymbolicLink);
            special::link_to_name(run, job, src_stat, old)?
        }
        Make::Copy | Make::AttributesOnly
            if run.rehearsal.is_some() && copies_data(run.options, src_stat) =>
        {
            Some(rehearse_file(run, job, src_stat, ground)?)
        }
        Make::Copy | Make::AttributesOnly if copies_data(run.options, src_stat) => {
            let copied = copy_file(run, worker, job, src_stat, ground)?;
            if let Some(receipt) = &mut receipt {
                receipt.kept = metadata::kept(run.options, kind(src_stat), &copied.lost);
                receipt.lost = copied.lost;
                if let Some(contents) = copied.contents {
                    receipt.take_over(contents);
                }
            }
            Some(copied.dst)
        }
        Make::Copy | Make::AttributesOnly => {
            let (dst, lost) = if is_symlink(src_stat) {
                special::copy_symlink(run, job, src_stat, old)?
            } else {
                special::copy_node(run, job, src_stat, old)?
            };
            if let Some(receipt) = &mut receipt {
                receipt.kept = metadata::kept(run.options, kind(src_stat), &lost);
                receipt.lost = lost;
            }
            dst
        }
    };
    if let Some(dst) = dst {
        settle_names(run, job, holder, dst, link);
    }
    if let Some(mut receipt) = receipt {
        receipt.elapsed_ns = elapsed_ns(job.begun);
        worker.finish(run, receipt);
    }
    worker.sync_many(run);
    Ok(())
}

fn set_method(receipt: &mut Option<Receipt>, method: Method) {
    if let Some(receipt) = receipt {
        receipt.method = method;
    }
}

/// Remembers what was made, for other names of the source and for other operands.
fn settle_names(
    run: &Run<'_>,
    job: &Job<'_>,
    holder: Option<Holder<'_>>,
    dst: FileId,
    link: Option<FileId>,
) {
    if let (Some(holder), Some(home)) = (holder, job.home)
        // The name of a link that was written through is not a name of the copy.
        && link.is_none()
    {
        holder.settle(home, job.dst.name, dst);
    }
    // A second operand of this name meets the link, not what lies behind it.
    remember(run, job, link.unwrap_or(dst));
}

/// Remembers what was made here, so that nothing else of this run replaces it.
fn remember(run: &Run<'_>, job: &Job<'_>, dst: FileId) {
    run.own.made(run.options, &job.dst, dst);
    backup::came(run, &job.dst);
    if let Some(rehearsal) = run.rehearsal.as_ref().filter(|_| job.is_top) {
        rehearsal.makes_file(job.dst.name);
    }
    if job.is_top && job.operand.several {
        run.tops.made(run, &job.dst, dst);
    }
}

/// What the destination's name stands for.
enum Name<'r> {
    /// The copy that another name of the source has.
    Linked,
    /// A copy of its own. Whoever makes it tells those with other names, if there may be any.
    Own(Option<Holder<'r>>),
}

/// Makes the destination a name of the copy that there is of its source, when names of one file are to
/// stay so; else claims the source.
fn link_or_claim<'r>(
    run: &'r Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    src_stat: &Stat,
    old: Old,
) -> Result<Name<'r>, Diagnostic> {
    if !has_several_names(run, job, src_stat) {
        return Ok(Name::Own(None));
    }
    let mut lost = None;
    loop {
        match run.links.claim(FileId::of(src_stat), lost.as_ref()) {
            Claim::First(holder) => return Ok(Name::Own(Some(holder))),
            Claim::Before(made) => {
                worker.links_again = true;
                if link_again(run, worker, job, src_stat, &made, old)? {
                    return Ok(Name::Linked);
                }
                lost = Some(made);
            }
        }
    }
}

pub(crate) fn has_several_names(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> bool {
    let copies = matches!(run.options.make, Make::Copy | Make::AttributesOnly);
    // A symbolic link that is followed gives its file one name more than the inode knows of.
    let several = src_stat.st_nlink > 1 || follows(run.options.follow, job.is_top);
    run.options.preserve.links && copies && several && job.home.is_some()
}

/// Whether anything of this run will be held against what is made of a source.
pub(crate) fn matters_who_it_is(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> bool {
    job.is_top || run.options.backup.is_some() || has_several_names(run, job, src_stat)
}

/// Makes the destination another name of the copy that was made before, unless that has lost its name: to
/// a backup, or to what another operand has put there.
fn link_again(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    src_stat: &Stat,
    made: &Made,
    old: Old,
) -> Result<bool, Diagnostic> {
    let error = |errno| Diagnostic::HardLink { src: made.path(), dst: job.dst.path(), errno };
    let same = job.home.is_some_and(|home| home.is(&made.home));
    let from = if same || run.rehearsal.is_some() {
        job.dst.dir
    } else {
        worker.reached.reach(run, &made.home).map_err(error)?
    };
    match link_to_made(run, job, (made, from), old) {
        Err(Errno::STALE | Errno::NOENT) if run.rehearsal.is_none() && made.is_lost(from) => {
            return Ok(false);
        }
        Err(Errno::EXIST) => {
            let stands = job.dst.stat(false).map_err(failed(Action::Stat, &job.dst))?;
            if made.id == FileId::of(&stands) {
                // It is one already.
            } else if run.rehearsal.is_none() && made.is_lost(from) {
                // What stands here must not go before it is sure what comes.
                return Ok(false);
            } else if run.rehearsal.is_some() {
                if !run.options.atomic {
                    existing::remove(run, job)?;
                }
            } else if run.options.atomic {
                special::replace_by(run, &job.src, &job.dst, |beside| made.link_to(beside, from))
                    .map_err(error)?;
            } else {
                existing::remove(run, job)?;
                made.link_to(&job.dst, from).map_err(error)?;
            }
        }
        result => result.map_err(error)?,
    }
    remember(run, job, made.id);
    if run.observer.keeps_receipts() {
        job.finish(run, job.receipt(kind(src_stat), Method::Linked));
    }
    Ok(true)
}

/// Links to `made`. In a rehearsal only what stands in the way is looked at.
fn link_to_made(
    run: &Run<'_>,
    job: &Job<'_>,
    (made, from): (&Made, BorrowedFd<'_>),
    old: Old,
) -> io::Result<()> {
    match (&run.rehearsal, old) {
        (None, _) => made.link_to(&job.dst, from),
        (Some(_), Old::Nothing) => Ok(()),
        (Some(_), Old::Stands | Old::GivesWay) => Err(Errno::EXIST),
    }
}

/// A destination that is up to date stays, yet the names of one source become names of one copy.
fn link_up_to_date(
    run: &Run<'_>,
    worker: &mut Worker,
    job: &Job<'_>,
    src_stat: &Stat,
    verified: Option<Verified>,
) -> Result<Next, Diagnostic> {
    if src_stat.st_nlink < 2 {
        return Ok(skipped_as(run, job, src_stat, verified));
    }
    let stands = job.dst.stat(false).map_err(failed(Action::Stat, &job.dst))?;
    let Name::Own(holder) = link_or_claim(run, worker, job, src_stat, Old::Stands)? else {
        return Ok(Next::Done);
    };
    if let (Some(holder), Some(home)) = (holder, job.home)
        && !is_symlink(&stands)
    {
        holder.settle(home, job.dst.name, FileId::of(&stands));
    }
    Ok(skipped_as(run, job, src_stat, verified))
}

/// Leaves the destination as it is.
pub(crate) fn skipped(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> Next {
    skipped_as(run, job, src_stat, None)
}

/// The same of what proved to be its source's equal, if it did.
fn skipped_as(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat, verified: Option<Verified>) -> Next {
    if run.observer.keeps_receipts() {
        job.finish(run, Receipt { verified, ..job.receipt(kind(src_stat), Method::Skipped) });
    }
    Next::Done
}

fn restore(run: &Run<'_>, job: &Job<'_>, backup: &BackedUp) {
    if let Err(errno) = backup.undo(run, &job.dst) {
        run.report(failed(Action::UnBackup, &job.dst)(errno));
    } else {
        run.announce(|| Announcement::Restored {
            backup: backup.path.clone(),
            dst: job.dst.path(),
        });
    }
}
