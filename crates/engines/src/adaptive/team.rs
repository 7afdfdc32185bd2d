//! Threads that help to copy one span after another, stripe by stripe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use super::copiers::WorkerCopiers;
use crate::engine::Copier;
use crate::placement::{Place, Placement, spawn_worker};
use crate::stripes::Stripes;
use crate::{Moved, Pair, Span, Variant};

/// A span that workers copy by one candidate.
struct Job {
    candidate: usize,
    /// Workers that may take stripes, the caller included.
    workers: usize,
    stripes: Stripes,
}

/// How long a thread watches for a change before it sleeps. A last stripe takes half of that, and the caller
/// gives out the next span in less. A processor that sleeps takes as long to wake up in a virtual machine.
const WATCH: Duration = Duration::from_micros(100);

/// What the helpers wait for.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    /// Changes of `state` so far.
    changes: AtomicU64,
    /// Signalled when `state` has changed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    job: Option<Arc<Job>>,
    /// Threads that sleep until there is a change, or are about to wake up.
    asleep: usize,
    /// Helpers that are copying a stripe of the job.
    active: usize,
    ended: bool,
}

/// The helpers of one call, and the board that they share with the caller. They end when it is dropped.
pub(super) struct Team {
    board: Arc<Board>,
    /// Where the caller runs.
    place: Option<Place>,
}

impl Team {
    /// Starts one helper for each of `helpers` in `scope`. If a thread cannot be started, there is one
    /// helper fewer.
    pub(super) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        pair: Pair<'scope>,
        variants: &'scope [Variant],
        helpers: &'scope mut [WorkerCopiers],
    ) -> Team {
        let board = Arc::new(Board::default());
        let placement = Arc::new(Placement::default());
        let place = placement.join();
        for (index, copiers) in helpers.iter_mut().enumerate() {
            let (board, placement) = (board.clone(), placement.clone());
            let help = move || board.help(placement.join(), index + 1, pair, variants, copiers);
            let thread = std::thread::Builder::new().name("stripes".to_owned());
            let _ = spawn_worker(scope, thread, help);
        }
        Team { board, place }
    }

    /// Copies `span` by `candidate` with at most `workers` workers. `copier` is that of the caller.
    pub(super) fn copy(
        &mut self,
        (candidate, workers): (usize, usize),
        copier: &mut dyn Copier,
        pair: Pair<'_>,
        span: Span,
    ) -> Moved {
        let stripes = Stripes::new(span, workers);
        let job = Arc::new(Job { candidate, workers, stripes });
        self.place.iter_mut().for_each(Place::keep_apart);
        let mut state = self.board.lock();
        state.job = Some(job.clone());
        let must_wake = state.asleep > 0;
        self.board.signal(state);
        if must_wake {
            // A helper that wakes up on this processor runs now, and moves to another one.
            std::thread::yield_now();
        }
        job.stripes.work(pair, copier);
        let mut state = self.board.lock();
        // A helper that wakes up from here on finds nothing to do, and is not waited for.
        state.job = None;
        while state.active > 0 {
            state = self.board.wait(state);
        }
        drop(state);
        job.stripes.outcome()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let mut state = self.board.lock();
        state.ended = true;
        self.board.signal(state);
    }
}

impl Board {
    /// Copies stripes of one job after another until the team ends, as the worker with this index.
    fn help(
        &self,
        mut place: Option<Place>,
        index: usize,
        pair: Pair<'_>,
        variants: &[Variant],
        copiers: &mut WorkerCopiers,
    ) {
        let mut last: Option<Arc<Job>> = None;
        let mut state = self.lock();
        while !state.ended {
            let is_new =
                |job: &&Arc<Job>| !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, job));
            let Some(job) = state.job.as_ref().filter(is_new).cloned() else {
                place.iter_mut().for_each(Place::vacate);
                state = self.wait(state);
                continue;
            };
            last = Some(job.clone());
            if index >= job.workers {
                continue;
            }
            state.active += 1;
            drop(state);
            {
                let _active = Active { board: self, job: &job };
                place.iter_mut().for_each(Place::keep_apart);
                // A helper whose copier cannot be started leaves the stripes to the others.
                if let Ok(copier) = copiers.get(&variants[job.candidate]) {
                    job.stripes.work(pair, copier);
                }
            }
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes up the threads that wait for a change of the state, which was made.
    fn signal(&self, state: MutexGuard<'_, State>) {
        self.changes.fetch_add(1, Ordering::Release);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for a change after that state.
    fn wait<'s>(&'s self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let seen = self.changes.load(Ordering::Acquire);
        let has_changed = || self.changes.load(Ordering::Acquire) != seen;
        drop(state);
        let start = Instant::now();
        while !has_changed() && start.elapsed() < WATCH {
            std::hint::spin_loop();
        }
        let mut state = self.lock();
        if has_changed() {
            return state;
        }
        state.asleep += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.asleep -= 1;
        state
    }
}

/// A helper that copies. Dropped, also by a panic, it no longer counts: the caller must not wait for it.
struct Active<'b> {
    board: &'b Board,
    job: &'b Job,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.job.stripes.stop();
        }
        let mut state = self.board.lock();
        state.active -= 1;
        // Only the caller waits for that, and only for the last one.
        if state.active == 0 {
            self.board.signal(state);
        }
    }
}
