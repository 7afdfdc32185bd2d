//! Threads that help to copy one span after another, stripe by stripe.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use super::copiers::WorkerCopiers;
use crate::engine::Copier;
use crate::stripes::Stripes;
use crate::{Moved, Pair, Span, Variant};

/// A span that workers copy by one candidate.
struct Job {
    candidate: usize,
    /// Workers that may take stripes, the caller included.
    workers: usize,
    stripes: Stripes,
}

/// What the helpers wait for.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
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
            let _ =
                std::thread::Builder::new().name("stripes".to_owned()).spawn_scoped(scope, help);
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
        self.board.lock().job = Some(job.clone());
        self.board.changed.notify_all();
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
        self.board.lock().ended = true;
        self.board.changed.notify_all();
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
                if let Ok(copier) = copiers.get(job.candidate, &variants[job.candidate]) {
                    job.stripes.work(pair, copier);
                }
            }
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
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
        self.board.lock().active -= 1;
        self.board.changed.notify_all();
    }
}
