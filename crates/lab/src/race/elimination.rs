//! Elimination rounds: runs on the start of the source, each step on a longer part. They find out
//! which candidates work, which are far slower than the best, what a run of the final costs, and how
//! much of the source the final copies.

use std::time::Duration;

use super::config::Config;
use super::heuristics::{
    ELIMINATION_ROUNDS, ELIMINATION_SHARE, ELIMINATION_SHARE_MAX, FAR_SLOWER, FLOOR_ROUNDS,
    FLOORS_SHARE, LENGTHS_BYTES, NOT_CLOSE, PART_BYTES_MIN, PART_FILES_MIN, PIECE_BYTES,
};
use super::runner::Race;
use crate::environment;
use crate::error::Error;
use crate::in_order::distinct;
use crate::page_cache::state::State;
use crate::sample::Stage;
use crate::search::admission::{self, Admission, Contender, admit};
use crate::search::candidate::{Class, LONG_BYTES, Role, Status};
use crate::search::run_order;
use crate::source::Load;
use crate::trial::Task;
use crate::words;

impl Race<'_> {
    /// Runs the elimination rounds.
    pub(crate) fn run_elimination(&mut self) -> Result<(), Error> {
        let lengths = distinct(LENGTHS_BYTES.map(|bytes| self.source().first(bytes).bytes));
        for (step, &bytes) in lengths.iter().enumerate() {
            let tasks = self.tasks(bytes)?;
            let is_quick = |&index: &usize| step == 0 || self.may_run_longer(index, bytes);
            let quick: Vec<usize> = (0..self.candidates.len()).filter(is_quick).collect();
            if step > 0 && self.is_too_long(&quick, bytes) {
                return Ok(());
            }
            self.run_elimination_round(&tasks, 1, &quick)?;
            self.drop_far_slower(&tasks)?;
            // If the user asks for a number of rounds, no candidate is dropped for being slow, so
            // there is nothing more to learn.
            let enough = bytes >= LONG_BYTES && self.config.rounds.is_some();
            if enough && self.config.time.is_none() {
                return Ok(());
            }
            if bytes == lengths[lengths.len() - 1] {
                return self.repeat_longest(&tasks);
            }
        }
        Ok(())
    }

    /// Repeats the full elimination round: once with all that reached it, since a single run may
    /// have been disturbed, and then with those that are close to the best.
    fn repeat_longest(&mut self, tasks: &[Task]) -> Result<(), Error> {
        for round in 2..=ELIMINATION_ROUNDS {
            let factor = if round == 2 { f64::INFINITY } else { NOT_CLOSE };
            let close = self.close_to_the_best(tasks[0].load.bytes, factor);
            if self.has_taken(ELIMINATION_SHARE) {
                break;
            }
            self.run_elimination_round(tasks, round, &close)?;
        }
        Ok(())
    }

    /// Drops candidates before a final over `bytes`, if the time is limited.
    pub(super) fn admit_to_final(&mut self, bytes: u64) {
        let goes_on = self.config.visit.is_some_and(|visit| visit.rounds_before > 0);
        if self.config.time.is_none() || self.config.rounds.is_some() || goes_on {
            return;
        }
        let time_left = self.time_left();
        let (floors, copiers): (Vec<usize>, Vec<usize>) =
            self.running().partition(|&index| self.candidates[index].class() == Class::Floor);
        let contenders: Vec<Contender> =
            copiers.iter().map(|&index| self.contender(index, bytes)).collect();
        let admission = match self.config.visit {
            Some(_) => Admission::VISIT,
            None => Admission::RACE,
        };
        let admitted = admit(&contenders, time_left, admission);
        let is_contender = |place: &usize| self.candidates[copiers[*place]].role == Role::Contender;
        let slow =
            (0..copiers.len()).filter(|place| !admitted.contains(place)).filter(is_contender);
        // A floor that would take much of the time of the final is known well enough from the
        // elimination rounds.
        let costly = floors
            .into_iter()
            .filter(|&index| self.cost_of(index, bytes) * FLOOR_ROUNDS > time_left / FLOORS_SHARE);
        let out: Vec<usize> = slow.map(|place| copiers[place]).chain(costly).collect();
        for index in out {
            let reason = "too slow in the elimination rounds for the time there is".to_owned();
            self.candidates[index].status = Status::Slow(reason);
        }
    }

    /// What the elimination rounds showed of a candidate, for runs over `bytes`.
    fn contender(&self, index: usize, bytes: u64) -> Contender {
        let candidate = &self.candidates[index];
        let elimination_bytes = candidate.elimination_bytes.max(1);
        let elimination_ns = candidate.elimination_median_ns().unwrap_or(f64::INFINITY);
        Contender {
            // Candidates that were not fast enough ran a shorter part.
            elimination_ns: elimination_ns * PIECE_BYTES as f64 / elimination_bytes as f64,
            run_cost: self.cost_of(index, bytes),
            always: candidate.class() == Class::Sharer,
        }
    }

    /// The whole source, or the start of it when the whole would take too long or does not fit the
    /// memory that the state needs.
    pub(super) fn choose_load(&mut self, whole: &Load) -> Load {
        let by_time = self.affordable_share();
        let by_memory = match self.config.state {
            // Source and destination have to fit the page cache together.
            State::Warm => environment::memory_bytes() as f64 * 0.4 / whole.bytes as f64,
            State::Cold | State::AsItComes => 1.0,
        };
        let share = by_time.min(by_memory);
        // A run that is a little too long is better than a part of the source.
        if share >= 0.8 {
            return whole.clone();
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 < share < 1
        let bytes = (whole.bytes as f64 * share) as u64 >> 20 << 20;
        let first_files = whole.parts.iter().take(PART_FILES_MIN);
        let least = first_files.map(|part| part.bytes).sum::<u64>().min(PART_BYTES_MIN);
        let bytes = bytes.max(least);
        let part = self.source().first(bytes);
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

    /// The share of the source that the time allows those that are close.
    fn affordable_share(&self) -> f64 {
        if self.config.time.is_none() {
            return 1.0;
        }
        let whole = self.source().whole().bytes;
        let contenders: Vec<Contender> = self
            .running()
            .filter(|&index| self.candidates[index].class() != Class::Floor)
            .map(|index| self.contender(index, whole))
            .collect();
        admission::affordable_share(&contenders, self.time_left())
    }

    pub(crate) fn run_elimination_round(
        &mut self,
        tasks: &[Task],
        round: u32,
        candidates: &[usize],
    ) -> Result<(), Error> {
        let order = run_order::order(self.config.seed, Stage::Elimination, round, candidates);
        for (place, index) in (1..).zip(order) {
            self.run_one(index, tasks, (Stage::Elimination, round, place))?;
        }
        Ok(())
    }

    /// Whether a run over `bytes` would be short enough.
    fn may_run_longer(&self, index: usize, bytes: u64) -> bool {
        let cost = self.candidates[index].cost_of(bytes);
        self.candidates[index].runs() && cost.is_some_and(|cost| cost <= longest_run(&self.config))
    }

    /// Drops candidates that are far slower than the best, with a note, unless the user named them
    /// and asked for a number of rounds.
    fn drop_far_slower(&mut self, tasks: &[Task]) -> Result<(), Error> {
        if self.config.named && self.config.rounds.is_some() {
            return Ok(());
        }
        // A single run may have been disturbed.
        let suspects: Vec<usize> =
            self.far_slower(tasks[0].load.bytes).into_iter().map(|(index, _)| index).collect();
        self.run_elimination_round(tasks, 2, &suspects)?;
        for (index, ratio) in self.far_slower(tasks[0].load.bytes) {
            self.candidates[index].status = Status::Slow(format!(
                "left out: about {} times slower than the best on the first {}",
                words::grouped(&format!("{ratio:.0}")),
                words::bytes(tasks[0].load.bytes)
            ));
        }
        Ok(())
    }

    /// The candidates that are far slower than the best, and by what factor.
    fn far_slower(&self, bytes: u64) -> Vec<(usize, f64)> {
        let best = self.best_ns(bytes);
        self.movers()
            .filter(|&index| self.candidates[index].role == Role::Contender)
            // A candidate that runs longer copies may owe its time over short ones to its start.
            .filter(|&index| !self.may_run_longer(index, next_length(bytes)))
            .filter_map(|index| Some((index, self.candidates[index].elimination_ns_at(bytes)?)))
            .filter(|&(_, ns)| ns > best * FAR_SLOWER)
            .map(|(index, ns)| (index, ns / best))
            .collect()
    }

    fn close_to_the_best(&self, bytes: u64, factor: f64) -> Vec<usize> {
        let limit = self.best_ns(bytes) * factor;
        let ns_at = |index: usize| self.candidates[index].elimination_ns_at(bytes);
        self.running().filter(|&index| ns_at(index).is_some_and(|ns| ns <= limit)).collect()
    }

    fn movers(&self) -> impl Iterator<Item = usize> + '_ {
        self.running().filter(|&index| self.candidates[index].class() == Class::Mover)
    }

    /// The least time of a mover over the first `bytes`.
    fn best_ns(&self, bytes: u64) -> f64 {
        let times =
            self.movers().filter_map(|index| self.candidates[index].elimination_ns_at(bytes));
        times.fold(f64::INFINITY, f64::min)
    }

    /// Whether an elimination round of `candidates` over `bytes` would take time that the final
    /// needs.
    fn is_too_long(&self, candidates: &[usize], bytes: u64) -> bool {
        let Some(time) = self.config.time else { return false };
        let cost: Duration = candidates.iter().map(|&index| self.cost_of(index, bytes)).sum();
        self.config.started.elapsed() + cost > time.mul_f64(ELIMINATION_SHARE_MAX)
    }

    /// Whether this share of the time is over.
    pub(crate) fn has_taken(&self, share: f64) -> bool {
        self.config.time.is_some_and(|time| self.config.started.elapsed() > time.mul_f64(share))
    }
}

fn next_length(bytes: u64) -> u64 {
    LENGTHS_BYTES.iter().copied().find(|&next| next > bytes).unwrap_or(PIECE_BYTES)
}

/// The longest that one elimination round may take.
fn longest_run(config: &Config) -> Duration {
    config.time.map_or(Duration::from_secs(1), |time| {
        (time / 40).clamp(Duration::from_millis(250), Duration::from_secs(2))
    })
}
