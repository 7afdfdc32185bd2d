//! The part of a search before the final: the start of the source by every candidate, elimination
//! rounds, and the neighbours of the best.

use std::time::{Duration, Instant};

use super::{Search, SearchContext, narrow};
use crate::error::Error;
use crate::sample::Stage;
use crate::search::admission::is_far_slower;
use crate::tune::candidates::{self, Role, Status};
use crate::tune::copy_slot::Length;

/// The shares of a situation's time after which copies of the start of a source end, the
/// elimination rounds, and the search around the best.
const SHORT_SHARE: f64 = 0.2;
const ELIMINATION_SHARE: f64 = 0.45;
const SEARCH_SHARE: f64 = 0.6;

/// Runs that a search takes: less time than for so many is extended if it can be.
const RUNS_WANTED: u32 = 40;

/// Elimination rounds of the whole field.
const ELIMINATION_ROUNDS: usize = 3;

/// How often each runs in an elimination round, where there is time.
const REPEATS: usize = 3;

/// How often the search goes on around a new best.
const STEPS: usize = 4;

impl Search {
    /// Leaves those to the final that may be the best, of a search that began at `begun`.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn eliminate(
        &mut self,
        context: &mut SearchContext<'_>,
        begun: Instant,
    ) -> Result<(), Error> {
        candidates::admit_waiting(&mut self.candidates);
        context.extend(begun, context.started.cost_of(0).unwrap_or_default() * RUNS_WANTED);
        let share = context.deadline.saturating_duration_since(begun);
        self.drop_far_slower(context, begun + share.mul_f64(SHORT_SHARE))?;
        self.run_elimination(context, begun + share.mul_f64(ELIMINATION_SHARE))?;
        self.keep_one_default();
        self.search_around(context, begun + share.mul_f64(SEARCH_SHARE))?;
        candidates::admit_to_final(&mut self.candidates);
        Ok(())
    }

    /// Has those run that there was no time for in the visits so far, and the best of the others
    /// with them. Returns whether one of them goes to the final.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn try_waiting(
        &mut self,
        context: &mut SearchContext<'_>,
        begun: Instant,
    ) -> Result<bool, Error> {
        let mut waiting = candidates::admit_waiting(&mut self.candidates);
        if waiting.is_empty() {
            return Ok(false);
        }
        waiting.sort_by_key(|&index| {
            (context.started.costs[index].is_none(), context.started.costs[index])
        });
        let share = context.deadline.saturating_duration_since(begun);
        let end = begun + share.mul_f64(SEARCH_SHARE);
        for repeat in 1..=2 {
            for index in waiting.iter().copied().chain(candidates::best(&self.candidates)) {
                // One more is tried in each visit, so that there is an end to it.
                let needed = repeat == 1 && index == waiting[0];
                let end = if needed { context.deadline } else { end };
                if self.candidates[index].runs()
                    && !self.is_over(end, context.started.cost_of(index))
                {
                    self.run_in_elimination(context, index, ELIMINATION_ROUNDS + 1)?;
                }
            }
        }
        candidates::admit_to_final(&mut self.candidates);
        Ok(waiting.iter().any(|&index| self.candidates[index].runs()))
    }

    /// Copies the start of the source by each of the others, where all of it is long: whoever takes
    /// many times as long as the best is not asked for more.
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
            let hopeless = time.is_some_and(|ns| is_far_slower(ns, best_ns));
            if hopeless && candidate.runs() {
                candidate.status = Status::Slow;
            }
        }
        Ok(())
    }

    /// Copies the start of the source and foretells what all of it will cost; `None` where it has
    /// no start of its own, or the candidate refuses.
    pub(super) fn short_run(
        &mut self,
        context: &mut SearchContext<'_>,
        index: usize,
    ) -> Result<Option<f64>, Error> {
        let Some(times) = context.slots[0].times_short() else { return Ok(None) };
        let known = context.started.costs[index];
        let begun = Instant::now();
        let run = self.run_length(context, index, (Stage::WarmUp, 0), Length::Short)?;
        context.started.misses = 0;
        let Some(measured) = run else { return Ok(None) };
        let own = Duration::from_secs_f64(measured.elapsed_ns * times / 1e9);
        // What lies around the timed part grows less than that does.
        context.started.costs[index] = known.or(Some(own + begun.elapsed()));
        Ok(Some(measured.elapsed_ns))
    }

    /// Runs the field a few times, each time with fewer.
    fn run_elimination(
        &mut self,
        context: &mut SearchContext<'_>,
        end: Instant,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        let share = end.saturating_duration_since(begun) / narrow(ELIMINATION_ROUNDS);
        for heat in 1..=ELIMINATION_ROUNDS {
            let own_end = begun + share * narrow(heat);
            for repeat in 1..=REPEATS {
                let running: Vec<usize> = (0..self.candidates.len())
                    .filter(|&index| self.candidates[index].runs())
                    .collect();
                let number = narrow((heat - 1) * REPEATS + repeat);
                let mut order = context.plan.order(Stage::Elimination, number, &running);
                // Should there be no time for all of them, these are there, and of the others those
                // that were the quickest with a short file.
                order.sort_by_key(|&index| {
                    let contender = self.candidates[index].role == Role::Contender;
                    let cost = context.started.costs[index].filter(|_| heat == 1);
                    (contender, cost.is_none() && heat == 1, cost)
                });
                let is_contender = |index: &usize| self.candidates[*index].role == Role::Contender;
                let first = order.iter().copied().find(is_contender);
                for index in order {
                    // Without these there is nothing to compare with: what a copy does anyway, and
                    // the one that promises most.
                    let needed =
                        self.candidates[index].role != Role::Contender || Some(index) == first;
                    let needed = number == 1 && needed;
                    let end = match repeat {
                        _ if needed => context.deadline,
                        1 => end,
                        _ => own_end,
                    };
                    if !self.is_over(end, context.started.cost_of(index)) {
                        self.run_in_elimination(context, index, heat)?;
                    }
                }
            }
            candidates::drop_slow(&mut self.candidates, heat);
        }
        Ok(())
    }

    /// What follows the default's first working way is never used, and has to be as fast as any
    /// other to stay.
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

    /// Looks at half and twice the buffers, depths and workers of the leaders, and on from there as
    /// long as that finds a better one.
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
            for candidate in found {
                self.candidates.push(candidate);
                context.started.add(context.started.costs[best]);
            }
            // Twice, and the best with them: what a elimination round tells depends on the moment.
            for _ in 0..2 {
                for index in (first..self.candidates.len()).chain([best]) {
                    if self.candidates[index].runs()
                        && !self.is_over(end, context.started.cost_of(index))
                    {
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
        heat: usize,
    ) -> Result<(), Error> {
        let run = self.run(context, index, (Stage::Elimination, narrow(heat)))?;
        if let Some(measured) = run.filter(|measured| measured.counted) {
            self.candidates[index].elimination_ns.push(measured.elapsed_ns);
        }
        Ok(())
    }
}
