//! The walk through a tree: one frame a directory, on a stack of our own, so that no depth of the
//! tree is a depth of calls.
//!
//! It begins with one worker, and a small tree ends so. When there is more to do, others join, and
//! take names off the directories that are open (`pool.rs`). A directory is finished, and gets its
//! attributes, by the worker who entered it, when the last of those who took names from it is done;
//! until then that worker helps others.
//!
//! Only so many directories are open at once. One that is too far above is closed, and gained again
//! through `..` of the one below it, where it must prove to be the same by device and inode number.

use std::ffi::CString;
use std::sync::Arc;
use std::thread::{self, Scope};

use rustix::fs::FileType;

use super::resource_limits::{ResourceLimits, worker_limits};
use super::single_worker::SingleWorkerPhase;
use super::stack::{Frame, Stack, reopen_top};
use super::tree_walk::TreeWalk;
use super::work_pool::{WorkPool, WorkShare};
use super::worker::Worker;
use crate::concurrency::Permit;
use crate::copy::context::CopyContext;
use crate::copy::directory;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::entry::Next;
use crate::entry::{Operand, is_left_out};
use crate::fs::{BTRFS, FileId, Listing, XFS, file_system};
use crate::report::{Action, Diagnostic};
use crate::request::Options;

/// Whether files of the destination are removed for others. The kernel's own threads take those longer
/// on xfs, under the locks under which inodes are made: two workers and they take a fifth longer than
/// one (two processors, 10,000 small files), and no window of the copy shows it, since they come later.
fn removes(options: &Options, root: &DirectoryPair) -> bool {
    options.remove_destination && !root.new
}

/// Copies everything below `root`.
pub(crate) fn walk(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    operand: &Operand,
    (root, listing): (Arc<DirectoryPair>, Listing),
) {
    let device = cx.options.one_file_system.then(|| FileId::of(&root.src_stat).dev);
    let open_levels = ResourceLimits::of_process(cx.options, 1).open_levels;
    let pool;
    let single = TreeWalk { cx, operand, device, open_levels, batch_files: 1, pool: None };
    let mut stack = Stack::default();
    stack.frames.push(Frame { pair: root, listing, lost: false, share_guard: None });
    let phase = SingleWorkerPhase::from_now(cx.options, worker);
    single.go(worker, &mut stack, |worker| !phase.is_over(worker));
    if let Some(phase) = SingleWorkerPhase::for_the_last(cx.options, worker, stack.names_buffered())
    {
        single.go(worker, &mut stack, |worker| !phase.is_over(worker));
    }
    if stack.frames.is_empty() {
        return;
    }
    let (limits, resources) = ResourceLimits::for_limits(worker_limits(cx.options), |workers| {
        ResourceLimits::of_process(
            cx.options,
            if cx.options.copies_in_order() { 1 } else { workers },
        )
    });
    let top = &stack.frames[0].pair;
    if limits.most > 1 && !cx.report.is_deferred_init_done() && top.src.is_open() {
        resources.make_room(limits.most, top.src.fd());
    }
    cx.report.deferred_init();
    if limits.most == 1 {
        return single.go(worker, &mut stack, |_| true);
    }
    let kind = cx.options.jobs.is_none().then(|| file_system(top.dst.fd())).flatten();
    let limits = match kind {
        // All that is made in one of its subvolumes changes one tree, and who finds that locked is woken
        // late.
        Some(BTRFS) => limits.one_at_first(),
        Some(XFS) if removes(cx.options, top) => limits.one_unless_waiting(),
        _ => limits,
    };
    let ResourceLimits { open_levels, batch_files, .. } = resources;
    if kind == Some(BTRFS) {
        // Nor are threads made before there is enough to tell whether they help.
        let phase = SingleWorkerPhase::for_longer(worker);
        let longer = TreeWalk { open_levels, batch_files, ..single };
        longer.go(worker, &mut stack, |worker| !phase.is_over(worker));
        if stack.frames.is_empty() {
            return;
        }
    }
    pool = WorkPool::new(limits);
    let shared = TreeWalk { pool: Some(&pool), open_levels, batch_files, ..single };
    thread::scope(|scope| {
        shared.spawn_workers(scope);
        // Should this worker panic, the others must not wait for it.
        let _closing = Closing(&pool);
        worker.copy.data.permit = Permit::at(&pool.controller);
        shared.go(worker, &mut stack, |_| shared.spawn_workers(scope));
        worker.copy.data.permit = Permit::default();
    });
}

/// Closes the pool on every way out.
struct Closing<'p>(&'p WorkPool);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<'w> TreeWalk<'w> {
    /// Has as many workers join as there are to be. Says that whoever asks may go on.
    fn spawn_workers<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> bool {
        if let Some(pool) = self.pool {
            pool.controller.spawn_workers(scope, || self.run_worker(scope));
        }
        true
    }

