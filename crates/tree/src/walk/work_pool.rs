//! How work passes from one worker to another: names in a directory that is being copied.
//!
//! Each worker walks depth first on its own. A worker without work waits here. A busy worker that
//! sees one waiting gives away half of the names that it has read, from the directory nearest to
//! the top of its tree, below which most work is left. There is no queue, and no list of the tree
//! (docs/design/work-sharing.md).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::concurrency::{ConcurrencyController, WorkerLimits};
use crate::copy::directory_pair::DirectoryPair;
use crate::fs::Listing;
use crate::hash::HashMap;
use crate::lock::{OnDrop, lock};
use crate::shared::messages::{Work, decode};
use crate::shared::{Event, Load, PartnerContext, ShareEnd};

/// Names in a directory that one worker gives to another.
pub(crate) struct WorkShare {
    pub(crate) pair: Arc<DirectoryPair>,
    pub(crate) names: Listing,
    /// The only name is that of a large file, which the next worker copies itself.
    pub(crate) is_large_file: bool,
}

/// The shares of the workers of one walk.
pub(crate) struct WorkPool {
    state: Mutex<State>,
    changed: Condvar,
    /// Workers that wait and for which no share is ready. Busy workers read it after each entry,
    /// without the lock.
    idle_workers: AtomicUsize,
    pub(crate) controller: Arc<ConcurrencyController>,
    partners: Arc<PartnerContext>,
}

/// Names that a partner gave, which are not opened yet.
pub(super) struct Incoming {
    pub(super) share: u64,
    pub(super) home: u32,
    pub(super) work: Vec<u8>,
}

/// What a worker without names gets.
pub(super) enum Taken<'p> {
    /// From a worker of this process.
    Share(WorkShare, ShareGuard<'p>),
    /// From a partner.
    Incoming(Incoming, ShareGuard<'p>),
}

#[derive(Default)]
struct State {
    ready: Vec<WorkShare>,
    incoming: VecDeque<Incoming>,
    /// Directories from which partners have names, by the number of the share.
    given: HashMap<u64, Arc<DirectoryPair>>,
    /// Workers that have started and not ended.
    workers: usize,
    /// Partners were told that no worker here has anything to do.
    told_idle: bool,
    waiting: usize,
    /// Shares that were given and are not finished. Each keeps two descriptors open.
    outstanding: usize,
    outstanding_max: usize,
    closed: bool,
}

/// A share that was taken. Dropping it finishes the share.
pub(crate) struct ShareGuard<'p>(&'p WorkPool);

/// Unfinished shares for each worker, at most. It bounds the descriptors that shares keep open.
pub(crate) const SHARES_PER_WORKER: usize = 4;

impl WorkPool {
    pub(crate) fn new(limits: WorkerLimits, partners: Arc<PartnerContext>) -> WorkPool {
        let state = State { outstanding_max: limits.most * SHARES_PER_WORKER, ..State::default() };
        WorkPool {
            state: Mutex::new(state),
            changed: Condvar::new(),
            idle_workers: AtomicUsize::new(0),
            controller: Arc::new(ConcurrencyController::new(limits)),
            partners,
        }
    }

    /// Counts a worker from its start to its end, so that it is known when all of them wait.
    pub(super) fn count_worker(&self) -> OnDrop<impl FnMut()> {
        lock(&self.state).workers += 1;
        OnDrop(|| lock(&self.state).workers -= 1)
    }

    /// Remembers that a partner has names from `pair` until the share `number` returns.
    pub(super) fn note_given(&self, number: u64, pair: Arc<DirectoryPair>) {
        lock(&self.state).given.insert(number, pair);
    }

    /// Wakes workers that wait, after something has arrived from a partner.
    pub(super) fn wake(&self) {
        // Under the lock, so that a worker that has just looked is waiting by now.
        let _state = lock(&self.state);
        self.changed.notify_all();
    }

    /// Gives back what no worker has taken when the walk ends: parts in the copy of an operand that is a file.
    pub(super) fn hand_back_incoming(&self) {
        for Incoming { share, work, .. } in std::mem::take(&mut lock(&self.state).incoming) {
            self.partners.others.end_share(share, ShareEnd::RefusedForNow(work));
        }
    }

