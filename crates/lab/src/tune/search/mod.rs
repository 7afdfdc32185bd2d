//! The search for the best variant of one case: elimination rounds, neighbours of the best, then
//! shuffled final rounds. A search can be continued with more time.

pub(crate) mod elimination;

use std::time::{Duration, Instant};

use engines::Variant;

use super::candidates::{self, Candidate, Role, Status};
use super::case::Case;
use super::copy_slot::{self, CopySlot, Length, Measured, Run};
use super::runners::{OtherCopier, StartedRunners};
use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::sample::Stage;
use crate::search::admission::ROUNDS_MIN;
use crate::search::run_order::RunOrder;
use crate::tune::heuristics::{
    MARGIN_AT_FIRST, MISSES_MAX, ROUNDS_A_VISIT, ROUNDS_MAX, RUNS_MIN, SHORT_ROUNDS_A_VISIT,
    SHORT_VISIT, VISITS_TO_SETTLE,
};

/// The candidates of one situation and their results so far. A search can be continued.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) case: Case,
    pub(super) candidates: Vec<Candidate>,
    /// What a copy does without a profile: the first of them that works.
    pub(super) defaults: Vec<Variant>,
    /// What was chosen before, if anything was.
    present: Option<Variant>,
    /// Rounds of the final that were started.
    pub(super) rounds: u32,
    /// The same with those of finals that were restarted.
    pub(super) rounds_ever: u32,
    /// Whether more rounds would not change the choice.
    pub(super) settled: bool,
    /// Why there is no answer; empty as long as there may be one.
    pub(super) why_not: String,
    /// Time that it took so far.
    pub(super) took: Duration,
    /// Visits so far.
    pub(super) visits: u32,
    /// What the last run of each took in all.
    costs: Vec<Option<Duration>>,
    elimination_done: bool,
    /// Whether there is no answer because the time was too short.
    lacks_time: bool,
}

/// What is known of a situation before it is searched.
pub(super) struct PriorKnowledge<'k> {
    /// The variants that a copy tries there by default.
    pub(super) defaults: Vec<Variant>,
    /// What was chosen before.
    pub(super) present: Option<Variant>,
    /// Variants that are known to be slow or not to work at all, with the reason.
    pub(super) out: &'k [(String, Status)],
}

/// Where and how long it is searched.
pub(super) struct SearchContext<'s> {
    pub(super) slots: &'s [CopySlot],
    pub(super) prover: &'s Prover,
    /// The end of its share of the time.
    pub(super) deadline: Instant,
    /// The end for a situation whose runs take long.
    pub(super) most: Instant,
    /// The end for rounds without which there is no answer.
    pub(super) grace: Instant,
    pub(super) plan: RunOrder,
    pub(super) workers_max: usize,
    /// What is started for the candidates.
    pub(super) started: StartedRunners<'s>,
    /// Called before each run.
    pub(super) watch: &'s mut dyn FnMut(&Search, Stage, u32),
}

impl SearchContext<'_> {
    /// Extends the deadline of a visit that began at `started` to what it wants, within the limits.
    fn extend(&mut self, started: Instant, wanted: Duration) {
        self.deadline = self.deadline.max((started + wanted).min(self.most));
        self.grace = self.grace.max(self.deadline);
    }
}

impl Search {
    pub(super) fn new(
        case: Case,
        PriorKnowledge { defaults, present, out }: PriorKnowledge<'_>,
        other_copier: Option<&OtherCopier>,
        variants: &[Variant],
    ) -> Search {
        let mut baselines = defaults.clone();
        baselines.extend(present.clone());
        if !case.situation.no_cache {
            baselines.push("copy_file_range".parse().expect("it is in the table"));
        }
        let fitting: Vec<Variant> =
            variants.iter().filter(|variant| case.may_try(variant)).cloned().collect();
        let mut candidates = candidates::candidates(baselines, &fitting, case.file_bytes);
        for candidate in &mut candidates {
            if let Some((_, status)) = out.iter().find(|(name, _)| *name == candidate.name) {
                let known = matches!(status, Status::Refused(_));
                if known || candidate.role == Role::Contender {
                    candidate.status = status.clone();
                }
            }
        }
        if let Some(other_copier) = other_copier.filter(|_| !case.situation.no_cache) {
            let candidate = Candidate::new(other_copier.main.clone(), Role::OtherCopier);
            candidates.push(Candidate { name: other_copier.name.to_owned(), ..candidate });
        }
        Search {
            case,
            candidates,
            defaults,
            present,
            rounds: 0,
            rounds_ever: 0,
            settled: false,
            why_not: String::new(),
            took: Duration::ZERO,
            visits: 0,
            costs: Vec::new(),
            elimination_done: false,
            lacks_time: false,
        }
    }

    /// What a copy does here without a profile.
    pub(super) fn default(&self) -> &Variant {
        let works = |variant: &&Variant| {
            let mut candidates =
                self.candidates.iter().filter(|candidate| candidate.role != Role::OtherCopier);
            candidates.any(|candidate| {
                candidate.variant == **variant && !matches!(candidate.status, Status::Refused(_))
            })
        };
        self.defaults.iter().find(works).unwrap_or(&self.defaults[0])
    }

