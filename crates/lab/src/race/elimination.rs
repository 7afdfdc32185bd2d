//! Short runs on the start of the source. They find out who works here at all, who is a contender
//! and what a run of the final will cost.

use std::time::Duration;

use super::candidate::{Class, LONG_BYTES, Progressing};
use super::config::Config;
use super::final_rounds::FLOOR_ROUNDS;
use super::runner::Race;
use crate::error::Error;
use crate::sample::{Place, Stage};
use crate::search::admission::{self, Prospect, admit};
use crate::trial::Task;
use crate::trial::digest::Digests;
use crate::words;

/// The lengths tried, each only by those who were quick enough on the one before: a byte at a time
/// takes a second for a MiB.
const LADDER_BYTES: [u64; 4] = [128 << 10, 1 << 20, LONG_BYTES, PIECE_BYTES];

/// The length of a full heat. It exceeds the last cache of most processors, and two workers find
/// enough in it to share.
pub(super) const PIECE_BYTES: u64 = 64 << 20;

/// Full heats that the quicker ones run, the climb of the ladder included.
const HEATS: u32 = 3;

/// Slower than the best by this factor after two full heats, a variant runs no more of them.
const NOT_CLOSE: f64 = 2.0;

/// The share of the time after which no heat is repeated.
const HEATS_SHARE: f64 = 0.3;

/// The share of the time beyond which no heat may reach: short heats and a final of several rounds
/// tell more than long heats alone.
const HEATS_SHARE_MAX: f64 = 0.5;