    /// Takes what has arrived from partners.
    pub(super) fn receive(&self) {
        self.receive_locked(&mut lock(&self.state));
    }

    fn receive_locked(&self, state: &mut State) {
        while let Some(event) = self.partners.inbox.take_if(|_| true) {
            if self.partners.is_about_offer(&event) {
                self.changed.notify_all();
                continue;
            }
            match event {
                Event::Share { share, home, work } => {
                    state.incoming.push_back(Incoming { share, home, work });
                    state.outstanding += 1;
                }
                Event::Returned(number) => {
                    state.given.remove(&number);
                }
                Event::NotTaken { number, work, refused } => {
                    let pair = state.given.remove(&number).expect("what comes back was given");
                    if refused {
                        // The next partner would have to refuse it as well.
                        pair.returned.store(true, Ordering::Relaxed);
                    }
                    let Some(Work::Names(names)) = decode(&work) else {
                        unreachable!("it is as this process wrote it");
                    };
                    let (names, is_large_file) = (names.listing(), names.is_large_file);
                    state.ready.push(WorkShare { pair, names, is_large_file });
                    state.outstanding += 1;
                }
                Event::End => state.closed = true,
            }
            self.update_idle(state);
            self.changed.notify_all();
        }
    }

    /// How many workers wait for a share that is not there yet.
    pub(crate) fn idle_workers(&self) -> usize {
        self.idle_workers.load(Ordering::Relaxed)
    }

    /// Gives names to a worker that waits for them.
    pub(crate) fn give(&self, share: WorkShare) {
        self.push(&mut lock(&self.state), share);
    }

    /// Gives a large file, whether a worker waits or not. Returns it if too many shares are
    /// unfinished.
    pub(super) fn give_file(&self, file: WorkShare) -> Option<WorkShare> {
        let mut state = lock(&self.state);
        if state.outstanding >= state.outstanding_max {
            return Some(file);
        }
        self.push(&mut state, file);
        None
    }

    /// Counts a share that the caller takes from its own names; `None` if too many are unfinished.
    pub(crate) fn count_own(&self) -> Option<ShareGuard<'_>> {
        let mut state = lock(&self.state);
        if state.outstanding >= state.outstanding_max {
            return None;
        }
        state.outstanding += 1;
        self.update_idle(&state);
        Some(ShareGuard(self))
    }

    fn push(&self, state: &mut State, share: WorkShare) {
        state.ready.push(share);
        state.outstanding += 1;
        self.update_idle(state);
        self.changed.notify_all();
    }

    /// Waits for a share, until `is_needless` returns true or the pool is closed.
    pub(super) fn take(&self, is_needless: impl Fn() -> bool) -> Option<Taken<'_>> {
        let mut state = lock(&self.state);
        loop {
            self.receive_locked(&mut state);
            if is_needless() {
                self.tell_busy(&mut state);
                return None;
            }
            if let Some(share) = state.ready.pop() {
                self.update_idle(&state);
                self.tell_busy(&mut state);
                return Some(Taken::Share(share, ShareGuard(self)));
            }
            if let Some(incoming) = state.incoming.pop_front() {
                self.tell_busy(&mut state);
                return Some(Taken::Incoming(incoming, ShareGuard(self)));
            }
            if state.closed {
                return None;
            }
            state.waiting += 1;
            self.update_idle(&state);
            if state.waiting == state.workers && !state.told_idle {
                state.told_idle = true;
                self.partners.others.tell(Load::Idle);
            }
            state = self
                .controller
                .processors
                .idle_during(|| self.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
            state.waiting -= 1;
            self.update_idle(&state);
        }
    }

    /// Tells partners that a worker here has something to do again.
    fn tell_busy(&self, state: &mut State) {
        if std::mem::take(&mut state.told_idle) {
            self.partners.others.tell(Load::Busy);
        }
    }

    /// Ends the waiting of all workers.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
        self.controller.open();
    }

    fn update_idle(&self, state: &State) {
        let idle_workers = match state.outstanding < state.outstanding_max {
            true => state.waiting.saturating_sub(state.ready.len()),
            false => 0,
        };
        self.idle_workers.store(idle_workers, Ordering::Relaxed);
    }
}

impl Drop for ShareGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.outstanding -= 1;
        self.0.update_idle(&state);
        self.0.changed.notify_all();
    }
}
