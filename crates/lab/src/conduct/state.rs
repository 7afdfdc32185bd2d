//! The state of a running experiment, and the time that it has left.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use super::cell_run::CellRun;
use crate::analysis::interim::{SESSIONS_MAX, SESSIONS_OF_GIVEN_ROUNDS};
use crate::definition::Definition;
use crate::definition::deltas::Deltas;
use crate::run_dir::RunDir;
use crate::stats::InterimAnalyses;

/// The share of the time that the cells of the main part get before the others.
const MAIN_SHARE: f64 = 0.5;

/// How long, and how precisely.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for everything.
    pub time: Option<Duration>,
    /// Rounds of each cell, exactly; otherwise as many as the noise asks for.
    pub rounds: Option<u32>,
    /// Differences up to these shares do not matter.
    pub deltas: Deltas,
}

/// A running experiment.
#[derive(Debug)]
pub struct Conductor<'c> {
    pub(super) definition: &'c Definition,
    pub(super) cells: Vec<CellRun>,
    /// The interim analyses at the cells of each part.
    pub(super) interim: Vec<InterimAnalyses>,
    pub(super) dir: RunDir,
    pub(super) places: Places<'c>,
    pub(super) limits: Limits,
    pub(super) seed: u64,
    pub(super) started: Instant,
    /// The process group of the session that runs, 0 between sessions: for signal handlers.
    pub(super) running: Arc<AtomicI32>,
}

/// The scratch directories.
#[derive(Clone, Copy, Debug)]
pub struct Places<'c> {
    /// For sources.
    pub src: &'c Path,
    /// For what runs make.
    pub dst: &'c Path,
}

impl Conductor<'_> {
    pub(super) fn is_of_main(&self, cell: usize) -> bool {
        self.definition.parts[self.cells[cell].part].name == self.definition.main
    }

    /// The time for which the cells of the main part come first, without limit if rounds are asked
    /// for. `None` if it is over or there is no main part. What was measured before an interruption
    /// counts.
    pub(super) fn left_for_main(&self) -> Option<Duration> {
        if self.definition.main.is_empty() {
            return None;
        }
        let Some(left) = self.left() else { return Some(Duration::MAX) };
        let spent = |main: bool| -> Duration {
            let cells = (0..self.cells.len()).filter(|&cell| self.is_of_main(cell) == main);
            cells.map(|cell| self.cells[cell].spent).sum()
        };
        let (main, others) = (spent(true), spent(false));
        let share = (main + others + left).mul_f64(MAIN_SHARE);
        Some(share.saturating_sub(main)).filter(|left| !left.is_zero())
    }

    /// The time that is left; `None` without a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        Some(self.limits.time?.saturating_sub(self.started.elapsed()))
    }

    /// The most sessions of a cell.
    pub(super) fn sessions_max(&self) -> u32 {
        self.limits.rounds.map_or(SESSIONS_MAX, |rounds| rounds.min(SESSIONS_OF_GIVEN_ROUNDS))
    }
}