impl Race<'_> {
    /// Runs the heats.
    pub(super) fn run_heats(&mut self) -> Result<(), Error> {
        let mut lengths: Vec<u64> = Vec::new();
        for bytes in LADDER_BYTES {
            let load = self.bench.source.first(bytes);
            if lengths.last() != Some(&load.bytes) {
                lengths.push(load.bytes);
            }
        }
        let all: Vec<usize> = (0..self.entrants.len()).collect();
        for (rung, &bytes) in lengths.iter().enumerate() {
            let load = self.bench.source.first(bytes);
            let task = Task { digests: Digests::of(self.bench.source, &load)?, load };
            let quick: Vec<usize> =
                all.iter().copied().filter(|&i| rung == 0 || self.may_climb(i, bytes)).collect();
            if rung > 0 && self.is_too_long_a_heat(&quick, bytes) {
                return Ok(());
            }
            self.run_heat(&task, 1, &quick)?;
            self.drop_hopeless(&task)?;
            // With a number of rounds asked for nobody is left out for being slow, hence there is
            // nothing more to learn.
            let enough = bytes >= LONG_BYTES && self.config.rounds.is_some();
            if enough && self.config.time.is_none() {
                return Ok(());
            }
            if bytes == lengths[lengths.len() - 1] {
                return self.run_more_heats(&task);
            }
        }
        Ok(())
    }

    /// Repeats the full heat: once with all that came so far, since a single run may have been
    /// disturbed, and then with the closer ones.
    fn run_more_heats(&mut self, task: &Task) -> Result<(), Error> {
        for heat in 2..=HEATS {
            let factor = if heat == 2 { f64::INFINITY } else { NOT_CLOSE };
            let close = self.close_to_the_best(task.load.bytes, factor);
            if self.heats_time_is_up() {
                break;
            }
            self.run_heat(task, heat, &close)?;
        }
        Ok(())
    }

    /// Narrows the field for a final over `bytes`, where the time is limited.
    pub(super) fn admit_to_final(&mut self, bytes: u64) {
        if self.config.time.is_none() || self.config.rounds.is_some() {
            return;
        }
        let time_left = self.time_left();
        let (floors, copiers): (Vec<usize>, Vec<usize>) =
            self.running().partition(|&index| self.entrants[index].class() == Class::Floor);
        let prospects: Vec<Prospect> =
            copiers.iter().map(|&index| self.prospect(index, bytes)).collect();
        let admitted = admit(&prospects, time_left);
        let slow = (0..copiers.len()).filter(|place| !admitted.contains(place));
        // A floor is known well enough from the heats where it would take time from the race.
        let costly = floors.into_iter().filter(|&index| {
            self.entrants[index].cost_of(bytes) * FLOOR_ROUNDS > time_left / FLOORS_SHARE
        });
        let out: Vec<usize> = slow.map(|place| copiers[place]).chain(costly).collect();
        for index in out {
            let reason = "too slow in the heats for the time there is".to_owned();
            self.entrants[index].progressing = Progressing::OutInHeats(reason);
        }
    }

    /// What the heats told of an entrant, for runs over `bytes`.
    fn prospect(&self, index: usize, bytes: u64) -> Prospect {
        let entrant = &self.entrants[index];
        let heat_bytes = entrant.heat_bytes().max(1);
        let heat_ns = entrant.heat_ns(heat_bytes).unwrap_or(f64::INFINITY);
        Prospect {
            // Those that did not climb the ladder ran a shorter piece.
            heat_ns: heat_ns * PIECE_BYTES as f64 / heat_bytes as f64,
            run_cost: entrant.cost_of(bytes),
            always: entrant.class() == Class::Sharer,
        }
    }

    /// The share of the source that the time allows those that are close.
    pub(super) fn affordable_share(&self) -> f64 {
        if self.config.time.is_none() {
            return 1.0;
        }
        let whole = self.bench.source.whole().bytes;
        let prospects: Vec<Prospect> = self
            .running()
            .filter(|&index| self.entrants[index].class() != Class::Floor)
            .map(|index| self.prospect(index, whole))
            .collect();
        admission::affordable_share(&prospects, self.time_left())
    }

    fn run_heat(&mut self, task: &Task, heat: u32, entrants: &[usize]) -> Result<(), Error> {
        let order = self.plan.order(Stage::Heat, heat, entrants);
        for (place, index) in (1..).zip(order) {
            let place = Place { stage: Stage::Heat, round: heat, order_in_round: place };
            self.run_one(index, task, place)?;
        }
        Ok(())
    }

    /// Whether a run over `bytes` would be short enough.
    fn may_climb(&self, index: usize, bytes: u64) -> bool {
        let entrant = &self.entrants[index];
        entrant.progressing == Progressing::Running
            && !entrant.samples.is_empty()
            && entrant.cost_of(bytes) <= longest_heat(self.config)
    }

    /// Leaves out, aloud, those that are slower than the best beyond all hope, unless the user
    /// named them and gave the rounds they are to run.
    fn drop_hopeless(&mut self, task: &Task) -> Result<(), Error> {
        if self.config.named && self.config.rounds.is_some() {
            return Ok(());
        }
        // A single run may have been disturbed.
        let suspects: Vec<usize> =
            self.hopeless(task.load.bytes).into_iter().map(|(index, _)| index).collect();
        self.run_heat(task, 2, &suspects)?;
        for (index, ratio) in self.hopeless(task.load.bytes) {
            self.entrants[index].progressing = Progressing::OutInHeats(format!(
                "left out: about {} times slower than the best on the first {}",
                words::grouped(&format!("{ratio:.0}")),
                words::bytes(task.load.bytes)
            ));
        }
        Ok(())
    }

    /// Those that are slower than the best beyond all hope, and by what factor.
    fn hopeless(&self, bytes: u64) -> Vec<(usize, f64)> {
        let movers = || self.running().filter(|&i| self.entrants[i].class() == Class::Mover);
        let best = movers()
            .filter_map(|index| self.entrants[index].heat_ns(bytes))
            .min_by(f64::total_cmp)
            .unwrap_or(f64::INFINITY);
        movers()
            // One that did climb may owe its time on the lower rungs to its start.
            .filter(|&index| !self.may_climb(index, next_rung(bytes)))
            .filter_map(|index| Some((index, self.entrants[index].heat_ns(bytes)?)))
            .filter(|&(_, ns)| admission::is_hopeless(ns, best))
            .map(|(index, ns)| (index, ns / best))
            .collect()
    }

    fn close_to_the_best(&self, bytes: u64, factor: f64) -> Vec<usize> {
        let of_class = |index: usize| self.entrants[index].class();
        let best = self
            .running()
            .filter(|&index| of_class(index) == Class::Mover)
            .filter_map(|index| self.entrants[index].heat_ns(bytes))
            .min_by(f64::total_cmp)
            .unwrap_or(f64::INFINITY);
        self.running()
            .filter(|&index| {
                self.entrants[index].heat_ns(bytes).is_some_and(|ns| ns <= best * factor)
            })
            .collect()
    }

    /// Whether a heat of `entrants` over `bytes` would take time that the final needs.
    fn is_too_long_a_heat(&self, entrants: &[usize], bytes: u64) -> bool {
        let Some(time) = self.config.time else { return false };
        let cost: Duration = entrants.iter().map(|&i| self.entrants[i].cost_of(bytes)).sum();
        self.config.begun.elapsed() + cost > time.mul_f64(HEATS_SHARE_MAX)
    }

    fn heats_time_is_up(&self) -> bool {
        self.config.time.is_some_and(|time| self.config.begun.elapsed() > time.mul_f64(HEATS_SHARE))
    }
}

fn next_rung(bytes: u64) -> u64 {
    LADDER_BYTES.iter().copied().find(|&next| next > bytes).unwrap_or(PIECE_BYTES)
}

/// The part of the time, one in so many, that a floor may take.
const FLOORS_SHARE: u32 = 20;

/// The longest that one heat may take.
fn longest_heat(config: &Config) -> Duration {
    config.time.map_or(Duration::from_secs(1), |time| {
        (time / 40).clamp(Duration::from_millis(250), Duration::from_secs(2))
    })
}
