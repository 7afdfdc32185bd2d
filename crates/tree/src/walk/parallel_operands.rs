//! Several operands that are copied into one directory.
//!
//! Their order matters: a second operand of one name is refused, a symbolic link may lead to what a
//! later operand replaces, and an operand may be the copy of an earlier one. It does not matter
//! among regular files whose destination names do not exist. Workers share such operands if many
//! follow each other. Every other operand waits for those before it, and those after it wait for it
//! (docs/design/work-sharing.md).

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::contexts::Worker;
use super::resource_limits::{ResourceLimits, worker_limits};
use super::single_worker::SingleWorkerPhase;
use super::tree_walk::LARGE_FILE_BYTES;
use crate::concurrency::{ConcurrencyController, EntryCost, OpenOnDrop, Permit, ProcessorUse};
use crate::copy::context::CopyContext;
use crate::entry::source_name;
use crate::fs::{c_name, data_bytes, is_regular, last_component, lstat};
use crate::hash::HashSet;

/// Independent operands in a row that are worth starting threads (docs/design/work-sharing.md).
const PARALLEL_MIN: usize = 32;

/// Independent operands in a row that are worth starting threads if the first of them is a large
/// file.
const PARALLEL_LARGE_MIN: usize = 2;

/// Copies one operand with one worker.
type CopyOperand<'c> = &'c (dyn Fn(&mut Worker, &OsStr) + Sync);

/// Copies each of `sources` into the directory `target`, with `copy`.
pub(crate) fn copy_each(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    target: BorrowedFd<'_>,
    sources: &[OsString],
    copy: CopyOperand<'_>,
) {
    let phase = SingleWorkerPhase::first(cx.options, worker);
    let mut rest = sources;
    let mut may_share = sources.len() >= PARALLEL_LARGE_MIN
        && !cx.options.copies_in_order()
        && !cx.options.parents
        && !cx.options.dry_run;
    while !rest.is_empty() && !cx.report.interrupted() {
        let is_long = phase.is_over(worker);
        if is_long {
            cx.report.deferred_init();
        }
        let parallel_min = match may_share && rest.len() >= PARALLEL_LARGE_MIN {
            true if is_large(cx, &rest[0]) => PARALLEL_LARGE_MIN,
            true if is_long => PARALLEL_MIN,
            _ => usize::MAX,
        };
        let mut parallel = 0;
        if rest.len() >= parallel_min {
            may_share = may_create_in(target);
            parallel = if may_share { count_independent(cx, target, rest) } else { 0 };
        }
        let (now, later) = rest.split_at(parallel.max(1));
        if parallel < parallel_min {
            copy_in_order(cx, worker, now, copy);
        } else {
            copy_in_parallel(cx, worker, now, copy);
        }
        rest = later;
    }
}

fn copy_in_order(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    sources: &[OsString],
    copy: CopyOperand<'_>,
) {
    for source in sources {
        if cx.report.interrupted() {
            return;
        }
        worker.entries += 1;
        copy(worker, source);
    }
}

fn copy_in_parallel(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    sources: &[OsString],
    copy: CopyOperand<'_>,
) {
    cx.report.deferred_init();
    // Messages about earlier operands come before those about these.
    worker.copy.data.sync(cx.data);
    let limits = worker_limits(cx.options);
    let workers = ResourceLimits::of_process(cx.options, limits.most).workers.min(sources.len());
    let controller = Arc::new(ConcurrencyController::new(limits.within(workers)));
    let (next, processors) = (AtomicUsize::new(0), ProcessorUse::counted());
    let shared = Shared { cx, sources, copy, next, controller, processors };
    thread::scope(|scope| {
        let _open_guard = OpenOnDrop(&shared.controller);
        shared.work(worker, scope);
    });
    // And messages about these before those about later ones.
    worker.copy.data.sync(cx.data);
    cx.report.order.flush(cx.report.observer);
}

/// Operands that several workers copy.
struct Shared<'s> {
    cx: &'s CopyContext<'s>,
    sources: &'s [OsString],
    copy: CopyOperand<'s>,
    /// Index of the next operand that no worker has taken.
    next: AtomicUsize,
    controller: Arc<ConcurrencyController>,
    processors: ProcessorUse,
}

impl Shared<'_> {
    /// Copies one operand after the other, and starts other workers where the controller wants
    /// them.
    fn work<'scope>(&'scope self, worker: &mut Worker, scope: &'scope Scope<'scope, '_>) {
        let _busy = self.processors.busy();
        worker.copy.data.start_sharing(Permit::new(&self.controller), &self.processors);
        loop {
            self.spawn_workers(scope);
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = self.sources.get(index) else { break };
            if self.cx.report.interrupted() {
                break;
            }
            worker.entries += 1;
            worker.copy.data.permit.acquire();
            let moved_before = worker.copy.data.moved_bytes;
            let report = self.cx.report;
            report.order.for_operand(report.observer, index, || (self.copy)(worker, source));
            let data = &worker.copy.data;
            let cost = EntryCost { bytes: data.moved_bytes - moved_before, created: false };
            data.permit.record(cost, self.next.load(Ordering::Relaxed) >= self.sources.len());
        }
        worker.copy.data.end_sharing();
    }

    fn spawn_workers<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        self.controller.spawn_workers(scope, || {
            let mut worker = Worker::new(self.cx);
            self.work(&mut worker, scope);
            worker.copy.data.release(self.cx.data);
        });
    }
}

/// Whether a source is a large file.
fn is_large(cx: &CopyContext<'_>, source: &OsStr) -> bool {
    let Ok(source) = c_name(source_name(cx.options, source)) else { return false };
    let found = lstat(CWD, &*source);
    found.is_ok_and(|stat| is_regular(&stat) && data_bytes(&stat) >= LARGE_FILE_BYTES)
}

/// Whether files can be created in `target`. If not, errors are reported in the order of operands.
fn may_create_in(target: BorrowedFd<'_>) -> bool {
    accessat(target, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// How many of the first `sources` can be copied in any order.
fn count_independent(cx: &CopyContext<'_>, target: BorrowedFd<'_>, sources: &[OsString]) -> usize {
    let mut names = HashSet::default();
    let is_independent = |source: &&OsString| {
        let source = source_name(cx.options, source);
        let name = last_component(source);
        // Some directories ignore the case of names.
        let folded = String::from_utf8_lossy(name).to_lowercase();
        let (Ok(source), Ok(name)) = (c_name(source), c_name(name)) else { return false };
        names.insert(folded) && can_be_read(cx, &source) && is_absent(target, &name)
    };
    sources.iter().take_while(is_independent).count()
}

/// Errors about sources that cannot be read are reported in order.
fn can_be_read(cx: &CopyContext<'_>, source: &CStr) -> bool {
    let found = lstat(CWD, source);
    let readable = || {
        cx.security().caller.is_root()
            || accessat(CWD, source, Access::READ_OK, AtFlags::EACCESS).is_ok()
    };
    found.is_ok_and(|stat| is_regular(&stat)) && readable()
}

fn is_absent(target: BorrowedFd<'_>, name: &CStr) -> bool {
    lstat(target, name).is_err_and(|errno| errno == Errno::NOENT)
}
