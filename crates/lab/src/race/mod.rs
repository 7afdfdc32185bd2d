//! The quick answer: which way of copying wins on this source, here.
//!
//! Heats on the start of the source narrow the field and foretell what a run costs; the final runs
//! whole rounds in shuffled order for as long as the time allows.

pub mod candidate;
mod elimination;
mod final_rounds;
pub mod report;
pub mod summary;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use engines::{Kind, Variant};

use report::Report;

use crate::clock::Clock;
use crate::definition::cell::Destination;
use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::page_cache::state::State;
use crate::sample::{Place, Sample, Stage};
use crate::scratch::Scratch;
use crate::scratch::inode_reclaim::InodesInUse;
use crate::search::run_order::Plan;
use crate::source::{Load, Source};
use crate::trial::{Bench, Outcome, Task};
use crate::{environment, words};
use candidate::{Entrant, Line, Progressing};

/// What a race is to do.
#[derive(Debug)]
pub struct Config {
    /// The page cache state before each run.
    pub state: State,
    /// The variants.
    pub variants: Vec<Variant>,
    /// Whether the user named them, and so wants even the hopeless ones where a number of rounds is
    /// asked for.
    pub named: bool,
    /// Rounds to run; without it as many as the time allows.
    pub rounds: Option<u32>,
    /// Time for everything; without it as long as the rounds take.
    pub time: Option<Duration>,
    /// When the time began.
    pub begun: Instant,
    /// The seed of all orders.
    pub seed: u64,
}

/// The least part of a source that stands for the whole of it: several times the last cache of most
/// processors, and enough for workers to share.
const PART_BYTES_MIN: u64 = 256 << 20;

/// As many files stand for all of them, however small they are.
const PART_FILES_MIN: usize = 256;

/// What is about to be run, for whoever watches. It is called between runs and never during one.
#[derive(Debug)]
pub struct Progress<'p> {
    /// The part of the race.
    pub stage: Stage,
    /// The round, from 1.
    pub round: u32,
    /// The variant about to run.
    pub variant: &'p Variant,
    /// Time since the race began.
    pub elapsed: Duration,
    /// Time it will take yet, as far as that is known.
    pub left: Option<Duration>,
    /// The variants that ran so far, fastest first.
    pub standings: Vec<Line>,
}

/// Called before each run.
pub type Watch<'w> = dyn FnMut(&Progress<'_>) + 'w;

/// A race under way.
struct Race<'r> {
    config: &'r Config,
    bench: Bench<'r>,
    plan: Plan,
    entrants: Vec<Entrant>,
    notes: Vec<String>,
    watch: &'r mut Watch<'r>,
}

/// Runs the race.
///
/// # Errors
/// When the source cannot be read or changes, the destination cannot be written or is too full, a
/// copy fails or is wrong, or no variant works here.
pub fn run<'r>(
    config: &'r Config,
    source: &'r Source,
    scratch: &'r Scratch,
    haulage_commit: Option<&'static str>,
    watch: &'r mut Watch<'r>,
) -> Result<Report, Error> {
    let whole = source.whole();
    scratch.require_space(room_for(&whole))?;
    let prover = Prover::try_on(source, config.state)?;
    let dst_dir = scratch.path().parent().unwrap_or(scratch.path());
    let environment = environment::Environment::look(
        source.path(),
        dst_dir,
        prover.clone(),
        config.seed,
        haulage_commit,
    );
    source.settle()?;
    let entrants = config.variants.iter().cloned().map(Entrant::new).collect();
    let bench = Bench {
        source,
        dst: scratch,
        prover: &prover,
        state: config.state,
        destination: Destination::Fresh,
        stays: false,
        durable: false,
        clock: Clock::default(),
    };
    let plan = Plan { seed: config.seed };
    let mut race = Race { config, bench, plan, entrants, notes: Vec::new(), watch };

    race.run_heats()?;
    race.require_copiers()?;
    let load = race.choose_load(&whole);
    let task = Task { digests: crate::trial::digest::Digests::of(source, &load)?, load };
    let rounds = race.run_final(&task)?;
    Ok(race.report(environment, &whole, &task.load, rounds))
}

/// Room that a copy takes: its bytes, and what the file system needs beside them.
fn room_for(load: &Load) -> u64 {
    let block_slack = 8192 * load.parts.len() as u64;
    load.bytes + load.bytes / 50 + block_slack + (16 << 20)
}

