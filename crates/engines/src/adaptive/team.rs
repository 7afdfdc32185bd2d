//! Threads that help to copy one span after another, stripe by stripe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use super::copiers::WorkerCopiers;
use crate::engine::Copier;
use crate::placement::spawn_worker;
use crate::stripes::Stripes;
use crate::{Moved, Pair, Span, Variant};

/// A span that workers copy by one candidate.
struct Job {
    candidate: usize,
    /// Workers that may take stripes, the caller included.
    workers: usize,
    stripes: Stripes,
}

/// How long a thread watches for a change before it sleeps. The others need as long for a last stripe, and the
/// caller less to give out the next span. A processor that sleeps takes as long to wake up in a virtual machine,
/// and may be taken by another program meanwhile.
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
    /// Helpers that are copying a stripe of the job.
    active: usize,
    ended: bool,
}

/// The helpers of one call, and the board that they share with the caller. They end when it is dropped.
pub(super) struct Team {
    board: Arc<Board>,
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
        for (index, copiers) in helpers.iter_mut().enumerate() {
            let board = board.clone();
            let help = move || board.help(index + 1, pair, variants, copiers);
            let thread = std::thread::Builder::new().name("stripes".to_owned());
            let _ = spawn_worker(scope, thread, help);
        }
        Team { board }
    }

    /// Copies `span` by `candidate` with at most `workers` workers. `copier` is that of the caller.
    pub(super) fn copy(
        &self,
        (candidate, workers): (usize, usize),
        copier: &mut dyn Copier,
        pair: Pair<'_>,
        span: Span,
    ) -> Moved {
        let stripes = Stripes::new(span, workers);
        let job = Arc::new(Job { candidate, workers, stripes });
        self.board.change(|state| state.job = Some(job.clone()));
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
        self.board.change(|state| state.ended = true);
    }
}

impl Board {
    /// Copies stripes of one job after another until the team ends, as the worker with this index.
    fn help(
        &self,
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

    /// Makes a change, and wakes up the threads that wait for one.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
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
        let state = self.lock();
        if has_changed() {
            return state;
        }
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
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
        self.board.change(|state| state.active -= 1);
    }
}
