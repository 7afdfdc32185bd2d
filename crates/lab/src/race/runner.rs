//! A running race: runs one candidate once, and knows what is left of the time.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use engines::Kind;

use super::config::{Config, Progress, Watch};
use super::sample::RaceSample;
use crate::error::Error;
use crate::sample::Stage;
use crate::scratch::inode_reclaim::InodesInUse;
use crate::search::candidate::{Candidate, Status, ranking};
use crate::search::run_order::RunOrder;
use crate::trial::{Bench, Task};
use crate::words;

/// A running race.
pub(super) struct Race<'r> {
    pub(super) config: &'r Config,
    pub(super) bench: Bench<'r>,
    pub(super) run_order: RunOrder,
    pub(super) candidates: Vec<Candidate>,
    /// Every run, elimination rounds included.
    pub(super) samples: Vec<RaceSample>,
    pub(super) notes: Vec<String>,
    pub(super) watch: &'r mut Watch<'r>,
}

impl Race<'_> {
    /// Runs one candidate once, at its place in a round, and keeps the result.
    pub(super) fn run_one(
        &mut self,
        index: usize,
        task: &Task,
        (stage, round, order_in_round): (Stage, u32, u32),
    ) -> Result<(), Error> {
        self.announce(index, stage, round);
        let started = Instant::now();
        let inodes_before = InodesInUse::now(self.bench.dst.dir().as_fd());
        let outcome = self.bench.run_once(&self.candidates[index].variant, task)?;
        inodes_before.wait_until_again(self.bench.dst.dir().as_fd());
        let bytes = task.load.bytes;
        let candidate = &mut self.candidates[index];
        let extent = (bytes, task.load.parts.len());
        if let Some(measured) = candidate.ran(outcome, started.elapsed(), extent) {
            candidate.keep(stage, round, &measured);
            self.samples.push(RaceSample {
                variant: candidate.name.clone(),
                engine: candidate.variant.engine.name,
                workers: candidate.variant.workers,
                stage,
                round,
                order_in_round,
                bytes,
                state_wanted: self.config.state,
                measured: *measured,
            });
        }
        Ok(())
    }

    fn announce(&mut self, index: usize, stage: Stage, round: u32) {
        let ranking = ranking(&self.candidates);
        let left = self.time_left_to_show(stage, round);
        (self.watch)(&Progress {
            stage,
            round,
            variant: &self.candidates[index].variant,
            elapsed: self.config.started.elapsed(),
            left,
            ranking,
        });
    }

    fn time_left_to_show(&self, stage: Stage, round: u32) -> Option<Duration> {
        let by_time = self.config.time.map(|_| self.time_left());
        let by_rounds = self.config.rounds.map(|rounds| {
            let costs = self.running().filter_map(|index| self.candidates[index].cost);
            let done = if stage == Stage::Final { round - 1 } else { 0 };
            costs.sum::<Duration>() * rounds.saturating_sub(done)
        });
        match (by_time, by_rounds) {
            (Some(time), Some(rounds)) => Some(time.min(rounds)),
            (time, rounds) => time.or(rounds),
        }
    }

    /// The time that is left; [`Duration::MAX`] without a limit.
    pub(super) fn time_left(&self) -> Duration {
        self.config
            .time
            .map_or(Duration::MAX, |time| time.saturating_sub(self.config.started.elapsed()))
    }

    /// The candidates that are still in the race.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.candidates.len()).filter(|&index| self.candidates[index].runs())
    }

    /// What a run over `bytes` will take in all.
    pub(super) fn cost_of(&self, index: usize, bytes: u64) -> Duration {
        self.candidates[index].cost_of(bytes).unwrap_or_default()
    }

    /// The runs of `candidate` in the final.
    pub(super) fn finals_of(&self, candidate: &Candidate) -> Vec<&RaceSample> {
        let is_it = |sample: &&RaceSample| sample.variant == candidate.name && sample.is_final();
        self.samples.iter().filter(is_it).collect()
    }

    pub(super) fn require_copiers(&self) -> Result<(), Error> {
        let copies = |candidate: &Candidate| {
            matches!(candidate.variant.engine.kind, Kind::Copier { .. }) && !candidate.is_refused()
        };
        if self.candidates.iter().any(copies) {
            return Ok(());
        }
        let reasons: Vec<String> = self
            .candidates
            .iter()
            .map(|candidate| match &candidate.status {
                Status::Refused(reason) => format!("{} ({reason})", candidate.variant),
                _ => format!("{} (copies no file)", candidate.variant),
            })
            .collect();
        Err(Error::NothingToRace(words::listed(&reasons)))
    }
}
