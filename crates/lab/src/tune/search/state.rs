//! The candidates of one situation and their results so far, one run of one of them, and what both say
//! about the rest of the search.

use std::time::{Duration, Instant};

use engines::Variant;

use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::sample::Stage;
use crate::sample::measurement::Measurement;
use crate::search::candidate::{Candidate, Role, Status};
use crate::search::run_order::RunOrder;
use crate::trial::Outcome;
use crate::tune::candidates;
use crate::tune::case::Case;
use crate::tune::copy_slot::{self, CopySlot, Length};
use crate::tune::heuristics::{ROUNDS_MAX, SHORT_BYTES};
use crate::tune::runners::{Runners, started};

/// The candidates of one situation and their results so far. A search can be continued.
#[derive(Clone, Debug)]
pub(in crate::tune) struct Search {
    pub(in crate::tune) case: Case,
    pub(in crate::tune) candidates: Vec<Candidate>,
    /// What a copy does without a profile: the first of them that works.
    pub(in crate::tune) defaults: Vec<Variant>,
    /// What was chosen before, if anything was.
    pub(super) present: Option<Variant>,
    /// Rounds of the final that were started.
    pub(in crate::tune) rounds: u32,
    /// Rounds of all finals that were started, with those of finals that were restarted.
    pub(in crate::tune) rounds_ever: u32,
    /// Whether more rounds would not change the choice.
    pub(in crate::tune) settled: bool,
    /// Why there is no answer; empty as long as there may be one.
    pub(in crate::tune) why_not: String,
    /// Time that it took so far.
    pub(in crate::tune) took: Duration,
    /// Visits so far.
    pub(in crate::tune) visits: u32,
    pub(super) elimination_done: bool,
    /// Whether there is no answer because the time was too short.
    pub(super) lacks_time: bool,
}

/// What is known of a situation before it is searched.
pub(in crate::tune) struct PriorKnowledge<'k> {
    /// The variants that a copy tries there by default.
    pub(in crate::tune) defaults: Vec<Variant>,
    /// What was chosen before.
    pub(in crate::tune) present: Option<Variant>,
    /// Variants that are known to be slow or not to work at all, with the reason.
    pub(in crate::tune) out: &'k [(String, Status)],
}

/// Where and how long it is searched.
pub(in crate::tune) struct SearchContext<'s> {
    pub(in crate::tune) slots: &'s [CopySlot],
    pub(in crate::tune) prover: &'s Prover,
    /// The end of its share of the time.
    pub(in crate::tune) deadline: Instant,
    /// The end for a situation whose runs take long.
    pub(in crate::tune) most: Instant,
    /// The end for rounds without which there is no answer.
    pub(in crate::tune) grace: Instant,
    pub(in crate::tune) plan: RunOrder,
    pub(in crate::tune) workers_max: usize,
    /// What is started for the candidates.
    pub(in crate::tune) runners: Runners,
    /// Runs whose state was not reached.
    pub(in crate::tune) misses: u32,
    /// Called before each run.
    pub(in crate::tune) watch: &'s mut dyn FnMut(&Search, Stage, u32),
}

impl SearchContext<'_> {
    /// Extends the deadline of a visit that began at `started` to what it wants, within the limits.
    pub(super) fn extend(&mut self, started: Instant, wanted: Duration) {
        self.deadline = self.deadline.max((started + wanted).min(self.most));
        self.grace = self.grace.max(self.deadline);
    }
}

