//! Runs an experiment: chooses the cell of the next session, and decides when a cell has ended.
//!
//! The cells of the part that answers the experiment's question come first, until they have had half
//! of the time or have ended. Among the cells whose turn it is, the one that has used the least time
//! gets the next session. So a change of the machine affects all of them, and cells with short runs get
//! more of them. A variant leaves its cell when an interim
//! analysis answers its comparison; a cell ends when all its comparisons are answered. The number
//! of interim analyses is fixed in advance ([`interim`]). The time that is saved goes to the cells
//! that are still open.

pub mod cell_run;
mod next_session;
pub mod session_process;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use crate::analysis::interim::{self, SESSIONS_MIN};
use crate::definition::cell::Cell;
use crate::definition::{Definition, Order};
use crate::experiment::estimate;
use crate::run_dir::{Run, RunDir};
use crate::session::protocol::Event;
use crate::session::watchdog::Watchdog;
use crate::stats::Answer;
use cell_run::{CellRun, Ended};
use session_process::run_session;

pub use session_process::ConductError;
pub use state::{Conductor, Limits, Places};

/// After these numbers of sessions, the rounds of a session are planned again.
const PLANNED_AFTER: [u32; 5] = [3, 5, 10, 20, 40];

/// Progress for the caller; reported between sessions and never while something is timed.
#[derive(Debug)]
pub struct Progress<'p> {
    /// The cell whose session is about to run.
    pub cell: &'p Cell,
    /// Cells that have ended.
    pub ended: usize,
    /// All cells.
    pub cells: usize,
    /// Samples so far.
    pub samples: usize,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// Time left at most, where that is known.
    pub left: Option<Duration>,
}

/// Called before each session.
pub type Watch<'w> = dyn FnMut(&Progress<'_>) + 'w;

