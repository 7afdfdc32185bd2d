//! One cell of a running experiment: its samples so far, what they cost, and why it has ended.

use std::time::Duration;

use super::session_process::ConductError;
use crate::analysis::observations::Observations;
use crate::definition::cell::Cell;
use crate::definition::{Definition, Part};
use crate::run_dir::{RefusalRecord, Run, RunDir};
use crate::sample::record::{self, RoundRecord};
use crate::session::protocol::Event;
use crate::stats::rounds_per_session;

/// The most rounds of one session. More rounds do not show how sessions differ; more sessions do.
pub(crate) const ROUNDS_MAX: u32 = 64;

/// If more than this share of a cell's rounds is disturbed, the machine is always like that.
/// Repeating rounds would cost time and find the same.
const DISTURBED_SHARE_MAX: f64 = 0.3;

/// A cell and its results so far.
#[derive(Debug, Default)]
pub struct CellRun {
    /// The index of its part.
    pub part: usize,
    /// The cell.
    pub cell: Cell,
    /// The observations from the runs of the cell.
    pub points: Observations,
    /// For each variant why it does not work here, where it does not.
    pub refused: Vec<Option<String>>,
    /// For each variant whether its comparison is answered, so that it runs no more.
    pub answered: Vec<bool>,
    /// Sessions started.
    pub sessions: u32,
    /// Why it gets no more sessions.
    pub ended: Option<Ended>,
    /// Rounds disturbed and run again.
    pub rounds_again: u32,
    /// Rounds disturbed and kept, since they had been run again often enough.
    pub rounds_disturbed: u32,
    /// Rounds measured.
    pub rounds: u32,
    /// Time spent on its sessions.
    pub spent: Duration,
    /// First runs of rounds, and how many of them were disturbed.
    rounds_tried: u32,
    rounds_tried_disturbed: u32,
    pub(crate) round_cost: Option<Duration>,
    pub(crate) session_cost: Duration,
    /// The number of rounds in a session that uses the time best, computed from the noise so far.
    pub(crate) rounds_wanted: Option<u32>,
    /// Calls that move bytes in one run of each variant; empty before the first session.
    pub(crate) calls: Vec<Option<u64>>,
}

/// Why a cell got no more sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All its comparisons are answered.
    Answered,
    /// The cell has had the maximum number of sessions or rounds.
    Full,
    /// Nothing, or the baseline alone, or not the baseline, works here.
    NothingToCompare,
    /// No run had the state asked for.
    OutOfReach,
}

impl CellRun {
    pub(crate) fn new(
        definition: &Definition,
        part: usize,
        cell: Cell,
        before: Option<&Run>,
    ) -> CellRun {
        let of = &definition.parts[part];
        let id = cell.id();
        let mut run = CellRun {
            part,
            cell,
            refused: vec![None; of.variants.len()],
            answered: vec![false; of.variants.len()],
            ..CellRun::default()
        };
        let Some(before) = before else { return run };
        let samples = before.samples.iter().filter(|sample| sample.cell == id);
        run.sessions = samples.clone().map(|sample| sample.session).max().unwrap_or(0);
        run.points = Observations::of(samples, &of.variants, of.measure);
        for round in before.rounds.iter().filter(|round| round.cell == id) {
            run.count(round);
            run.spent += Duration::from_nanos(round.round_ns);
        }
        for refusal in before.refusals.iter().filter(|refusal| refusal.cell == id) {
            if let Some(index) = of.index_of(&refusal.variant) {
                run.refused[index] = Some(refusal.refusals.clone());
            }
        }
        run
    }

    /// Pairs of variants that are compared and work here: the one and the baseline.
    pub fn compared(&self, part: &Part) -> Vec<(usize, usize)> {
        self.with_baseline(part, part.compared())
    }

    /// Pairs of floors that work here and the baseline.
    pub fn floors(&self, part: &Part) -> Vec<(usize, usize)> {
        self.with_baseline(part, part.floors())
    }

    fn with_baseline<'p>(
        &self,
        part: &Part,
        variants: impl Iterator<Item = &'p String>,
    ) -> Vec<(usize, usize)> {
        let works = |&variant: &usize| self.refused[variant].is_none();
        let Some(baseline) = part.index_of(&part.baseline).filter(works) else { return Vec::new() };
        let variants = variants.filter_map(|name| part.index_of(name)).filter(works);
        variants.map(|variant| (variant, baseline)).collect()
    }

    /// Stores an event of a session.
    pub(crate) fn take(
        &mut self,
        event: Event,
        part: &Part,
        dir: &mut RunDir,
    ) -> Result<(), ConductError> {
        match event {
            Event::Refused { variant, why } => {
                if self.refused[variant].is_none() {
                    dir.refusals.add_all([&RefusalRecord {
                        cell: self.cell.id(),
                        variant: part.variants[variant].clone(),
                        refusals: why.clone(),
                    }])?;
                    self.refused[variant] = Some(why);
                }
            }
            Event::Ran { variant, mut sample, times } => {
                let measured = &mut sample.measured;
                self.calls.resize(part.variants.len(), None);
                self.calls[variant] = measured.calls.or(self.calls[variant]);
                measured.calls = self.calls[variant];
                measured.ended_ns = 0;
                if let Some(times) = times {
                    dir.add_calls(&record::of_calls(&sample, &times))?;
                }
                dir.samples.add_all([&*sample])?;
                self.points.add(&sample, variant, part.measure);
            }
            Event::Round { record } => {
                dir.rounds.add_all([&record])?;
                self.count(&record);
            }
            Event::Failed { why } => {
                return Err(ConductError::Failed(format!("{}: {why}", self.cell.id())));
            }
        }
        Ok(())
    }

    pub(crate) fn is_always_disturbed(&self) -> bool {
        f64::from(self.rounds_tried_disturbed) > DISTURBED_SHARE_MAX * f64::from(self.rounds_tried)
    }

    /// Computes from the samples so far how many rounds a session should have.
    pub(crate) fn plan_rounds(&mut self, part: &Part) {
        let Some(round) = self.round_cost else { return };
        let (session_ns, round_ns) = (self.session_cost.as_nanos(), round.as_nanos());
        let wanted = self.compared(part).into_iter().filter_map(|(one, other)| {
            let deviations = self.points.compare(one, other).deviations()?;
            Some(rounds_per_session(session_ns as f64, round_ns as f64, deviations, ROUNDS_MAX))
        });
        self.rounds_wanted = wanted.max().or(self.rounds_wanted);
    }

    fn count(&mut self, round: &RoundRecord) {
        self.rounds_again += u32::from(round.again);
        self.rounds += u32::from(!round.again);
        self.rounds_disturbed += u32::from(!round.again && !round.breach.is_empty());
        self.rounds_tried += u32::from(round.repeat == 0);
        self.rounds_tried_disturbed += u32::from(round.repeat == 0 && !round.breach.is_empty());
    }
}
