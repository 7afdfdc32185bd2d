//! A running race: runs one candidate once, and knows what is left of the time.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use engines::Kind;

use super::candidate::{self, Candidate, Status};
use super::config::{Config, Progress, Watch};
use crate::error::Error;
use crate::sample::{Place, Sample, Stage};
use crate::scratch::inode_reclaim::InodesInUse;
use crate::search::run_order::RunOrder;
use crate::trial::{Bench, Outcome, Task};
use crate::words;

/// A running race.
pub(super) struct Race<'r> {
    pub(super) config: &'r Config,
    pub(super) bench: Bench<'r>,
    pub(super) run_order: RunOrder,
    pub(super) candidates: Vec<Candidate>,
    pub(super) notes: Vec<String>,
    pub(super) watch: &'r mut Watch<'r>,
}

impl Race<'_> {
    /// Runs one candidate once and keeps the result.
    pub(super) fn run_one(&mut self, index: usize, task: &Task, place: Place) -> Result<(), Error> {
        self.announce(index, place);
        let started = Instant::now();
        let inodes_before = InodesInUse::now(self.bench.dst.dir().as_fd());
        let outcome = self.bench.run_once(&self.candidates[index].variant, task)?;
        inodes_before.wait_until_again(self.bench.dst.dir().as_fd());
        let state_wanted = self.config.state;
        let candidate = &mut self.candidates[index];
        match outcome {
            Outcome::Measured(measured) => {
                let sample =
                    Sample::of(&candidate.variant, place, state_wanted, task.load.bytes, *measured);
                candidate.add(sample, started.elapsed(), task.load.parts.len());
            }
            Outcome::Refused(reason) => candidate.status = Status::Refused(reason),
        }
        Ok(())
    }

    pub(super) fn announce(&mut self, index: usize, place: Place) {
        let ranking = candidate::ranking(&self.candidates, place.stage);
        let left = self.time_left_to_show(place);
        (self.watch)(&Progress {
            stage: place.stage,
            round: place.round,
            variant: &self.candidates[index].variant,
            elapsed: self.config.started.elapsed(),
            left,
            ranking,
        });
    }

    pub(super) fn time_left_to_show(&self, place: Place) -> Option<Duration> {
        let by_time = self.config.time.map(|_| self.time_left());
        let by_rounds = self.config.rounds.map(|rounds| {
            let round: Duration = self.running().map(|index| self.candidates[index].cost).sum();
            let done = if place.stage == Stage::Final { place.round - 1 } else { 0 };
            round * rounds.saturating_sub(done)
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
        (0..self.candidates.len()).filter(|&index| self.candidates[index].status == Status::Running)
    }

    pub(super) fn require_copiers(&self) -> Result<(), Error> {
        let copies = |candidate: &Candidate| {
            matches!(candidate.variant.engine.kind, Kind::Copier { .. })
                && !matches!(candidate.status, Status::Refused(_))
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
