//! The final rounds, which decide the race: which candidates run in each, when one is dropped, and
//! when the race stops.

use std::time::Duration;

use super::heuristics::{BASELINE_ROUNDS, FLOOR_ROUNDS, OVERTIME, ROUNDS_A_VISIT};
use super::runner::Race;
use crate::error::Error;
use crate::sample::Stage;
use crate::search::admission::ROUNDS_MIN;
use crate::search::candidate::{self, Candidate, Class, Role, Status};
use crate::search::run_order;
use crate::search::winner::ROUNDS_TO_MEET_A_SLOW_MODE;
use crate::stats::Ratio;
use crate::trial::Task;

impl Race<'_> {
    /// Runs the final and returns the number of whole rounds.
    pub(crate) fn run_final(&mut self, tasks: &[Task]) -> Result<u32, Error> {
        self.admit_to_final(tasks[0].load.bytes);
        self.warm_up(tasks)?;
        let before = self.config.visit.map_or(0, |visit| visit.rounds_before);
        let last = match self.config.visit {
            Some(_) => Some(before + ROUNDS_A_VISIT),
            None => self.config.rounds,
        };
        let mut round = before;
        while last.is_none_or(|last| round < last) {
            round += 1;
            if !self.run_round(tasks, round)? {
                return Ok(round - 1);
            }
            let may_end = self.config.rounds.is_none();
            if self.state_is_out_of_reach() || (may_end && self.is_decided(round)) {
                break;
            }
        }
        Ok(round)
    }

    /// The first run over the whole load uses memory that was not used lately, which in a virtual
    /// machine the host has to supply first. The fastest candidate makes it, and it does not count.
    fn warm_up(&mut self, tasks: &[Task]) -> Result<(), Error> {
        let quickest = self
            .running()
            .filter(|&index| self.candidates[index].class() != Class::Floor)
            .min_by_key(|&index| self.candidates[index].cost);
        quickest.map_or(Ok(()), |index| self.run_one(index, tasks, (Stage::WarmUp, 1, 1)))
    }

    /// Runs one round; false when the time ended it early.
    fn run_round(&mut self, tasks: &[Task], round: u32) -> Result<bool, Error> {
        let with_floors = round <= self.config.rounds.unwrap_or(FLOOR_ROUNDS);
        let running: Vec<usize> = self
            .running()
            .filter(|&index| with_floors || self.candidates[index].class() != Class::Floor)
            .collect();
        let order = run_order::order(self.config.seed, Stage::Final, round, &running);
        for (place, index) in (1..).zip(order) {
            if self.time_is_up(round, self.cost_of(index, tasks[0].load.bytes)) {
                return Ok(false);
            }
            self.run_one(index, tasks, (Stage::Final, round, place))?;
        }
        Ok(true)
    }

    /// Whether a run that will take `cost` has to be left out. The rounds without which there can
    /// be no verdict may take a little longer than the time.
    fn time_is_up(&self, round: u32, cost: Duration) -> bool {
        let Some(time) = self.config.time else { return false };
        let allowed = if round <= ROUNDS_MIN { time.mul_f64(1.0 + OVERTIME) } else { time };
        self.config.started.elapsed() + cost > allowed
    }

    /// Whether more rounds would not change the verdict. Drops those that are shown to be slower, so that the
    /// time goes to those that are close.
    fn is_decided(&mut self, round: u32) -> bool {
        let margin = self.config.visit.map_or(0.0, |visit| visit.margin);
        // The best may have a slow mode that it did not meet so far.
        let early = round < ROUNDS_TO_MEET_A_SLOW_MODE;
        round >= ROUNDS_MIN && drop_beaten(&mut self.candidates, early, margin)
    }

    /// Whether no run of any copier had the page cache state that was asked for. More runs would
    /// not have it either.
    fn state_is_out_of_reach(&self) -> bool {
        let copiers = self.candidates.iter().filter(|candidate| candidate.class() != Class::Floor);
        let mut samples = copiers.flat_map(|candidate| self.finals_of(candidate)).peekable();
        samples.peek().is_some() && samples.all(|sample| !sample.measured.counted)
    }
}