impl<'c> Conductor<'c> {
    /// Gets ready to run `definition`; what `before` holds, an interrupted run of it, counts.
    pub fn new(
        definition: &'c Definition,
        dir: RunDir,
        places: Places<'c>,
        limits: Limits,
        seed: u64,
        before: Option<&Run>,
    ) -> Conductor<'c> {
        let cells = cells(definition, before);
        let interim = interim::of_parts(definition, limits.rounds);
        let running = Arc::new(AtomicI32::new(0));
        let started = Instant::now();
        let mut conduct =
            Conductor { definition, cells, interim, dir, places, limits, seed, started, running };
        (0..conduct.cells.len()).for_each(|cell| conduct.resume(cell));
        conduct
    }

    /// What was answered before an interruption is not asked again: a variant that was in no later
    /// session has left at an interim analysis, and the cell may have ended.
    fn resume(&mut self, index: usize) {
        let part = &self.definition.parts[self.cells[index].part];
        let run = &mut self.cells[index];
        if run.rounds == 0 {
            return;
        }
        let delta = self.limits.deltas.of(run.cell.state);
        for (one, other) in run.compared(part) {
            let last = run.points.last_session(one);
            let left_at = self.interim[run.part].alpha_at(last).filter(|_| last < run.sessions);
            run.answered[one] =
                left_at.filter(|_| self.limits.rounds.is_none()).is_some_and(|alpha| {
                    Answer::of(&run.points.compare(one, other), delta, alpha) != Answer::Unresolved
                });
        }
        self.analyse(index);
    }

    /// The process group of the session that runs, 0 between sessions.
    pub fn running(&self) -> Arc<AtomicI32> {
        Arc::clone(&self.running)
    }

    /// The cells and what is known of them.
    pub fn cells(&self) -> &[CellRun] {
        &self.cells
    }

    /// The directory that it is written to.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Runs sessions until every cell has ended or the time is over.
    ///
    /// # Errors
    /// When a sample cannot be written, or a session failed: a wrong copy, a full disk.
    pub fn run(&mut self, watch: &mut Watch<'_>) -> Result<(), ConductError> {
        // Sessions before an interruption had orders of their own.
        let mut watchdog = Watchdog::start()
            .map_err(|error| ConductError::Failed(format!("cannot start a process: {error}")))?;
        let before: u64 = self.cells.iter().map(|cell| u64::from(cell.sessions)).sum();
        let mut rng = fastrand::Rng::with_seed(self.seed.wrapping_add(before));
        for turn in before.. {
            let Some(cell) = self.next_cell(&mut rng) else { break };
            self.announce(cell, watch);
            self.session(cell, self.seed.wrapping_add(turn), &mut watchdog)?;
            self.analyse(cell);
        }
        Ok(())
    }

    /// The cell that has had the least time of those that have not ended and still fit into it. While
    /// the cells of the main part come first, one of them.
    fn next_cell(&self, rng: &mut fastrand::Rng) -> Option<usize> {
        let mut open: Vec<usize> = (0..self.cells.len())
            .filter(|&cell| self.cells[cell].ended.is_none() && !self.is_too_late(cell))
            .collect();
        if self.left_for_main().is_some() && open.iter().any(|&cell| self.is_of_main(cell)) {
            open.retain(|&cell| self.is_of_main(cell));
        }
        rng.shuffle(&mut open);
        open.into_iter().min_by_key(|&cell| self.cells[cell].spent)
    }

    fn announce(&self, cell: usize, watch: &mut Watch<'_>) {
        let elapsed = self.started.elapsed();
        watch(&Progress {
            cell: &self.cells[cell].cell,
            ended: self.cells.iter().filter(|cell| cell.ended.is_some()).count(),
            cells: self.cells.len(),
            samples: self.cells.iter().map(|cell| cell.points.count()).sum(),
            elapsed,
            left: self.limits.time.map(|time| time.saturating_sub(elapsed)),
        });
    }

    fn is_too_late(&self, cell: usize) -> bool {
        let Some(time) = self.limits.time else { return false };
        let run = &self.cells[cell];
        let round = run.round_cost.unwrap_or_else(|| {
            let part = &self.definition.parts[run.part];
            Duration::from_secs_f64(estimate::seconds_of_round(&run.cell, part))
        });
        self.started.elapsed() + round + run.session_cost > time
    }

    /// Runs one session of a cell and stores its events.
    fn session(
        &mut self,
        index: usize,
        seed: u64,
        watchdog: &mut Watchdog,
    ) -> Result<(), ConductError> {
        let rounds = self.rounds_for(index);
        let order = self.order(index, rounds, seed);
        let started = Instant::now();
        let run = &mut self.cells[index];
        run.sessions += 1;
        let mut first_event: Option<Instant> = None;
        let mut rounds_done = 0;
        let dir = &mut self.dir;
        let part = &self.definition.parts[run.part];
        run_session(&order, &self.running, watchdog, |event| {
            first_event.get_or_insert_with(Instant::now);
            rounds_done += u32::from(matches!(event, Event::Round { .. }));
            run.take(event, part, dir)
        })?;
        let spent = started.elapsed();
        run.spent += spent;
        // Each round was shuffled, so that the first event comes after the session's preparations
        // and the first run.
        let before = first_event.map_or(spent, |first| first - started);
        run.session_cost = before;
        if rounds_done > 0 {
            run.round_cost = Some((spent - before.min(spent)).max(MICRO) / rounds_done);
        }
        if run.round_cost.is_none() {
            run.ended = Some(Ended::NothingToCompare);
        }
        Ok(())
    }

    /// Ends a cell whose comparisons are all answered, which has had its sessions or rounds, or in
    /// which nothing can be compared.
    fn analyse(&mut self, index: usize) {
        let sessions_max = self.sessions_max();
        let part = &self.definition.parts[self.cells[index].part];
        let run = &mut self.cells[index];
        if run.ended.is_some() {
            return;
        }
        if part.order == Order::OneAfterAnother {
            run.ended = Some(Ended::Full);
            return;
        }
        if run.rounds > 0 && run.points.counted().next().is_none() && run.sessions >= 2 {
            run.ended = Some(Ended::OutOfReach);
            return;
        }
        if PLANNED_AFTER.contains(&run.sessions) {
            run.plan_rounds(part);
        }
        let compared = run.compared(part);
        if !part.baseline.is_empty() && compared.is_empty() {
            // The variants that work are still measured, in a few sessions.
            if run.sessions >= SESSIONS_MIN {
                run.ended = Some(Ended::NothingToCompare);
            }
            return;
        }
        let full = match self.limits.rounds {
            Some(rounds) => run.rounds >= rounds,
            None => run.sessions >= sessions_max,
        };
        if compared.is_empty() {
            run.ended = full.then_some(Ended::Full);
            return;
        }
        // A number of rounds that the user asked for is run in full and analysed once.
        let interim = &self.interim[run.part];
        let delta = self.limits.deltas.of(run.cell.state);
        if let Some(alpha) = interim.alpha_at(run.sessions).filter(|_| self.limits.rounds.is_none())
        {
            for &(one, other) in &compared {
                let sessions = run.points.compare(one, other);
                run.answered[one] |= Answer::of(&sessions, delta, alpha) != Answer::Unresolved;
            }
            if compared.iter().all(|&(one, _)| run.answered[one]) {
                run.ended = Some(Ended::Answered);
                return;
            }
            // Floors answer no question. The comparisons get their share of the time.
            for (floor, _) in run.floors(part) {
                run.answered[floor] = true;
            }
        }
        if full {
            run.ended = Some(Ended::Full);
        }
    }
}

/// The least cost of a round, which avoids a division by zero.
const MICRO: Duration = Duration::from_micros(1);

/// The cells of a definition with what `before`, a run of it, holds.
pub fn cells(definition: &Definition, before: Option<&Run>) -> Vec<CellRun> {
    let cells = definition.cells().into_iter();
    cells.map(|(part, cell)| CellRun::new(definition, part, cell, before)).collect()
}