    /// What a worker does who joins: others' work, until there is no more.
    fn run_worker<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut worker = Worker::new(self.cx);
        let mut stack = Stack::default();
        worker.copy.data.permit =
            self.pool.map_or_else(Permit::default, |pool| Permit::at(&pool.controller));
        while self.take_share(&mut worker, &mut stack, || false) {
            self.go(&mut worker, &mut stack, |_| self.spawn_workers(scope));
        }
        worker.copy.data.permit.release();
        worker.copy.data.release(self.cx.data);
    }

    /// Takes names from another worker, unless `done` says first that they are not needed. Returns
    /// whether it has some.
    fn take_share(
        &self,
        worker: &mut Worker,
        stack: &mut Stack<'w>,
        done: impl Fn() -> bool,
    ) -> bool {
        // Those who have something to give may be waiting for their turn.
        worker.copy.data.permit.release();
        let Some((share, share_guard)) = self.pool.and_then(|pool| pool.take(done)) else {
            return false;
        };
        let (pair, listing) = (share.pair, share.names);
        stack.frames.push(Frame { pair, listing, lost: false, share_guard: Some(share_guard) });
        true
    }

    /// Works until `stack` is empty or `on` says no.
    fn go(&self, worker: &mut Worker, stack: &mut Stack<'w>, on: impl Fn(&Worker) -> bool) {
        // Whoever has only to leave needs no help with that.
        while let Some(frame) = stack.frames.last_mut()
            && (frame.listing.has_ended() || on(worker))
        {
            let Some((name, kind)) = self.next_name(worker, frame) else {
                self.leave(worker, stack);
                continue;
            };
            if let Some(pool) = self.pool {
                worker.copy.data.others_busy = pool.idle_workers() == 0;
            }
            let entry = self.child(&frame.pair, &name, kind);
            if is_left_out(self.cx.options, self.cx.report, &entry) {
                continue;
            }
            worker.copy.data.permit.acquire();
            let next = if self.may_batch(worker, &entry) {
                self.copy_batch(worker, frame, (name, kind))
            } else {
                self.copy_one(worker, &entry, None)
            };
            if let Next::Enter(pair, listing) = next {
                stack.frames.push(Frame { pair, listing, lost: false, share_guard: None });
                stack.close_far_above(self.open_levels);
            }
            self.share(stack);
        }
    }

    /// The next name in a directory, and what the directory says it is; `None` when there are no
    /// more.
    fn next_name(&self, worker: &mut Worker, frame: &mut Frame<'_>) -> Option<(CString, FileType)> {
        if frame.lost || frame.listing.has_ended() || self.cx.report.interrupted() {
            return None;
        }
        let pair = &frame.pair;
        frame.listing.next(pair.src.fd(), &mut worker.buffer).unwrap_or_else(|errno| {
            let path = pair.src.dir_path.path();
            let diagnostic = Diagnostic::Failed { action: Action::List, path, errno };
            directory::report_failure(self.cx, &pair.failures, diagnostic);
            None
        })
    }

    /// Gives names to a worker who has none: half of those in hand, from as near to the top as
    /// there are any.
    fn share(&self, stack: &mut Stack<'_>) {
        let Some(pool) = self.pool.filter(|pool| pool.idle_workers() > 0) else { return };
        let Some(top) = stack.frames.len().checked_sub(1) else { return };
        // Those between are closed, but for a few.
        let near = top.saturating_sub(self.open_levels).max(1);
        for level in std::iter::once(0).chain(near..=top) {
            let Some(frame) = stack.frames.get_mut(level) else { return };
            let is_open = frame.pair.src.is_open() && frame.pair.dst.is_open();
            // This worker needs one as well, unless it has a directory to go on with.
            let keeps = usize::from(level == top);
            if frame.lost || !is_open || frame.listing.buffered() <= keeps {
                continue;
            }
            let names = frame.listing.give_half(keeps);
            return pool.give(WorkShare { pair: frame.pair.clone(), names });
        }
    }

    /// Leaves the directory on top of the stack for the one below it, and sets its attributes. While
    /// others still have names from it, this worker takes some of theirs.
    fn leave(&self, worker: &mut Worker, stack: &mut Stack<'w>) {
        let Some(frame) = stack.frames.last_mut() else { return };
        if frame.share_guard.is_none() && frame.sole().is_none() {
            let pair = frame.pair.clone();
            // This very clone is the second.
            self.take_share(worker, stack, || Arc::strong_count(&pair) == 2);
            return;
        }
        let Some(frame) = stack.frames.pop() else { return };
        stack.forget_above();
        if frame.share_guard.is_some() {
            return;
        }
        if !stack.frames.is_empty() {
            reopen_top(self.cx, &mut stack.frames, &frame.pair);
        }
        if frame.lost {
            directory::give_up(self.cx, &frame.pair);
        } else {
            directory::finish(self.cx, &frame.pair);
        }
    }
}
