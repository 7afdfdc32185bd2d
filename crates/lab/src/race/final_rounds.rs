//! The final rounds, which decide the race: which candidates run in each, when one is dropped, and
//! when the race stops.

use std::time::Duration;

use super::heuristics::{FLOOR_ROUNDS, OVERTIME};
use super::runner::Race;
use crate::error::Error;
use crate::sample::Stage;
use crate::search::admission::ROUNDS_MIN;
use crate::search::candidate::{self, Class};
use crate::search::winner::ROUNDS_TO_MEET_A_SLOW_MODE;
use crate::trial::Task;

impl Race<'_> {
    /// Runs the final and returns the number of whole rounds.
    pub(super) fn run_final(&mut self, task: &Task) -> Result<u32, Error> {
        self.admit_to_final(task.load.bytes);
        self.warm_up(task)?;
        let mut round = 0;
        while self.config.rounds.is_none_or(|rounds| round < rounds) {
            round += 1;
            if !self.run_round(task, round)? {
                return Ok(round - 1);
            }
            if self.state_is_out_of_reach() {
                return Ok(round);
            }
            if self.config.rounds.is_none() && self.is_decided(round) {
                return Ok(round);
            }
        }
        Ok(round)
    }

    /// The first run over the whole load uses memory that was not used lately, which in a virtual
    /// machine the host has to supply first. The fastest candidate makes it, and it does not count.
    fn warm_up(&mut self, task: &Task) -> Result<(), Error> {
        let quickest = self
            .running()
            .filter(|&index| self.candidates[index].class() != Class::Floor)
            .min_by_key(|&index| self.candidates[index].cost);
        quickest.map_or(Ok(()), |index| self.run_one(index, task, (Stage::WarmUp, 1, 1)))
    }

    /// Runs one round; false when the time ended it early.
    fn run_round(&mut self, task: &Task, round: u32) -> Result<bool, Error> {
        let running: Vec<usize> = self
            .running()
            .filter(|&i| round <= self.floor_rounds() || self.candidates[i].class() != Class::Floor)
            .collect();
        let order = self.run_order.order(Stage::Final, round, &running);
        for (place, index) in (1..).zip(order) {
            if self.time_is_up(round, self.cost_of(index, task.load.bytes)) {
                return Ok(false);
            }
            self.run_one(index, task, (Stage::Final, round, place))?;
        }
        Ok(true)
    }

    fn floor_rounds(&self) -> u32 {
        self.config.rounds.unwrap_or(FLOOR_ROUNDS)
    }

    /// Whether a run that will take `cost` has to be left out. The rounds without which there can
    /// be no verdict may take a little longer than the time.
    fn time_is_up(&self, round: u32, cost: Duration) -> bool {
        let Some(time) = self.config.time else { return false };
        let allowed = if round <= ROUNDS_MIN { time.mul_f64(1.0 + OVERTIME) } else { time };
        self.config.started.elapsed() + cost > allowed
    }

    /// Drops those that are shown to be slower, so that the time goes to those that are close, and
    /// tells whether only the best of each class are left. Those that were dropped before the best
    /// had its first slow run may come back.
    fn is_decided(&mut self, round: u32) -> bool {
        if round < ROUNDS_MIN {
            return false;
        }
        // The best may have a slow mode that it did not meet so far.
        let early = round < ROUNDS_TO_MEET_A_SLOW_MODE;
        let mut decided = !early;
        for class in [Class::Mover, Class::Sharer] {
            let field = candidate::field(&self.candidates, |it| it.class() == class);
            candidate::drop_beaten(&mut self.candidates, &field, early, |_, _| true);
            decided &=
                self.running().filter(|&it| self.candidates[it].class() == class).count() <= 1;
        }
        decided
    }

    /// Whether no run of any copier had the page cache state that was asked for. More runs would
    /// not have it either.
    fn state_is_out_of_reach(&self) -> bool {
        let copiers = self.candidates.iter().filter(|candidate| candidate.class() != Class::Floor);
        let mut samples = copiers.flat_map(|candidate| self.finals_of(candidate)).peekable();
        samples.peek().is_some() && samples.all(|sample| !sample.measured.counted)
    }
}