    /// The variants that other situations need not try: those that do not work, and those that took
    /// `factor` times as long as the best in the elimination rounds.
    pub(super) fn far_slower(&self, factor: f64) -> Vec<(String, Status)> {
        let best_ns = candidates::best_in_elimination(&self.candidates).map_or(0.0, |(_, ns)| ns);
        let known =
            |candidate: &Candidate| match (&candidate.status, candidate.elimination_median_ns()) {
                (Status::Refused(_), _) => Some((candidate.name.clone(), candidate.status.clone())),
                (_, Some(ns)) if ns > factor * best_ns => {
                    Some((candidate.name.clone(), Status::Slow))
                }
                _ => None,
            };
        self.candidates.iter().filter_map(known).collect()
    }

    /// Those that still take part, fastest first, with their time of a file in nanoseconds.
    pub(super) fn leaders(&self) -> Vec<(String, f64)> {
        let time = |candidate: &Candidate| {
            let finals: Vec<f64> = candidate.finals_ns.values().copied().collect();
            let ns = crate::stats::median(&finals).or(candidate.elimination_median_ns())?;
            Some((candidate.name.clone(), ns / f64::from(self.case.files)))
        };
        let running = self.candidates.iter().filter(|candidate| candidate.runs());
        let mut leaders: Vec<(String, f64)> = running.filter_map(time).collect();
        leaders.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        leaders
    }

    /// Those that came to the end and could be chosen.
    pub(super) fn finalists(&self) -> impl Iterator<Item = &Variant> {
        let chosen_from = |candidate: &&Candidate| {
            let is_own = candidate.role != Role::OtherCopier && !candidate.shares_extents;
            is_own && candidate.runs() && !candidate.finals_ns.is_empty()
        };
        self.candidates.iter().filter(chosen_from).map(|candidate| &candidate.variant)
    }

    /// Whether more time might give an answer, or a better one.
    pub(super) fn may_gain_by_more(&self) -> bool {
        (self.elimination_done || self.lacks_time) && !self.settled && self.rounds < ROUNDS_MAX
    }

    /// Ends it without an answer that more time may give; `why` says what there was too little time
    /// for.
    pub(super) fn give_up_for_now(&mut self, why: String) {
        self.why_not = why;
        self.lacks_time = true;
    }

    /// Starts or continues the search, until it has an answer or the time is over.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn search(&mut self, context: &mut SearchContext<'_>) -> Result<(), Error> {
        let started = Instant::now();
        self.visits += 1;
        self.costs.resize(self.candidates.len(), None);
        context.started.expect_costs(std::mem::take(&mut self.costs));
        let result = self.search_with(context, started);
        self.costs = std::mem::take(&mut context.started.costs);
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
            if context.started.costs[index].is_none() {
                self.short_run(context, index)?;
            }
            let cost = context.started.costs[index].unwrap_or_default();
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
                Some(measured) => missed = measured.note,
                None => {}
            }
            if self.is_over(context.most, context.started.costs[index]) {
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
            if self.candidates[index].runs()
                && !self.is_over(context.deadline, context.started.cost_of(index))
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
                running.iter().map(|&i| context.started.cost_of(i).unwrap_or_default()).sum();
            if self.is_over(end, Some(round_cost)) {
                return Ok(());
            }
            self.rounds = round;
            self.rounds_ever += 1;
            for index in context.plan.order(Stage::Final, round, &running) {
                let run = self.run(context, index, (Stage::Final, round))?;
                if let Some(measured) = run.filter(|measured| measured.counted) {
                    self.candidates[index].finals_ns.insert(round, measured.elapsed_ns);
                }
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
        } else if context.started.misses > 0 {
            "the page cache was not in the state that it had to be in".to_owned()
        } else {
            let costs = context.started.costs.iter().flatten();
            let run = costs.max().map_or(0.0, Duration::as_secs_f64);
            let run = crate::words::nanoseconds(run * 1e9);
            self.lacks_time = true;
            format!("the time was over before there were enough runs, of up to {run} each")
        };
    }

    fn is_over(&self, end: Instant, cost: Option<Duration>) -> bool {
        Instant::now() + cost.unwrap_or_default() > end
    }

    /// Runs one candidate once; `None` when it refuses.
    fn run(
        &mut self,
        context: &mut SearchContext<'_>,
        index: usize,
        place: (Stage, u32),
    ) -> Result<Option<Measured>, Error> {
        self.run_length(context, index, place, Length::Whole)
    }

    fn run_length(
        &mut self,
        context: &mut SearchContext<'_>,
        index: usize,
        (stage, round): (Stage, u32),
        length: Length,
    ) -> Result<Option<Measured>, Error> {
        (context.watch)(self, stage, round);
        let started = Instant::now();
        let run = match context.started.runners(&self.candidates[index], index, context.slots.len())
        {
            Ok(runners) => {
                copy_slot::run(&self.case, context.prover, context.slots, runners, length)?
            }
            Err(why) => Run::Refused(why),
        };
        let candidate = &mut self.candidates[index];
        match run {
            Run::Refused(why) => {
                candidate.status = Status::Refused(why);
                context.started.runners[index] = None;
                Ok(None)
            }
            Run::Measured(measured) => {
                context.started.costs[index] = Some(started.elapsed());
                context.started.misses += u32::from(!measured.counted);
                candidate.shares_extents = measured.shares_extents;
                Ok(Some(measured))
            }
        }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
