//! The walk through a tree: one frame a directory on an explicit stack, so that the depth of the
//! tree is not the depth of calls.
//!
//! One worker starts, and copies a small tree alone ([`super::single_worker`]). Later workers take
//! names from directories that others have open ([`super::work_pool`]). The worker that entered a
//! directory finishes it and sets its attributes after the last of its entries is copied; until
//! then it copies entries of others.
//!
//! A limited number of directories is open at once ([`super::stack`]).

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};

use rustix::fs::FileType;

use super::opened_places::OpenedPlaces;
use super::partner_shares::{is_shareable, place_in};
use super::resource_limits::{ResourceLimits, worker_limits};
use super::single_worker::{Bounds, CONTENDED, alone_within, first_bounds};
use super::stack::{Frame, Stack, reopen_top};
use super::tree_walk::TreeWalk;
use super::work_pool::{Taken, WorkPool, WorkShare};
use crate::copy::context::CopyWorker;
use crate::copy::directory::{self, Next};
use crate::copy::directory_pair::DirectoryPair;
use crate::destination::context::CopyContext;
use crate::entry::ListedEntry;
use crate::fs::{BTRFS, Listing, XFS, fs_type_of};
use crate::lock::OnDrop;
use crate::report::{Action, Diagnostic};
use crate::request::{Make, Options, Reflink};

/// Copies everything below `root`.
pub(crate) fn walk(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    (root, listing): (Arc<DirectoryPair>, Listing),
) {
    if cx.partners.exist {
        return walk_with_partners(cx, worker, Some((root, listing)));
    }
    let open_levels = ResourceLimits::of_process(cx.options, 1).open_levels;
    let places = OpenedPlaces::default();
    let has_workers = cx.options.jobs.is_none_or(|jobs| jobs.get() > 1);
    let gives_files = has_workers && may_give_files(cx.options);
    let single =
        TreeWalk { cx, open_levels, batch_files: 1, gives_files, pool: None, places: &places };
    let mut stack = Stack::new(worker);
    stack.push(Frame::of_directory(root, listing), open_levels);
    single.copy_alone(&mut stack, first_bounds(cx.options));
    if stack.frames.is_empty() {
        return stack.assert_done();
    }
    let (limits, resources) = ResourceLimits::for_workers(worker_limits(cx.options), |workers| {
        let workers = if cx.options.copies_in_order() { 1 } else { workers };
        ResourceLimits::of_process(cx.options, workers)
    });
    let top = &stack.frames[0].pair;
    if limits.most > 1 && !cx.report.is_deferred_init_done() && top.src.is_open() {
        resources.grow_descriptor_table(limits.most, top.src.fd());
    }
    cx.report.deferred_init();
    if limits.most == 1 {
        let single = TreeWalk { gives_files: false, ..single };
        for file in std::mem::take(&mut stack.given) {
            single.copy_given(&mut stack, file);
        }
        single.copy_frames(&mut stack, |_| true);
        return stack.assert_done();
    }
    let fs_type = cx.options.jobs.is_none().then(|| fs_type_of(top.dst.fd())).flatten();
    let limits = match fs_type {
        // All changes in one subvolume change one tree, and a worker that waits for its lock is
        // woken late.
        Some(BTRFS) => limits.one_at_first(),
        // Threads of the kernel remove the old files later, under the locks under which inodes are
        // created, so that no window of the copy shows the cost. Two workers took 1.2 of the time
        // of one (two processors, 10,000 small files).
        Some(XFS) if cx.options.remove_destination && !top.facts.new => limits.one_unless_waiting(),
        _ => limits,
    };
    let ResourceLimits { open_levels, batch_files, .. } = resources;
    if fs_type == Some(BTRFS) && stack.given.is_empty() {
        // Threads are started only when there is enough to copy to measure whether they help.
        TreeWalk { open_levels, batch_files, ..single }.copy_alone(&mut stack, CONTENDED);
        if stack.frames.is_empty() {
            return stack.assert_done();
        }
    }
    let pool = WorkPool::new(limits, cx.partners.clone());
    let shared = TreeWalk { pool: Some(&pool), open_levels, batch_files, ..single };
    // The stack may hold shares of the pool.
    let mut stack = stack;
    stack.given.drain(..).for_each(|file| pool.give(file));
    shared.copy_with_others(&pool, &mut stack, true);
    stack.assert_done();
}

