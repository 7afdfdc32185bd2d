//! A running race: runs one candidate once, and knows what is left of the time.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::config::{Config, Progress, Watch};
use super::heuristics::LAST_RESORT_SHARE_MAX;
use super::sample::RaceSample;
use crate::error::Error;
use crate::sample::Stage;
use crate::sample::measurement::Measurement;
use crate::scratch::inode_reclaim::InodesInUse;
use crate::search::candidate::{Candidate, Status, ranking};
use crate::source::Source;
use crate::trial::digest::Digests;
use crate::trial::{Bench, NotRun, Task, at_once};
use crate::words;

/// A running race.
pub(crate) struct Race<'r> {
    pub(crate) config: Config,
    /// The copies that a run makes at the same time. Each has a bench for each directory that its copies
    /// go to, one after another.
    pub(super) benches: Vec<Vec<Bench<'r>>>,
    pub(crate) candidates: Vec<Candidate>,
    /// Every run, elimination rounds included.
    pub(crate) samples: Vec<RaceSample>,
    pub(super) notes: Vec<String>,
    pub(super) watch: &'r mut Watch<'r>,
}

impl<'r> Race<'r> {
    pub(crate) fn new(
        config: Config,
        benches: Vec<Vec<Bench<'r>>>,
        candidates: Vec<Candidate>,
        watch: &'r mut Watch<'r>,
    ) -> Race<'r> {
        let (samples, notes) = (Vec::new(), Vec::new());
        Race { config, benches, candidates, samples, notes, watch }
    }

    /// The source; of several copies at once that of the first.
    pub(super) fn source(&self) -> &'r Source {
        self.benches[0][0].source
    }

    /// The first `bytes` of each source, with their digests.
    ///
    /// # Errors
    /// When a file cannot be opened or read, or has changed.
    pub(crate) fn tasks(&self, bytes: u64) -> Result<Vec<Task>, Error> {
        let task = |benches: &Vec<Bench<'_>>| {
            let source = benches[0].source;
            let load = source.first(bytes);
            Ok(Task { digests: Digests::of(source, &load)?, load })
        };
        self.benches.iter().map(task).collect()
    }

    /// Runs one candidate once, at its place in a round, and keeps the result.
    pub(super) fn run_one(
        &mut self,
        index: usize,
        tasks: &[Task],
        (stage, round, order_in_round): (Stage, u32, u32),
    ) -> Result<(), Error> {
        self.announce(index, stage, round);
        let started = Instant::now();
        let nth = self.samples.len();
        let benches: Vec<Bench<'_>> =
            self.benches.iter().map(|dsts| dsts[nth % dsts.len()]).collect();
        let dst = benches[0].dst.dir().as_fd();
        let inodes_before = InodesInUse::now(dst);
        let run = at_once::run(&benches, tasks, || self.candidates[index].start());
        let Task { load, .. } = &tasks[0];
        let run = match self.config.visit {
            Some(_) => refused_for_profile(run, &benches, load.bytes),
            None => run,
        };
        if !benches[0].stays {
            inodes_before.wait_until_again(dst);
        }
        let candidate = &mut self.candidates[index];
        let measured = match run {
            Ok(measured) => measured,
            Err(not_run) => {
                candidate.status = Status::Refused(not_run.refusal()?);
                return Ok(());
            }
        };
        let extent = (load.bytes, load.parts.len());
        candidate.ran((stage, round), &measured, started.elapsed(), extent);
        self.samples.push(RaceSample {
            variant: candidate.name.clone(),
            engine: candidate.variant.engine.name,
            workers: candidate.variant.workers,
            stage,
            round,
            order_in_round,
            bytes: load.bytes,
            state_wanted: self.config.state,
            measured,
        });
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
    pub(crate) fn time_left(&self) -> Duration {
        self.config
            .time
            .map_or(Duration::MAX, |time| time.saturating_sub(self.config.started.elapsed()))
    }

    /// The candidates that are still in the race.
    pub(crate) fn running(&self) -> impl Iterator<Item = usize> + use<'_, 'r> {
        (0..self.candidates.len()).filter(|&index| self.candidates[index].runs())
    }

    /// What a run over `bytes` will take in all.
    pub(crate) fn cost_of(&self, index: usize, bytes: u64) -> Duration {
        self.candidates[index].cost_of(bytes).unwrap_or_default()
    }

    /// The runs of `candidate` in the final.
    pub(super) fn finals_of(&self, candidate: &Candidate) -> Vec<&RaceSample> {
        let is_it = |sample: &&RaceSample| sample.variant == candidate.name && sample.is_final();
        self.samples.iter().filter(is_it).collect()
    }

    pub(super) fn require_copiers(&self) -> Result<(), Error> {
        let copies = |it: &Candidate| it.variant.is_copier() && !it.is_refused();
        if self.candidates.iter().any(copies) {
            return Ok(());
        }
        let reason = |it: &Candidate| match &it.status {
            Status::Refused(reason) => format!("{} ({reason})", it.variant),
            _ => format!("{} (copies no file)", it.variant),
        };
        let reasons: Vec<String> = self.candidates.iter().map(reason).collect();
        Err(Error::NothingToRace(words::listed(&reasons)))
    }
}

/// What a run over `bytes` shows to a search for a profile: a variant that failed, or in whose place
/// `read_write` moved much, does not work here. A full disk says nothing about a variant.
fn refused_for_profile(
    run: Result<Measurement, NotRun>,
    benches: &[Bench<'_>],
    bytes: u64,
) -> Result<Measurement, NotRun> {
    let last_resort_bytes_max = LAST_RESORT_SHARE_MAX * (bytes * benches.len() as u64) as f64;
    match run {
        Err(NotRun::Failed(failed @ Error::CopyFailed { errno, .. }))
            if !matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::ROFS) =>
        {
            benches.iter().try_for_each(|bench| bench.dst.remove_files())?;
            Err(failed.to_string().into())
        }
        Ok(measured) if measured.last_resort_bytes as f64 > last_resort_bytes_max => {
            Err(measured.refusals.into())
        }
        other => other,
    }
}
