//! Work that passes from one worker to another: names in a directory that is being copied.
//!
//! Every worker walks depth first on its own. One that runs out of work waits here; a busy one
//! sees that somebody is waiting, and gives away half of the names that it has read from the
//! directory nearest to the top of its tree, where the most work hangs. So the workers' trees stay
//! disjoint, nothing is queued that nobody waits for, and one flat directory is split among all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::listing::Listing;
use crate::lock::lock;
use crate::pace::{Crew, Pace};
use crate::walk::DirTask;

/// Names in a directory, for whoever takes them.
pub(crate) struct Share {
    pub(crate) task: Arc<DirTask>,
    pub(crate) names: Listing,
}

/// Where the workers of one walk meet.
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    /// Workers that wait and for whom nothing lies ready. A busy worker looks at it after each
    /// entry, so it can be read without the lock.
    hungry: AtomicUsize,
    /// How many of them work at once.
    pub(crate) pace: Arc<Pace>,
}

#[derive(Default)]
struct State {
    ready: Vec<Share>,
    waiting: usize,
    /// Shares given and not yet done with. Each keeps two descriptors from being closed.
    lent: usize,
    lent_max: usize,
    closed: bool,
}

/// A share in hand. When it is dropped its lender is told.
pub(crate) struct Loan<'p>(&'p Pool);

/// Shares on their way, for each worker.
pub(crate) const SHARES_PER_WORKER: usize = 4;

impl Pool {
    pub(crate) fn new(crew: Crew) -> Pool {
        let state = State { lent_max: crew.most * SHARES_PER_WORKER, ..State::default() };
        Pool {
            state: Mutex::new(state),
            changed: Condvar::new(),
            hungry: AtomicUsize::new(0),
            pace: Arc::new(Pace::new(crew)),
        }
    }

    /// How many workers wait in vain.
    pub(crate) fn hungry(&self) -> usize {
        self.hungry.load(Ordering::Relaxed)
    }

    /// Gives names away.
    pub(crate) fn give(&self, share: Share) {
        let mut state = lock(&self.state);
        state.ready.push(share);
        state.lent += 1;
        self.recount(&state);
        self.changed.notify_all();
    }

    /// Waits for a share, until `sated` says that none is needed any more, or the pool is closed.
    pub(crate) fn take(&self, sated: impl Fn() -> bool) -> Option<(Share, Loan<'_>)> {
        let mut state = lock(&self.state);
        loop {
            if sated() {
                return None;
            }
            if let Some(share) = state.ready.pop() {
                self.recount(&state);
                return Some((share, Loan(self)));
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
        self.pace.open();
    }

    fn recount(&self, state: &State) {
        let hungry = match state.lent < state.lent_max {
            true => state.waiting.saturating_sub(state.ready.len()),
            false => 0,
        };
        self.hungry.store(hungry, Ordering::Relaxed);
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.lent -= 1;
        self.0.recount(&state);
        self.0.changed.notify_all();
    }
}