/// Copies everything below `root` together with partners. Without a `root`, copies what partners
/// give, until all processes are done.
pub(super) fn walk_with_partners(
    cx: &CopyContext<'_>,
    worker: &mut CopyWorker,
    root: Option<(Arc<DirectoryPair>, Listing)>,
) {
    let (limits, resources) = ResourceLimits::for_workers(worker_limits(cx.options), |workers| {
        ResourceLimits::of_process(cx.options, workers)
    });
    cx.report.deferred_init();
    let ResourceLimits { open_levels, batch_files, .. } = resources;
    let pool = Arc::new(WorkPool::new(limits, cx.partners.clone()));
    let places = OpenedPlaces::default();
    let shared = TreeWalk {
        cx,
        open_levels,
        batch_files,
        gives_files: may_give_files(cx.options),
        pool: Some(&pool),
        places: &places,
    };
    let mut stack = Stack::new(worker);
    let has_root = root.is_some();
    if let Some((root, listing)) = root {
        root.operand.shareable.store(is_shareable(cx, &root), Ordering::Relaxed);
        stack.push(Frame::of_directory(root, listing), open_levels);
    }
    let woken = pool.clone();
    cx.partners.inbox.set_waker(Some(Arc::new(move || woken.wake())));
    shared.copy_with_others(&pool, &mut stack, has_root);
    cx.partners.inbox.set_waker(None);
    pool.hand_back_incoming();
    stack.assert_done();
}

/// Whether another worker may copy a large file.
fn may_give_files(options: &Options) -> bool {
    options.make == Make::Copy && !options.copies_in_order()
}