/// Drops the candidates that are shown to be slower by more than `margin`: baselines, which a user wants to
/// compare with, after [`BASELINE_ROUNDS`]. Those that were dropped before the best had its first slow run may
/// come back. Returns whether in each class all that are left are as good as the best, unless it is `early`.
fn drop_beaten(candidates: &mut [Candidate], early: bool, margin: f64) -> bool {
    let is_known = |it: &Candidate| it.finals_ns.len() >= BASELINE_ROUNDS;
    let may_leave = |it: &Candidate, best: &Candidate| {
        let by_more = |ratio: Ratio| ratio.estimate > 1.0 + margin;
        (it.role == Role::Contender || is_known(it))
            && (margin == 0.0 || it.ratio(best).is_some_and(by_more))
    };
    for it in &mut *candidates {
        if it.role == Role::OtherCopier && it.runs() && is_known(it) {
            it.status = Status::Beaten;
        }
    }
    let mut decided = !early;
    for class in [Class::Mover, Class::Sharer] {
        let of_class = |it: &Candidate| it.class() == class && it.role != Role::OtherCopier;
        let field = candidate::field(candidates, of_class);
        candidate::drop_beaten(candidates, &field, early, may_leave);
        decided &= candidate::is_settled(candidates, &field);
    }
    decided
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::candidate::raced;

    fn names(candidates: &[Candidate]) -> Vec<&str> {
        candidates.iter().filter(|it| it.runs()).map(|it| it.name.as_str()).collect()
    }

    /// Fast four times in five and six times slower otherwise: twice the fast time on average. A steady
    /// variant at 1.5 times the fast one comes back when that shows.
    #[test]
    fn one_that_was_dropped_before_the_best_was_slow_comes_back() {
        let quick: [f64; 11] = std::array::from_fn(|run| {
            if [4, 9].contains(&run) { 600.0 } else { 100.0 + (run % 3) as f64 }
        });
        let steady = [150.0, 151.0, 150.0, 151.0];
        let mut all = [
            raced("splice", Role::Contender, &quick[..4]),
            raced("sendfile", Role::Contender, &steady),
            raced("stdio:4K", Role::Contender, &steady.map(|ns| 2.0 * ns)),
        ];
        assert!(!drop_beaten(&mut all, false, 0.0));
        assert_eq!(names(&all), ["splice"], "nothing speaks for the others so far");
        all[0].finals_ns = raced("splice", Role::Contender, &quick).finals_ns;
        assert!(!drop_beaten(&mut all, false, 0.0));
        assert_eq!(names(&all), ["splice", "sendfile"]);
    }

    #[test]
    fn a_final_ends_when_nothing_is_left_to_tell() {
        let noise = [0.0, 1.0, -1.0, 0.5, -0.5, 0.2, 0.4, -0.1, 0.3, -0.8, 0.6];
        let times = |middle: f64, spread: f64| noise.map(|n| middle + spread * n);
        let one = raced("sendfile", Role::Contender, &times(100.0, 0.1));
        let slower = raced("splice", Role::Contender, &times(120.0, 0.1));
        let equal = raced("read_write:256K", Role::Baseline, &times(100.2, 0.1));
        let open = [90.0, 130.0, 95.0, 99.0, 140.0, 80.0, 90.0, 130.0, 95.0, 99.0, 140.0];
        let open = raced("mmap", Role::Baseline, &open);
        let ends = |all: &[Candidate]| drop_beaten(&mut all.to_vec(), false, 0.0);
        assert!(ends(&[one.clone(), slower.clone(), equal.clone()]));
        assert!(!ends(&[one.clone(), open]));
        let mut gone = raced("splice", Role::Contender, &times(50.0, 0.1));
        gone.status = Status::Refused("no more".to_owned());
        assert!(ends(&[one.clone(), gone, equal.clone()]), "it is no longer the best");
        let few = raced("read_write:256K", Role::Baseline, &[120.0, 121.0]);
        assert!(!ends(&[one.clone(), few]), "a baseline is not dropped so early");
        let gnu_cp = Candidate { role: Role::OtherCopier, ..one.clone() };
        let mut all = [one, slower, equal, gnu_cp];
        assert!(!drop_beaten(&mut all, true, 0.0), "a slow mode may show itself yet");
        assert_eq!(names(&all), ["sendfile", "read_write:256K"]);
        all[1].status = Status::Running;
        assert!(!drop_beaten(&mut all, false, 0.25));
        assert_eq!(names(&all).len(), 3, "it is slower, and not by so much");
    }
}
