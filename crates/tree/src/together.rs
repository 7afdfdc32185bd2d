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

use crate::identity::is_regular;
use crate::pace::{Opening, Pace, Turn, Work};
use crate::plan::{c_name, last_component, source_name};
use crate::run::{Run, Worker};
use crate::walk::{Alone, Means, in_order};

/// Fewer in a row are not worth a thread.
const TOGETHER_MIN: usize = 32;

/// Copies each of `sources` into the directory `target`, with `copy`.
pub(crate) fn copy_each(
    run: &Run<'_>,
    worker: &mut Worker,
    target: BorrowedFd<'_>,
    sources: &[OsString],
    copy: &(dyn Fn(&mut Worker, &OsStr) + Sync),
) {
    let alone = Alone::from_now(run.options, worker);
    let mut rest = sources;
    // One who has written nothing yet need not ask whether others could.
    let mut may_share = sources.len() > TOGETHER_MIN && !in_order(run.options);
    may_share &= !run.options.parents && run.rehearsal.is_none();
    while !rest.is_empty() && !run.observer.interrupted() {
        let may_last = alone.is_over(worker);
        if may_last {
            run.begin_in_earnest();
        }
        let mut together = 0;
        if may_share && may_last && rest.len() >= TOGETHER_MIN {
            may_share = may_fill(target);
            together = if may_share { independent(run, target, rest) } else { 0 };
        }
        let (now, later) = rest.split_at(together.max(1));
        if together < TOGETHER_MIN {
            one_by_one(run, worker, now, copy);
        } else {
            share(run, worker, now, copy);
        }
        rest = later;
    }
}

fn one_by_one(
    run: &Run<'_>,
    worker: &mut Worker,
    sources: &[OsString],
    copy: &(dyn Fn(&mut Worker, &OsStr) + Sync),
) {
    for source in sources {
        if run.observer.interrupted() {
            return;
        }
        worker.entries += 1;
        copy(worker, source);
    }
}

/// Has several workers take one after the other.
fn share(
    run: &Run<'_>,
    worker: &mut Worker,
    sources: &[OsString],
    copy: &(dyn Fn(&mut Worker, &OsStr) + Sync),
) {
    run.begin_in_earnest();
    // What is yet to be said of those before has its place before what is said of these.
    worker.sync(run);
    let crew = run.crew();
    let crew = crew.within(Means::of_process(run.options, crew.most).workers.min(sources.len()));
    let next = AtomicUsize::new(0);
    let shared = Shared { run, sources, copy, next, pace: Arc::new(Pace::new(crew)) };
    thread::scope(|scope| {
        let _opening = Opening(&shared.pace);
        shared.work(worker, scope);
    });
    // And of these before what is said of the next.
    worker.sync(run);
    run.order.end(run.observer);
    worker.others_busy = false;
}

/// Operands that several workers take.
struct Shared<'s> {
    run: &'s Run<'s>,
    sources: &'s [OsString],
    copy: &'s (dyn Fn(&mut Worker, &OsStr) + Sync),
    /// The first that nobody has taken.
    next: AtomicUsize,
    pace: Arc<Pace>,
}

impl Shared<'_> {
    /// What each worker does: takes one after the other, and has others join where that helps.
    fn work<'scope>(&'scope self, worker: &mut Worker, scope: &'scope Scope<'scope, '_>) {
        worker.turn = Turn::at(&self.pace);
        loop {
            self.hire(scope);
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = self.sources.get(at) else { break };
            if self.run.observer.interrupted() {
                break;
            }
            // A large file among the last may be shared by those who have none.
            worker.others_busy = self.next.load(Ordering::Relaxed) < self.sources.len();
            worker.entries += 1;
            worker.turn.take();
            let moved_before = worker.moved_bytes;
            self.run.order.about(self.run.observer, at, || (self.copy)(worker, source));
            let work = Work { bytes: worker.moved_bytes - moved_before, made: false };
            worker.turn.count(work, !worker.others_busy);
        }
        worker.turn = Turn::default();
    }

    fn hire<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        self.pace.hire(scope, || {
            let mut worker = Worker::new(self.run);
            self.work(&mut worker, scope);
            worker.release(self.run);
        });
    }
}

/// Whether files can be made in `target`. Where they cannot, what is said of each should come in order.
fn may_fill(target: BorrowedFd<'_>) -> bool {
    accessat(target, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// How many of the first `sources` are such that no copy has to do with another.
fn independent(run: &Run<'_>, target: BorrowedFd<'_>, sources: &[OsString]) -> usize {
    let mut names = HashSet::new();
    let stands_alone = |source: &&OsString| {
        let source = source_name(run.options, source);
        let name = last_component(source);
        // Some directories take names for one that differ in case.
        let folded = String::from_utf8_lossy(name).to_lowercase();
        let (Ok(source), Ok(name)) = (c_name(source), c_name(name)) else { return false };
        names.insert(folded) && can_be_read(run, &source) && is_free(target, &name)
    };
    sources.iter().take_while(stands_alone).count()
}

/// What cannot be read is told of in order.
fn can_be_read(run: &Run<'_>, source: &CStr) -> bool {
    let found = statat(CWD, source, AtFlags::SYMLINK_NOFOLLOW);
    let readable =
        || run.is_root() || accessat(CWD, source, Access::READ_OK, AtFlags::EACCESS).is_ok();
    found.is_ok_and(|stat| is_regular(&stat)) && readable()
}

fn is_free(target: BorrowedFd<'_>, name: &CStr) -> bool {
    let found = statat(target, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_err_and(|errno| errno == Errno::NOENT)
}
