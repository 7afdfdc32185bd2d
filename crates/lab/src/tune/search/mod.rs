//! The search for the best variant of one case: elimination rounds, neighbours of the best, then
//! shuffled final rounds. A search can be continued with more time.

mod elimination;
mod state;

use std::time::{Duration, Instant};

use super::candidates;
use crate::error::Error;
use crate::sample::Stage;
use crate::search::admission::ROUNDS_MIN;
use crate::search::candidate::{Candidate, Role};
use crate::tune::heuristics::{
    MARGIN_AT_FIRST, MISSES_MAX, ROUNDS_A_VISIT, ROUNDS_MAX, RUNS_MIN, SHORT_ROUNDS_A_VISIT,
    SHORT_VISIT, VISITS_TO_SETTLE,
};

pub(super) use state::{PriorKnowledge, Search, SearchContext};

impl Search {
    /// Starts or continues the search, until it has an answer or the time is over.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn search(&mut self, context: &mut SearchContext<'_>) -> Result<(), Error> {
        let started = Instant::now();
        self.visits += 1;
        let result = self.search_with(context, started);
        self.took += started.elapsed();
        result
    }

    fn search_with(
        &mut self,
        context: &mut SearchContext<'_>,
        started: Instant,
    ) -> Result<(), Error> {
        if !self.elimination_done {
            self.why_not.clear();
            self.warm_up(context)?;
            if !self.why_not.is_empty() {
                return Ok(());
            }
            self.eliminate(context, started)?;
            let tried = |candidate: &Candidate| {
                candidate.role == Role::Contender && !candidate.elimination_ns.is_empty()
            };
            self.elimination_done = self.candidates.iter().any(tried);
        } else {
            self.warm_up_again(context)?;
        }
        let (candidates, rounds) = (self.candidates.clone(), self.rounds);
        if self.visits > 1 && self.try_waiting(context, started)? {
            candidates::restart_final(&mut self.candidates);
            self.rounds = 0;
        }
        self.finals(context)?;
        if self.rounds < ROUNDS_MIN && rounds >= ROUNDS_MIN {
            // The time did not suffice. The results of the visit before still hold.
            (self.candidates, self.rounds) = (candidates, rounds);
        }
        self.conclude(context);
        Ok(())
    }

    /// The first runs use memory that was not used lately, which in a virtual machine the host has
    /// to supply first, and tell whether the state can be had. They are not counted.
    fn warm_up(&mut self, context: &mut SearchContext<'_>) -> Result<(), Error> {
        let mut missed = String::new();
        for run in 1..=MISSES_MAX {
            let Some(index) = self.candidates.iter().position(Candidate::runs) else { break };
            if self.own_cost(index).is_none() {
                self.short_run(context, index)?;
            }
            let cost = self.own_cost(index).unwrap_or_default();
            if self.is_over(context.grace.max(context.most), Some(cost * RUNS_MIN)) {
                let run = crate::words::nanoseconds(cost.as_secs_f64() * 1e9);
                let why = format!("there is no time for enough runs, of about {run} each");
                self.give_up_for_now(why);
                return Ok(());
            }
            if !self.candidates[index].runs() {
                continue;
            }
            match self.run(context, index, (Stage::WarmUp, run))? {
                Some(measured) if measured.counted => return Ok(()),
                Some(measured) => missed = measured.state_note,
                None => {}
            }
            if self.is_over(context.most, self.own_cost(index)) {
                break;
            }
        }
        if missed.is_empty() {
            "no variant works here".clone_into(&mut missed);
        }
        self.why_not = missed;
        Ok(())
    }

    /// Runs each remaining candidate once, uncounted: new runners have buffers without pages.
    fn warm_up_again(&mut self, context: &mut SearchContext<'_>) -> Result<(), Error> {
        for index in 0..self.candidates.len() {
            if self.candidates[index].runs() && !self.is_over(context.deadline, self.cost_of(index))
            {
                self.run(context, index, (Stage::WarmUp, 1))?;
            }
        }
        Ok(())
    }

    /// Runs shuffled rounds of the remaining candidates, until there is an answer or the visit has
    /// had its rounds.
    fn finals(&mut self, context: &mut SearchContext<'_>) -> Result<(), Error> {
        let (started, before) = (Instant::now(), self.rounds);
        let last = (before + SHORT_ROUNDS_A_VISIT).min(ROUNDS_MAX);
        let margin = if self.visits == 1 { MARGIN_AT_FIRST } else { 0.0 };
        while self.rounds < last {
            let round = self.rounds + 1;
            if self.rounds - before >= ROUNDS_A_VISIT && started.elapsed() > SHORT_VISIT {
                return Ok(());
            }
            // With fewer rounds there is no answer at all.
            let end = if round <= ROUNDS_MIN { context.grace } else { context.deadline };
            let running: Vec<usize> =
                (0..self.candidates.len()).filter(|&index| self.candidates[index].runs()).collect();
            let round_cost: Duration =
                running.iter().map(|&i| self.cost_of(i).unwrap_or_default()).sum();
            if self.is_over(end, Some(round_cost)) {
                return Ok(());
            }
            self.rounds = round;
            self.rounds_ever += 1;
            for index in context.plan.order(Stage::Final, round, &running) {
                self.run(context, index, (Stage::Final, round))?;
            }
            if round >= ROUNDS_MIN {
                if candidates::is_settled(&self.candidates) {
                    self.settled = self.visits >= VISITS_TO_SETTLE;
                    return Ok(());
                }
                candidates::drop_beaten(&mut self.candidates, margin);
            }
        }
        Ok(())
    }

    fn conclude(&mut self, context: &SearchContext<'_>) {
        let counted = candidates::best(&self.candidates)
            .map_or(0, |best| self.candidates[best].finals_ns.len());
        self.why_not = if counted >= ROUNDS_MIN as usize {
            String::new()
        } else if context.misses > 0 {
            "the page cache was not in the state that it had to be in".to_owned()
        } else {
            let costs = (0..self.candidates.len()).filter_map(|index| self.own_cost(index));
            let run = costs.max().unwrap_or_default().as_secs_f64();
            let run = crate::words::nanoseconds(run * 1e9);
            self.lacks_time = true;
            format!("the time was over before there were enough runs, of up to {run} each")
        };
    }
}
