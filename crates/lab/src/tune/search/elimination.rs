//! What comes before the final of a contest: the start of the source by all, heats of the whole field, and
//! the search around the best of it.

use std::time::{Duration, Instant};

use super::{Contest, Search, narrow};
use crate::error::Error;
use crate::sample::Stage;
use crate::search::admission::is_hopeless;
use crate::tune::candidates::{self, Role, Standing};
use crate::tune::copy_slot::Length;
use crate::tune::runners::AtWork;

/// The shares of a situation's time after which copies of the start of a source end, the heats, and the
/// search around the best.
const SHORT_SHARE: f64 = 0.2;
const HEATS_SHARE: f64 = 0.45;
const SEARCH_SHARE: f64 = 0.6;

/// Runs that a search takes: less time than for so many is extended if it can be.
const RUNS_WANTED: u32 = 40;

/// Heats of the whole field.
const HEATS: usize = 3;

/// How often each runs in a heat, where there is time.
const REPEATS: usize = 3;

/// How often the search goes on around a new best.
const STEPS: usize = 4;

impl Contest {
    /// Leaves those to the final that may be the best, of a search that began at `begun`.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn narrow_the_field(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        begun: Instant,
    ) -> Result<(), Error> {
        candidates::let_in(&mut self.arms);
        search.extend(begun, at_work.cost_of(0).unwrap_or_default() * RUNS_WANTED);
        let share = search.deadline.saturating_duration_since(begun);
        self.leave_out_the_hopeless(search, at_work, begun + share.mul_f64(SHORT_SHARE))?;
        self.heats(search, at_work, begun + share.mul_f64(HEATS_SHARE))?;
        self.keep_one_default();
        self.search_around(search, at_work, begun + share.mul_f64(SEARCH_SHARE))?;
        candidates::admit_to_final(&mut self.arms);
        Ok(())
    }

    /// Has those run that there was no time for in the visits so far, and the best of the others with them.
    /// Returns whether one of them goes to the final.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn let_the_waiting_in(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        begun: Instant,
    ) -> Result<bool, Error> {
        let mut waiting = candidates::let_in(&mut self.arms);
        if waiting.is_empty() {
            return Ok(false);
        }
        waiting.sort_by_key(|&index| (at_work.costs[index].is_none(), at_work.costs[index]));
        let share = search.deadline.saturating_duration_since(begun);
        let end = begun + share.mul_f64(SEARCH_SHARE);
        for repeat in 1..=2 {
            for index in waiting.iter().copied().chain(candidates::best(&self.arms)) {
                // One more is tried in each visit, so that there is an end to it.
                let needed = repeat == 1 && index == waiting[0];
                let end = if needed { search.deadline } else { end };
                if self.arms[index].runs() && !self.is_over(end, at_work.cost_of(index)) {
                    self.heat(search, at_work, index, HEATS + 1)?;
                }
            }
        }
        candidates::admit_to_final(&mut self.arms);
        Ok(waiting.iter().any(|&index| self.arms[index].runs()))
    }

    /// Copies the start of the source by each of the others, where all of it is long: whoever takes many
    /// times as long as the best is not asked for more.
    fn leave_out_the_hopeless(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        end: Instant,
    ) -> Result<(), Error> {
        let mut times = vec![None; self.arms.len()];
        for (index, time) in times.iter_mut().enumerate() {
            if self.arms[index].runs() && !self.is_over(end, None) {
                *time = self.short_run(search, at_work, index)?;
            }
        }
        let moving = |index: &usize| !self.arms[*index].shares_extents;
        let best_ns = (0..times.len()).filter(moving).filter_map(|index| times[index]);
        let best_ns = best_ns.min_by(f64::total_cmp).unwrap_or(0.0);
        for (arm, time) in self.arms.iter_mut().zip(times) {
            let hopeless = time.is_some_and(|ns| is_hopeless(ns, best_ns));
            if hopeless && arm.runs() {
                arm.standing = Standing::Slow;
            }
        }
        Ok(())
    }

    /// Copies the start of the source and foretells what all of it will cost; `None` where it has no
    /// start of its own, or the arm refuses.
    pub(super) fn short_run(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        index: usize,
    ) -> Result<Option<f64>, Error> {
        let Some(times) = search.lanes[0].times_short() else { return Ok(None) };
        let known = at_work.costs[index];
        let begun = Instant::now();
        let run = self.run_length(search, at_work, index, (Stage::WarmUp, 0), Length::Short)?;
        at_work.misses = 0;
        let Some(measured) = run else { return Ok(None) };
        let own = Duration::from_secs_f64(measured.elapsed_ns * times / 1e9);
        // What lies around the timed part grows less than that does.
        at_work.costs[index] = known.or(Some(own + begun.elapsed()));
        Ok(Some(measured.elapsed_ns))
    }

    /// Runs the field a few times, each time with fewer.
    fn heats(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        end: Instant,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        let share = end.saturating_duration_since(begun) / narrow(HEATS);
        for heat in 1..=HEATS {
            let own_end = begun + share * narrow(heat);
            for repeat in 1..=REPEATS {
                let running: Vec<usize> =
                    (0..self.arms.len()).filter(|&index| self.arms[index].runs()).collect();
                let number = narrow((heat - 1) * REPEATS + repeat);
                let mut order = search.plan.order(Stage::Heat, number, &running);
                // Should there be no time for all of them, these are there, and of the others those
                // that were the quickest with a short file.
                order.sort_by_key(|&index| {
                    let candidate = self.arms[index].role == Role::Candidate;
                    let cost = at_work.costs[index].filter(|_| heat == 1);
                    (candidate, cost.is_none() && heat == 1, cost)
                });
                let is_candidate = |index: &usize| self.arms[*index].role == Role::Candidate;
                let first = order.iter().copied().find(is_candidate);
                for index in order {
                    // Without these there is nothing to compare with: what a copy does anyway, and the
                    // one that promises most.
                    let needed = self.arms[index].role != Role::Candidate || Some(index) == first;
                    let needed = number == 1 && needed;
                    let end = match repeat {
                        _ if needed => search.deadline,
                        1 => end,
                        _ => own_end,
                    };
                    if !self.is_over(end, at_work.cost_of(index)) {
                        self.heat(search, at_work, index, heat)?;
                    }
                }
            }
            candidates::halve(&mut self.arms, heat);
        }
        Ok(())
    }

    /// What follows the default's first working way is never used, and has to be as fast as any other
    /// to stay.
    fn keep_one_default(&mut self) {
        let default = self.default().clone();
        for arm in self.arms.iter_mut().filter(|arm| arm.role == Role::Baseline) {
            let stays = arm.variant == default || Some(&arm.variant) == self.present.as_ref();
            if !stays && arm.name != "copy_file_range" {
                arm.role = Role::Candidate;
            }
        }
        candidates::halve(&mut self.arms, HEATS);
    }

    /// Looks at half and twice the buffers, depths and workers of the leaders, and on from there as long
    /// as that finds a better one.
    fn search_around(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        end: Instant,
    ) -> Result<(), Error> {
        for step in 1..=STEPS {
            let Some((best, _)) = candidates::best_heat(&self.arms) else { return Ok(()) };
            let found =
                candidates::neighbours(&self.arms, &self.case, search.workers_max, step == 1);
            if found.is_empty() {
                return Ok(());
            }
            let first = self.arms.len();
            for arm in found {
                self.arms.push(arm);
                at_work.add(at_work.costs[best]);
            }
            // Twice, and the best with them: what a heat tells depends on the moment.
            for _ in 0..2 {
                for index in (first..self.arms.len()).chain([best]) {
                    if self.arms[index].runs() && !self.is_over(end, at_work.cost_of(index)) {
                        self.heat(search, at_work, index, HEATS + step)?;
                    }
                }
            }
            candidates::halve(&mut self.arms, HEATS + step);
            if candidates::best_heat(&self.arms).is_none_or(|(now, _)| now < first) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn heat(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        index: usize,
        heat: usize,
    ) -> Result<(), Error> {
        let run = self.run(search, at_work, index, (Stage::Heat, narrow(heat)))?;
        if let Some(measured) = run.filter(|measured| measured.counted) {
            self.arms[index].heats_ns.push(measured.elapsed_ns);
        }
        Ok(())
    }
}
