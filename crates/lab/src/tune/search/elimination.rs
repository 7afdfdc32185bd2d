//! The part of a search before the final: the start of the source by every candidate, elimination
//! rounds, and the neighbours of the best.

use std::time::Instant;

use super::state::{Search, SearchContext, narrow};
use crate::error::Error;
use crate::sample::Stage;
use crate::search::admission::is_far_slower;
use crate::search::candidate::{Role, Status};
use crate::tune::candidates;
use crate::tune::heuristics::{
    ELIMINATION_ROUNDS, ELIMINATION_SHARE, REPEATS, RUNS_WANTED, SEARCH_SHARE, SHORT_SHARE, STEPS,
};

impl Search {
    /// Drops candidates until only those that may be the best are left for the final. The visit
    /// began at `started`.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn eliminate(
        &mut self,
        context: &mut SearchContext<'_>,
        started: Instant,
    ) -> Result<(), Error> {
        candidates::admit_waiting(&mut self.candidates);
        context.extend(started, self.cost_of(0).unwrap_or_default() * RUNS_WANTED);
        let share = context.deadline.saturating_duration_since(started);
        self.drop_far_slower(context, started + share.mul_f64(SHORT_SHARE))?;
        self.run_elimination(context, started + share.mul_f64(ELIMINATION_SHARE))?;
        self.keep_one_default();
        self.search_around(context, started + share.mul_f64(SEARCH_SHARE))?;
        candidates::admit_to_final(&mut self.candidates);
        Ok(())
    }

    /// Runs the candidates that there was no time for so far, together with the best of the others.
    /// Returns whether one of them reaches the final.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn try_waiting(
        &mut self,
        context: &mut SearchContext<'_>,
        started: Instant,
    ) -> Result<bool, Error> {
        let mut waiting = candidates::admit_waiting(&mut self.candidates);
        if waiting.is_empty() {
            return Ok(false);
        }
        waiting.sort_by_key(|&index| (self.own_cost(index).is_none(), self.own_cost(index)));
        let share = context.deadline.saturating_duration_since(started);
        let end = started + share.mul_f64(SEARCH_SHARE);
        for repeat in 1..=2 {
            for index in waiting.iter().copied().chain(candidates::best(&self.candidates)) {
                // One more is tried in each visit, so that there is an end to it.
                let needed = repeat == 1 && index == waiting[0];
                let end = if needed { context.deadline } else { end };
                if self.candidates[index].runs() && !self.is_over(end, self.cost_of(index)) {
                    self.run_in_elimination(context, index, ELIMINATION_ROUNDS + 1)?;
                }
            }
        }
        candidates::admit_to_final(&mut self.candidates);
        Ok(waiting.iter().any(|&index| self.candidates[index].runs()))
    }

    /// Copies the start of the source by each of the others, if the whole is long: a variant that
    /// takes many times as long as the best is dropped.
    fn drop_far_slower(
        &mut self,
        context: &mut SearchContext<'_>,
        end: Instant,
    ) -> Result<(), Error> {
        let mut times = vec![None; self.candidates.len()];
        for (index, time) in times.iter_mut().enumerate() {
            if self.candidates[index].runs() && !self.is_over(end, None) {
                *time = self.short_run(context, index)?;
            }
        }
        let moving = |index: &usize| !self.candidates[*index].shares_extents;
        let best_ns = (0..times.len()).filter(moving).filter_map(|index| times[index]);
        let best_ns = best_ns.min_by(f64::total_cmp).unwrap_or(0.0);
        for (candidate, time) in self.candidates.iter_mut().zip(times) {
            let far_slower = time.is_some_and(|ns| is_far_slower(ns, best_ns));
            if far_slower && candidate.runs() {
                candidate.status = Status::Slow(String::new());
            }
        }
        Ok(())
    }

    /// Runs all candidates a few times, each time fewer.
    fn run_elimination(
        &mut self,
        context: &mut SearchContext<'_>,
        end: Instant,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let share = end.saturating_duration_since(started) / narrow(ELIMINATION_ROUNDS);
        for round in 1..=ELIMINATION_ROUNDS {
            let own_end = started + share * narrow(round);
            for repeat in 1..=REPEATS {
                let running: Vec<usize> = (0..self.candidates.len())
                    .filter(|&index| self.candidates[index].runs())
                    .collect();
                let number = narrow((round - 1) * REPEATS + repeat);
                let mut order = context.plan.order(Stage::Elimination, number, &running);
                // If the time does not suffice for all, the baselines have run, and those that were
                // fastest with a short file.
                order.sort_by_key(|&index| {
                    let contender = self.candidates[index].role == Role::Contender;
                    let cost = self.own_cost(index).filter(|_| round == 1);
                    (contender, cost.is_none() && round == 1, cost)
                });
                let is_contender = |index: &usize| self.candidates[*index].role == Role::Contender;
                let first = order.iter().copied().find(is_contender);
                for index in order {
                    // Without these there is nothing to compare with: the default, and the most
                    // promising candidate.
                    let needed =
                        self.candidates[index].role != Role::Contender || Some(index) == first;
                    let needed = number == 1 && needed;
                    let end = match repeat {
                        _ if needed => context.deadline,
                        1 => end,
                        _ => own_end,
                    };
                    if !self.is_over(end, self.cost_of(index)) {
                        self.run_in_elimination(context, index, round)?;
                    }
                }
            }
            candidates::drop_slow(&mut self.candidates, round);
        }
        Ok(())
    }

    /// Of the default variants only the first that works is used. The others stay only if they are
    /// fast.
    fn keep_one_default(&mut self) {
        let default = self.default().clone();
        for candidate in
            self.candidates.iter_mut().filter(|candidate| candidate.role == Role::Baseline)
        {
            let stays =
                candidate.variant == default || Some(&candidate.variant) == self.present.as_ref();
            if !stays && candidate.name != "copy_file_range" {
                candidate.role = Role::Contender;
            }
        }
        candidates::drop_slow(&mut self.candidates, ELIMINATION_ROUNDS);
    }

    /// Tries half and twice the buffers, depths and workers of the leaders, and repeats this as
    /// long as it finds a better one.
    fn search_around(
        &mut self,
        context: &mut SearchContext<'_>,
        end: Instant,
    ) -> Result<(), Error> {
        for step in 1..=STEPS {
            let Some((best, _)) = candidates::best_in_elimination(&self.candidates) else {
                return Ok(());
            };
            let found = candidates::neighbours(
                &self.candidates,
                &self.case,
                context.workers_max,
                step == 1,
            );
            if found.is_empty() {
                return Ok(());
            }
            let first = self.candidates.len();
            self.candidates.extend(found);
            // Twice, and the best with them: what an elimination round tells depends on the moment.
            for _ in 0..2 {
                for index in (first..self.candidates.len()).chain([best]) {
                    if self.candidates[index].runs() && !self.is_over(end, self.cost_of(index)) {
                        self.run_in_elimination(context, index, ELIMINATION_ROUNDS + step)?;
                    }
                }
            }
            candidates::drop_slow(&mut self.candidates, ELIMINATION_ROUNDS + step);
            if candidates::best_in_elimination(&self.candidates).is_none_or(|(now, _)| now < first)
            {
                return Ok(());
            }
        }
        Ok(())
    }

    fn run_in_elimination(
        &mut self,
        context: &mut SearchContext<'_>,
        index: usize,
        round: usize,
    ) -> Result<(), Error> {
        self.run(context, index, (Stage::Elimination, narrow(round))).map(drop)
    }
}