impl Search {
    pub(in crate::tune) fn new(
        case: Case,
        PriorKnowledge { defaults, present, out }: PriorKnowledge<'_>,
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
            elimination_done: false,
            lacks_time: false,
        }
    }

    /// What a copy does here without a profile.
    pub(in crate::tune) fn default(&self) -> &Variant {
        let works = |variant: &&Variant| {
            let mut candidates =
                self.candidates.iter().filter(|candidate| candidate.role != Role::OtherCopier);
            candidates.any(|candidate| candidate.variant == **variant && !candidate.is_refused())
        };
        self.defaults.iter().find(works).unwrap_or(&self.defaults[0])
    }

    /// The variants that other situations need not try: those that do not work, and those that took
    /// `factor` times as long as the best in the elimination rounds.
    pub(in crate::tune) fn far_slower(&self, factor: f64) -> Vec<(String, Status)> {
        let best_ns = candidates::best_in_elimination(&self.candidates).map_or(0.0, |(_, ns)| ns);
        let known =
            |candidate: &Candidate| match (&candidate.status, candidate.elimination_median_ns()) {
                (Status::Refused(_), _) => Some((candidate.name.clone(), candidate.status.clone())),
                (_, Some(ns)) if ns > factor * best_ns => {
                    Some((candidate.name.clone(), Status::Slow(String::new())))
                }
                _ => None,
            };
        self.candidates.iter().filter_map(known).collect()
    }

    /// Variants that came to the end and could be chosen.
    pub(in crate::tune) fn finalists(&self) -> impl Iterator<Item = &Variant> {
        let chosen_from = |candidate: &&Candidate| {
            let is_own = candidate.role != Role::OtherCopier && !candidate.shares_extents;
            is_own && candidate.runs() && !candidate.finals_ns.is_empty()
        };
        self.candidates.iter().filter(chosen_from).map(|candidate| &candidate.variant)
    }

    /// Whether more time might give an answer, or a better one.
    pub(in crate::tune) fn may_gain_by_more(&self) -> bool {
        (self.elimination_done || self.lacks_time) && !self.settled && self.rounds < ROUNDS_MAX
    }

    /// Ends it without an answer that more time may give; `why` says what there was too little time
    /// for.
    pub(in crate::tune) fn give_up_for_now(&mut self, why: String) {
        self.why_not = why;
        self.lacks_time = true;
    }

    /// What a run is likely to take: as long as its last one, or as the longest of the others.
    pub(super) fn cost_of(&self, index: usize) -> Option<Duration> {
        let all = (0..self.candidates.len()).filter_map(|index| self.own_cost(index));
        self.own_cost(index).or_else(|| all.max())
    }

    /// What a run is likely to take, going by its own last one.
    pub(super) fn own_cost(&self, index: usize) -> Option<Duration> {
        self.candidates[index].cost_of(self.case.slot_bytes())
    }

    pub(super) fn is_over(&self, end: Instant, cost: Option<Duration>) -> bool {
        Instant::now() + cost.unwrap_or_default() > end
    }

    /// Runs one candidate once; `None` when it refuses.
    pub(super) fn run(
        &mut self,
        context: &mut SearchContext<'_>,
        index: usize,
        place: (Stage, u32),
    ) -> Result<Option<Box<Measurement>>, Error> {
        self.run_length(context, index, place, Length::Whole)
    }

    fn run_length(
        &mut self,
        context: &mut SearchContext<'_>,
        index: usize,
        (stage, round): (Stage, u32),
        length: Length,
    ) -> Result<Option<Box<Measurement>>, Error> {
        (context.watch)(self, stage, round);
        let began = Instant::now();
        let slots = context.slots.len();
        let outcome = match started(&mut context.runners, &self.candidates[index], index, slots) {
            Ok(runners) => {
                copy_slot::run(&self.case, context.prover, context.slots, runners, length)?
            }
            Err(why) => Outcome::Refused(why),
        };
        let bytes = match length {
            Length::Whole => self.case.slot_bytes(),
            Length::Short => SHORT_BYTES,
        };
        let candidate = &mut self.candidates[index];
        let measured = candidate.ran(outcome, began.elapsed(), (bytes, 1));
        match &measured {
            None => drop(context.runners.remove(&index)),
            Some(measured) if measured.counted => candidate.keep(stage, round, measured),
            Some(_) => context.misses += 1,
        }
        Ok(measured)
    }

    /// Copies the start of the source and returns its time; `None` where it has no start of its own, or the
    /// candidate refuses.
    pub(super) fn short_run(
        &mut self,
        context: &mut SearchContext<'_>,
        index: usize,
    ) -> Result<Option<f64>, Error> {
        if !context.slots[0].has_start() {
            return Ok(None);
        }
        let run = self.run_length(context, index, (Stage::WarmUp, 0), Length::Short)?;
        context.misses = 0;
        Ok(run.map(|measured| measured.elapsed_ns as f64))
    }
}

pub(super) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
