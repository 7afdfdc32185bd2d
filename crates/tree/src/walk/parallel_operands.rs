//! Several operands that go into one directory. Order decides much among them: a second file of one
//! name is refused, a link may lead to what the next one replaces, a source may be what the one before
//! it made. It decides nothing among regular files that get names which nobody has: none of them is
//! touched by the copy of another. Such ones, when there are many, are shared among workers; whatever
//! else stands between them waits for those before it, and those after it wait for that.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};

use rustix::fs::{Access, AtFlags, CWD, accessat, statat};
use rustix::io::Errno;

use super::resource_limits::{ResourceLimits, worker_limits};
use super::single_worker::SingleWorkerPhase;
use super::worker::Worker;
use crate::concurrency::{ConcurrencyController, EntryCost, OpenOnDrop, Permit};
use crate::copy::context::CopyContext;
use crate::entry::source_name;
use crate::fs::{c_name, is_regular, last_component};

/// Fewer in a row are not worth a thread.
const PARALLEL_MIN: usize = 32;

/// Copies each of `sources` into the directory `target`, with `copy`.
pub(crate) fn copy_each(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    target: BorrowedFd<'_>,
    sources: &[OsString],
    copy: &(dyn Fn(&mut Worker, &OsStr) + Sync),
) {
    let phase = SingleWorkerPhase::from_now(cx.options, worker);
    let mut rest = sources;
    // One who has written nothing yet need not ask whether others could.
    let mut may_share = sources.len() > PARALLEL_MIN && !cx.options.copies_in_order();
    may_share &= !cx.options.parents && !cx.options.dry_run;
    while !rest.is_empty() && !cx.report.interrupted() {
        let may_last = phase.is_over(worker);
        if may_last {
            cx.report.deferred_init();
        }
        let mut parallel = 0;
        if may_share && may_last && rest.len() >= PARALLEL_MIN {
            may_share = may_fill(target);
            parallel = if may_share { independent(cx, target, rest) } else { 0 };
        }
        let (now, later) = rest.split_at(parallel.max(1));
        if parallel < PARALLEL_MIN {
            one_by_one(cx, worker, now, copy);
        } else {
            share_operands(cx, worker, now, copy);
        }
        rest = later;
    }
}

fn one_by_one(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    sources: &[OsString],
    copy: &(dyn Fn(&mut Worker, &OsStr) + Sync),
) {
    for source in sources {
        if cx.report.interrupted() {
            return;
        }
        worker.entries += 1;
        copy(worker, source);
    }
}

/// Has several workers take one after the other.
fn share_operands(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    sources: &[OsString],
    copy: &(dyn Fn(&mut Worker, &OsStr) + Sync),
) {
    cx.report.deferred_init();
    // What is yet to be said of those before has its place before what is said of these.
    worker.copy.data.sync(cx.data);
    let limits = worker_limits(cx.options);
    let limits = limits
        .within(ResourceLimits::of_process(cx.options, limits.most).workers.min(sources.len()));
    let next = AtomicUsize::new(0);
    let shared = Shared {
        cx,
        sources,
        copy,
        next,
        controller: Arc::new(ConcurrencyController::new(limits)),
    };
    thread::scope(|scope| {
        let _opening = OpenOnDrop(&shared.controller);
        shared.work(worker, scope);
    });
    // And of these before what is said of the next.
    worker.copy.data.sync(cx.data);
    cx.report.order.flush(cx.report.observer);
    worker.copy.data.others_busy = false;
}

/// Operands that several workers take.
struct Shared<'s> {
    cx: &'s CopyContext<'s>,
    sources: &'s [OsString],
    copy: &'s (dyn Fn(&mut Worker, &OsStr) + Sync),
    /// The first that nobody has taken.
    next: AtomicUsize,
    controller: Arc<ConcurrencyController>,
}

impl Shared<'_> {
    /// What each worker does: takes one after the other, and has others join where that helps.
    fn work<'scope>(&'scope self, worker: &mut Worker, scope: &'scope Scope<'scope, '_>) {
        worker.copy.data.permit = Permit::at(&self.controller);
        loop {
            self.spawn_workers(scope);
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = self.sources.get(at) else { break };
            if self.cx.report.interrupted() {
                break;
            }
            // A large file among the last may be shared by those who have none.
            worker.copy.data.others_busy = self.next.load(Ordering::Relaxed) < self.sources.len();
            worker.entries += 1;
            worker.copy.data.permit.acquire();
            let moved_before = worker.copy.data.moved_bytes;
            self.cx
                .report
                .order
                .for_operand(self.cx.report.observer, at, || (self.copy)(worker, source));
            let work =
                EntryCost { bytes: worker.copy.data.moved_bytes - moved_before, created: false };
            worker.copy.data.permit.record(work, !worker.copy.data.others_busy);
        }
        worker.copy.data.permit = Permit::default();
    }

    fn spawn_workers<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        self.controller.spawn_workers(scope, || {
            let mut worker = Worker::new(self.cx);
            self.work(&mut worker, scope);
            worker.copy.data.release(self.cx.data);
        });
    }
}

/// Whether files can be made in `target`. Where they cannot, what is said of each should come in order.
fn may_fill(target: BorrowedFd<'_>) -> bool {
    accessat(target, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// How many of the first `sources` are such that no copy has to do with another.
fn independent(cx: &CopyContext<'_>, target: BorrowedFd<'_>, sources: &[OsString]) -> usize {
    let mut names = HashSet::new();
    let stands_phase = |source: &&OsString| {
        let source = source_name(cx.options, source);
        let name = last_component(source);
        // Some directories take names for one that differ in case.
        let folded = String::from_utf8_lossy(name).to_lowercase();
        let (Ok(source), Ok(name)) = (c_name(source), c_name(name)) else { return false };
        names.insert(folded) && can_be_read(cx, &source) && is_free(target, &name)
    };
    sources.iter().take_while(stands_phase).count()
}

/// What cannot be read is told of in order.
fn can_be_read(cx: &CopyContext<'_>, source: &CStr) -> bool {
    let found = statat(CWD, source, AtFlags::SYMLINK_NOFOLLOW);
    let readable = || {
        cx.security().caller.is_root()
            || accessat(CWD, source, Access::READ_OK, AtFlags::EACCESS).is_ok()
    };
    found.is_ok_and(|stat| is_regular(&stat)) && readable()
}

fn is_free(target: BorrowedFd<'_>, name: &CStr) -> bool {
    let found = statat(target, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_err_and(|errno| errno == Errno::NOENT)
}