impl Race<'_> {
    /// Runs one entrant once and keeps what came of it.
    fn run_one(&mut self, index: usize, task: &Task, place: Place) -> Result<(), Error> {
        self.announce(index, place);
        let begun = Instant::now();
        let inodes_before = InodesInUse::now(self.bench.dst.dir().as_fd());
        let outcome = self.bench.run_once(&self.entrants[index].variant, task)?;
        inodes_before.wait_until_again(self.bench.dst.dir().as_fd());
        let state_wanted = self.config.state;
        let entrant = &mut self.entrants[index];
        match outcome {
            Outcome::Measured(measured) => {
                let sample =
                    Sample::of(&entrant.variant, place, state_wanted, task.load.bytes, *measured);
                entrant.add(sample, begun.elapsed(), task.load.parts.len());
            }
            Outcome::Refused(reason) => entrant.progressing = Progressing::Refused(reason),
        }
        Ok(())
    }

    fn announce(&mut self, index: usize, place: Place) {
        let standings = candidate::standings(&self.entrants, place.stage);
        let left = self.time_left_to_show(place);
        (self.watch)(&Progress {
            stage: place.stage,
            round: place.round,
            variant: &self.entrants[index].variant,
            elapsed: self.config.begun.elapsed(),
            left,
            standings,
        });
    }

    fn time_left_to_show(&self, place: Place) -> Option<Duration> {
        let by_time = self.config.time.map(|_| self.time_left());
        let by_rounds = self.config.rounds.map(|rounds| {
            let round: Duration = self.running().map(|index| self.entrants[index].cost).sum();
            let done = if place.stage == Stage::Final { place.round - 1 } else { 0 };
            round * rounds.saturating_sub(done)
        });
        match (by_time, by_rounds) {
            (Some(time), Some(rounds)) => Some(time.min(rounds)),
            (time, rounds) => time.or(rounds),
        }
    }

    /// What is left of the time; a very long time when there is no limit.
    fn time_left(&self) -> Duration {
        self.config
            .time
            .map_or(Duration::MAX, |time| time.saturating_sub(self.config.begun.elapsed()))
    }

    /// The entrants that are still in the race.
    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.entrants.len())
            .filter(|&index| self.entrants[index].progressing == Progressing::Running)
    }

    fn require_copiers(&self) -> Result<(), Error> {
        let copies = |entrant: &Entrant| {
            matches!(entrant.variant.engine.kind, Kind::Copier { .. })
                && !matches!(entrant.progressing, Progressing::Refused(_))
        };
        if self.entrants.iter().any(copies) {
            return Ok(());
        }
        let reasons: Vec<String> = self
            .entrants
            .iter()
            .map(|entrant| match &entrant.progressing {
                Progressing::Refused(reason) => format!("{} ({reason})", entrant.variant),
                _ => format!("{} (copies no file)", entrant.variant),
            })
            .collect();
        Err(Error::NothingToRace(words::listed(&reasons)))
    }

    /// The whole source, or the start of it when the whole would take too long or does not fit the
    /// memory that the state needs.
    fn choose_load(&mut self, whole: &Load) -> Load {
        let by_time = self.affordable_share();
        let by_memory = match self.config.state {
            // Source and destination lie in the page cache together.
            State::Warm => environment::memory_bytes() as f64 * 0.4 / whole.bytes as f64,
            State::Cold | State::AsItComes => 1.0,
        };
        let share = by_time.min(by_memory);
        // A little too long is better than a part.
        if share >= 0.8 {
            return whole.clone();
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 < share < 1
        let bytes = (whole.bytes as f64 * share) as u64 >> 20 << 20;
        let first_files = whole.parts.iter().take(PART_FILES_MIN);
        let least = first_files.map(|part| part.bytes).sum::<u64>().min(PART_BYTES_MIN);
        let bytes = bytes.max(least);
        let part = self.bench.source.first(bytes);
        if part.bytes == whole.bytes {
            return part;
        }
        let why = if by_memory < by_time {
            "source and copy have to fit the memory together in the warm state".to_owned()
        } else {
            let seconds = self.config.time.map_or(0.0, |time| time.as_secs_f64());
            format!("for enough rounds of all of it allow --time {:.0}", (seconds / share).ceil())
        };
        self.notes.push(format!(
            "raced on the first {} of {}: {why}",
            words::bytes(part.bytes),
            words::bytes(whole.bytes)
        ));
        part
    }
}

impl Sample {
    fn is_final(&self) -> bool {
        self.stage == Stage::Final
    }
}
