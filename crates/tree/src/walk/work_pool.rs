//! Work that passes from one worker to another: names in a directory that is being copied.
//!
//! Every worker walks depth first on its own. One that runs out of work waits here; a busy one
//! sees that somebody is waiting, and gives away half of the names that it has read from the
//! directory nearest to the top of its tree, where the most work hangs. So the workers' trees stay
//! disjoint, nothing is queued that nobody waits for, and one flat directory is split among all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::concurrency::{ConcurrencyController, WorkerLimits};
use crate::copy::directory_pair::DirectoryPair;
use crate::fs::Listing;
use crate::lock::lock;

/// Names in a directory, for whoever takes them.
pub(crate) struct WorkShare {
    pub(crate) pair: Arc<DirectoryPair>,
    pub(crate) names: Listing,
}

/// Where the workers of one walk meet.
pub(crate) struct WorkPool {
    state: Mutex<State>,
    changed: Condvar,
    /// Workers that wait and for whom nothing lies ready. A busy worker looks at it after each
    /// entry, so it can be read without the lock.
    idle_workers: AtomicUsize,
    /// How many of them work at once.
    pub(crate) controller: Arc<ConcurrencyController>,
}

#[derive(Default)]
struct State {
    ready: Vec<WorkShare>,
    waiting: usize,
    /// Shares given and not yet done with. Each keeps two descriptors from being closed.
    outstanding: usize,
    outstanding_max: usize,
    closed: bool,
}

/// A share in hand. When it is dropped its lender is told.
pub(crate) struct ShareGuard<'p>(&'p WorkPool);

/// Shares on their way, for each worker.
pub(crate) const SHARES_PER_WORKER: usize = 4;

impl WorkPool {
    pub(crate) fn new(limits: WorkerLimits) -> WorkPool {
        let state = State { outstanding_max: limits.most * SHARES_PER_WORKER, ..State::default() };
        WorkPool {
            state: Mutex::new(state),
            changed: Condvar::new(),
            idle_workers: AtomicUsize::new(0),
            controller: Arc::new(ConcurrencyController::new(limits)),
        }
    }

    /// How many workers wait in vain.
    pub(crate) fn idle_workers(&self) -> usize {
        self.idle_workers.load(Ordering::Relaxed)
    }

    /// Gives names away.
    pub(crate) fn give(&self, share: WorkShare) {
        let mut state = lock(&self.state);
        state.ready.push(share);
        state.outstanding += 1;
        self.recount(&state);
        self.changed.notify_all();
    }

    /// Waits for a share, until `done` says that none is needed any more, or the pool is closed.
    pub(crate) fn take(&self, done: impl Fn() -> bool) -> Option<(WorkShare, ShareGuard<'_>)> {
        let mut state = lock(&self.state);
        loop {
            if done() {
                return None;
            }
            if let Some(share) = state.ready.pop() {
                self.recount(&state);
                return Some((share, ShareGuard(self)));
            }
            if state.closed {
                return None;
            }
            state.waiting += 1;
            self.recount(&state);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
            self.recount(&state);
        }
    }

    /// Sends those who wait home.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
        self.controller.open();
    }

    fn recount(&self, state: &State) {
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
        self.0.recount(&state);
        self.0.changed.notify_all();
    }
}