impl<'w> TreeWalk<'w> {
    /// Starts the workers that the controller wants and that do not run yet.
    fn spawn_workers<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if let Some(pool) = self.pool {
            pool.controller.spawn_workers(scope, || {
                let _worker_guard = pool.count_worker();
                let mut worker = CopyWorker::new(self.cx);
                self.work(pool, scope, &mut Stack::new(&mut worker), false);
                worker.data.release(self.cx.data);
            });
        }
    }

    /// Does the [`work`](TreeWalk::work) of a worker until all workers are done.
    fn copy_with_others(&self, pool: &WorkPool, stack: &mut Stack<'_, 'w>, has_root: bool) {
        thread::scope(|scope| {
            let _worker_guard = pool.count_worker();
            // If this worker panics, the others must not wait for it.
            let _close_guard = OnDrop(|| pool.close());
            self.work(pool, scope, stack, has_root);
        });
    }

    /// Copies what is on the stack and, unless the worker `has_root`, what others give, until there is no more.
    /// Starts other workers as they are wanted.
    fn work<'scope>(
        &'scope self,
        pool: &WorkPool,
        scope: &'scope Scope<'scope, '_>,
        stack: &mut Stack<'_, 'w>,
        has_root: bool,
    ) {
        self.spawn_workers(scope);
        let _busy = pool.controller.processors.busy();
        stack.worker.data.start_sharing(&pool.controller);
        loop {
            self.copy_frames(stack, |_| {
                self.spawn_workers(scope);
                true
            });
            if has_root || !self.take_share(stack, || false) {
                break;
            }
        }
        stack.worker.data.end_sharing();
    }

    /// Waits for names of another worker, unless `is_needless` says that none are needed. Returns
    /// whether there are some.
    fn take_share(&self, stack: &mut Stack<'_, 'w>, is_needless: impl Fn() -> bool) -> bool {
        // A worker with names to give may be waiting for a permit.
        stack.worker.data.permit.release();
        let taken = self.pool.and_then(|pool| pool.take(is_needless));
        match taken {
            None => return false,
            Some(Taken::Share(share, guard)) => {
                stack.push(Frame::of_share(share, guard), self.open_levels);
            }
            Some(Taken::Incoming(incoming, guard)) => {
                let received = self.start_received(stack.worker, incoming, guard);
                received.into_iter().for_each(|frame| stack.push(frame, self.open_levels));
            }
        }
        true
    }

    /// Copies as [`copy_frames`](TreeWalk::copy_frames) does, within `bounds`.
    fn copy_alone(&self, stack: &mut Stack<'_, 'w>, bounds: Bounds) {
        let goes_on = alone_within(bounds, stack.worker);
        self.copy_frames(stack, goes_on);
    }

    /// Copies until `stack` is empty, `may_continue` returns false, or a file is to be given to a
    /// worker that does not exist yet.
    fn copy_frames(&self, stack: &mut Stack<'_, 'w>, may_continue: impl Fn(&CopyWorker) -> bool) {
        // Leaving a directory whose entries are copied needs no other worker.
        while stack.given.is_empty()
            && let Some(frame) = stack.frames.last_mut()
            && (frame.listing.has_ended() || may_continue(stack.worker))
        {
            let worker = &mut *stack.worker;
            let Some((name, listed_as)) = self.next_name(worker, frame) else {
                self.leave_directory(stack);
                continue;
            };
            let place = || place_in(self.cx, &frame.pair);
            let entry = self.child_to_copy(frame, &name, listed_as);
            let entry = ListedEntry { range_place: Some(&place), ..entry };
            // Who gave the file has asked.
            if !frame.is_large_file && entry.is_left_out(self.cx.options, self.cx.report) {
                continue;
            }
            worker.data.permit.acquire();
            let left = if self.may_batch(worker, &entry) {
                self.copy_batch(worker, frame, (name, listed_as))
            } else {
                match self.copy_one(worker, &entry, None) {
                    Next::Done => Vec::new(),
                    next => vec![next],
                }
            };
            if !left.is_empty() {
                // The first may put another directory on the stack.
                let pair = frame.pair.clone();
                left.into_iter().for_each(|next| self.proceed(stack, &pair, next));
            }
            self.give_to_partner(stack);
            if let Some(pool) = self.pool.filter(|pool| pool.idle_workers() > 0)
                && let Some(share) = self.half_of_names(stack)
            {
                pool.give(share);
            }
        }
    }

    /// Does what has to be done after an entry of `pair`.
    fn proceed(&self, stack: &mut Stack<'_, 'w>, pair: &Arc<DirectoryPair>, next: Next) {
        match next {
            Next::Done => (),
            Next::Enter(pair, listing) => {
                stack.push(Frame::of_directory(pair, listing), self.open_levels);
            }
            Next::Give(name, listed_as) => {
                let (pair, names) = (pair.clone(), Listing::of_names(vec![(name, listed_as)]));
                self.give_file(stack, WorkShare { pair, names, is_large_file: true });
            }
        }
    }

    /// The next name in a directory and its type as listed; `None` when there are no more.
    fn next_name(
        &self,
        worker: &mut CopyWorker,
        frame: &mut Frame<'_>,
    ) -> Option<(CString, FileType)> {
        if frame.lost || frame.listing.has_ended() || self.cx.report.interrupted() {
            return None;
        }
        let pair = &frame.pair;
        frame.listing.next(pair.src.fd(), &mut worker.names).unwrap_or_else(|errno| {
            let path = pair.src.dir_path.path();
            let diagnostic = Diagnostic::Failed { action: Action::List, path, errno };
            directory::report_failure(self.cx, &pair.failures, diagnostic);
            None
        })
    }

    /// Gives a large file to another worker, if this one has other names. If not, copies it.
    fn give_file(&self, stack: &mut Stack<'_, 'w>, file: WorkShare) {
        let refused = if self.give_file_to_partner(&file) {
            None
        } else if !stack.has_names() || self.clones(&file.pair) {
            Some(file)
        } else if let Some(pool) = self.pool {
            pool.give_file(file)
        } else if worker_limits(self.cx.options).workers > 1 {
            stack.given.push(file);
            None
        } else {
            Some(file)
        };
        if let Some(file) = refused {
            self.copy_given(stack, file);
        }
    }

    /// Copies a large file that no other worker copies. By now it may be something else, such as a
    /// directory.
    fn copy_given(&self, stack: &mut Stack<'_, 'w>, file: WorkShare) {
        let WorkShare { pair, mut names, .. } = file;
        let Some((name, listed_as)) = names.next_buffered(|_| true) else { return };
        // It is not given again.
        let place = || place_in(self.cx, &pair);
        let entry = self.child(&pair, &name, listed_as);
        let entry = ListedEntry { range_place: Some(&place), ..entry };
        let next = self.copy_one(stack.worker, &entry, None);
        self.proceed(stack, &pair, next);
    }

    /// Whether files are copied as clones, which takes no time that could be shared.
    fn clones(&self, pair: &DirectoryPair) -> bool {
        let is_one_fs = pair.src.id().dev == pair.dst.id().dev;
        is_one_fs
            && self.cx.options.reflink != Reflink::Never
            && self.cx.options.engine.is_none()
            && matches!(fs_type_of(pair.dst.fd()), Some(BTRFS | XFS))
    }

    /// Takes half of the buffered names out of the directory nearest to the top that has any.
    fn half_of_names(&self, stack: &mut Stack<'_, '_>) -> Option<WorkShare> {
        stack.giving(self.open_levels).find_map(|(is_top, frame)| {
            // This worker keeps one name, unless it has a directory to continue with.
            let kept = usize::from(is_top);
            (frame.listing.buffered() > kept).then(|| {
                let names = frame.listing.give_half(kept);
                WorkShare { pair: frame.pair.clone(), names, is_large_file: false }
            })
        })
    }

    /// Leaves the directory on top of the stack and sets its attributes. As long as other workers
    /// have names from it, this worker copies names from directories above, or takes some of
    /// theirs.
    fn leave_directory(&self, stack: &mut Stack<'_, 'w>) {
        self.pool.inspect(|pool| pool.receive());
        let Some(frame) = stack.frames.last_mut() else { return };
        if frame.share_guard.is_none() && frame.unshared().is_none() {
            let pair = frame.pair.clone();
            if let Some(share_guard) = self.pool.and_then(WorkPool::count_own)
                && let Some(share) = self.half_of_names(stack)
            {
                stack.push(Frame::of_share(share, share_guard), self.open_levels);
                return;
            }
            // Two references are left when no other worker has it: the frame's and this clone.
            self.take_share(stack, || Arc::strong_count(&pair) == 2);
            return;
        }
        let Some(frame) = stack.frames.pop() else { return };
        stack.forget_popped();
        if frame.share_guard.is_some() {
            return;
        }
        if !stack.frames.is_empty() {
            reopen_top(self.cx, &mut stack.frames, &frame.pair);
        }
        if frame.lost {
            directory::give_up(self.cx, &frame.pair);
        } else {
            directory::finish(self.cx, stack.worker, &frame.pair);
        }
    }
}
