//! The search for the best way in one situation: heats halve the field, the search goes on around the
//! best of them, and shuffled rounds of those that are close decide.

pub(crate) mod elimination;

use std::time::{Duration, Instant};

use engines::Variant;

use super::candidates::{self, Arm, Role, Standing};
use super::case::Case;
use super::copy_slot::{self, Lane, Length, Measured, Run};
use super::runners::{AtWork, Foreign};
use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::sample::Stage;
use crate::search::admission::ROUNDS_MIN;
use crate::search::run_order::Plan;

/// The ways that compete in one situation, and how far they came. It may be taken up again.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    pub(super) case: Case,
    pub(super) arms: Vec<Arm>,
    /// What a copy does without a profile: the first of them that works.
    pub(super) defaults: Vec<Variant>,
    /// What was chosen before, if anything was.
    present: Option<Variant>,
    /// Rounds of the final that were begun.
    pub(super) rounds: u32,
    /// The same with those of finals that began anew.
    pub(super) rounds_ever: u32,
    /// Whether more rounds would tell nothing that matters.
    pub(super) settled: bool,
    /// Why there is no answer; empty as long as there may be one.
    pub(super) why_not: String,
    /// Time that it took so far.
    pub(super) took: Duration,
    /// How often it was taken up.
    pub(super) visits: u32,
    /// What the last run of each took in all.
    costs: Vec<Option<Duration>>,
    heated: bool,
    /// Whether it was for want of time that there is no answer.
    lacks_time: bool,
}

/// What is known of a situation before it is searched.
pub(super) struct Known<'k> {
    /// What a copy tries there without being told.
    pub(super) defaults: Vec<Variant>,
    /// What was chosen before.
    pub(super) present: Option<Variant>,
    /// Variants that are known to be slow or not to work at all, with the reason.
    pub(super) out: &'k [(String, Standing)],
}

/// Where and how long it is searched.
pub(super) struct Search<'s> {
    pub(super) lanes: &'s [Lane],
    pub(super) prover: &'s Prover,
    /// The situation has had its share of the time then.
    pub(super) deadline: Instant,
    /// It may have until then where its runs take long.
    pub(super) most: Instant,
    /// Then it is over even for what there is no answer without.
    pub(super) grace: Instant,
    pub(super) plan: Plan,
    pub(super) workers_max: usize,
    /// Called before each run.
    pub(super) watch: &'s mut dyn FnMut(&Contest, Stage, u32),
}

/// With fewer there is nothing to compare.
const RUNS_MIN: u32 = 12;

/// Rounds of a visit. What one round tells the next one tells too, as long as both copy the same file at
/// about the same time: more are worth more later, when it lies elsewhere in memory and on the medium.
const ROUNDS_A_VISIT: u32 = 10;

/// Where rounds are short there are more, up to so many within so long.
const SHORT_ROUNDS_A_VISIT: u32 = 40;
const SHORT_VISIT: Duration = Duration::from_secs(1);

/// Visits before which nothing is taken as settled.
const VISITS_TO_SETTLE: u32 = 3;

/// Who is slower by more than this leaves in the first visit already.
const MARGIN_AT_FIRST: f64 = 0.2;

/// Rounds after which more would tell nothing new at any noise that a user could wait out.
const ROUNDS_MAX: u32 = 200;

/// Runs that may miss the state before it is taken to be out of reach.
const MISSES_MAX: u32 = 3;

impl Search<'_> {
    /// Gives a search that began at `begun` as long as it wants, at most what may be had.
    fn extend(&mut self, begun: Instant, wanted: Duration) {
        self.deadline = self.deadline.max((begun + wanted).min(self.most));
        self.grace = self.grace.max(self.deadline);
    }
}

impl Contest {
    pub(super) fn new(
        case: Case,
        Known { defaults, present, out }: Known<'_>,
        foreign: Option<&Foreign>,
        candidates: &[Variant],
    ) -> Contest {
        let mut baselines = defaults.clone();
        baselines.extend(present.clone());
        if !case.situation.no_cache {
            baselines.push("copy_file_range".parse().expect("it is in the table"));
        }
        let fitting: Vec<Variant> =
            candidates.iter().filter(|variant| case.may_try(variant)).cloned().collect();
        let mut arms = candidates::arms(baselines, &fitting, case.file_bytes);
        for arm in &mut arms {
            if let Some((_, standing)) = out.iter().find(|(name, _)| *name == arm.name) {
                let known = matches!(standing, Standing::Refused(_));
                if known || arm.role == Role::Candidate {
                    arm.standing = standing.clone();
                }
            }
        }
        if let Some(foreign) = foreign.filter(|_| !case.situation.no_cache) {
            let arm = Arm::new(foreign.main.clone(), Role::Foreign);
            arms.push(Arm { name: foreign.name.to_owned(), ..arm });
        }
        Contest {
            case,
            arms,
            defaults,
            present,
            rounds: 0,
            rounds_ever: 0,
            settled: false,
            why_not: String::new(),
            took: Duration::ZERO,
            visits: 0,
            costs: Vec::new(),
            heated: false,
            lacks_time: false,
        }
    }

    /// What a copy does here without a profile.
    pub(super) fn default(&self) -> &Variant {
        let works = |variant: &&Variant| {
            let mut arms = self.arms.iter().filter(|arm| arm.role != Role::Foreign);
            arms.any(|arm| {
                arm.variant == **variant && !matches!(arm.standing, Standing::Refused(_))
            })
        };
        self.defaults.iter().find(works).unwrap_or(&self.defaults[0])
    }

    /// Those that others need not try: what does not work, and what took `factor` times as long as the
    /// best in the heats.
    pub(super) fn hopeless(&self, factor: f64) -> Vec<(String, Standing)> {
        let best_ns = candidates::best_heat(&self.arms).map_or(0.0, |(_, ns)| ns);
        let known = |arm: &Arm| match (&arm.standing, arm.heat_ns()) {
            (Standing::Refused(_), _) => Some((arm.name.clone(), arm.standing.clone())),
            (_, Some(ns)) if ns > factor * best_ns => Some((arm.name.clone(), Standing::Slow)),
            _ => None,
        };
        self.arms.iter().filter_map(known).collect()
    }

    /// Those that still take part, fastest first, with their time of a file in nanoseconds.
    pub(super) fn leaders(&self) -> Vec<(String, f64)> {
        let time = |arm: &Arm| {
            let finals: Vec<f64> = arm.finals_ns.values().copied().collect();
            let ns = crate::stats::median(&finals).or(arm.heat_ns())?;
            Some((arm.name.clone(), ns / f64::from(self.case.files)))
        };
        let running = self.arms.iter().filter(|arm| arm.runs());
        let mut leaders: Vec<(String, f64)> = running.filter_map(time).collect();
        leaders.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        leaders
    }

    /// Those that came to the end and could be chosen.
    pub(super) fn finalists(&self) -> impl Iterator<Item = &Variant> {
        let chosen_from = |arm: &&Arm| {
            let is_own = arm.role != Role::Foreign && !arm.shares_extents;
            is_own && arm.runs() && !arm.finals_ns.is_empty()
        };
        self.arms.iter().filter(chosen_from).map(|arm| &arm.variant)
    }

    /// Whether more time might give an answer, or a better one.
    pub(super) fn may_gain_by_more(&self) -> bool {
        (self.heated || self.lacks_time) && !self.settled && self.rounds < ROUNDS_MAX
    }

    /// Ends it without an answer that more time may give; `why` says what there was too little time for.
    pub(super) fn give_up_for_now(&mut self, why: String) {
        self.why_not = why;
        self.lacks_time = true;
    }

    /// Searches, or goes on with it, until the answer is there or the time is over.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn search(
        &mut self,
        search: &mut Search<'_>,
        foreign: Option<&Foreign>,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        self.visits += 1;
        self.costs.resize(self.arms.len(), None);
        let mut at_work = AtWork::new(std::mem::take(&mut self.costs), foreign);
        let result = self.search_with(search, &mut at_work, begun);
        self.costs = at_work.costs;
        self.took += begun.elapsed();
        result
    }

    fn search_with(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        begun: Instant,
    ) -> Result<(), Error> {
        if !self.heated {
            self.why_not.clear();
            self.warm_up(search, at_work)?;
            if !self.why_not.is_empty() {
                return Ok(());
            }
            self.narrow_the_field(search, at_work, begun)?;
            let tried = |arm: &Arm| arm.role == Role::Candidate && !arm.heats_ns.is_empty();
            self.heated = self.arms.iter().any(tried);
        } else {
            self.warm_up_again(search, at_work)?;
        }
        let (arms, rounds) = (self.arms.clone(), self.rounds);
        if self.visits > 1 && self.let_the_waiting_in(search, at_work, begun)? {
            candidates::begin_final_anew(&mut self.arms);
            self.rounds = 0;
        }
        self.finals(search, at_work)?;
        if self.rounds < ROUNDS_MIN && rounds >= ROUNDS_MIN {
            // There was no time for so much: what was known before is still known.
            (self.arms, self.rounds) = (arms, rounds);
        }
        self.conclude(at_work);
        Ok(())
    }

    /// The first runs take memory that nobody used lately, which in a virtual machine the host has to
    /// supply first, and tell whether the state can be had. They are not counted.
    fn warm_up(&mut self, search: &mut Search<'_>, at_work: &mut AtWork<'_>) -> Result<(), Error> {
        let mut missed = String::new();
        for run in 1..=MISSES_MAX {
            let Some(index) = self.arms.iter().position(Arm::runs) else { break };
            if at_work.costs[index].is_none() {
                self.short_run(search, at_work, index)?;
            }
            let cost = at_work.costs[index].unwrap_or_default();
            if self.is_over(search.grace.max(search.most), Some(cost * RUNS_MIN)) {
                let run = crate::words::nanoseconds(cost.as_secs_f64() * 1e9);
                let why = format!("there is no time for enough runs, of about {run} each");
                self.give_up_for_now(why);
                return Ok(());
            }
            if !self.arms[index].runs() {
                continue;
            }
            match self.run(search, at_work, index, (Stage::WarmUp, run))? {
                Some(measured) if measured.counted => return Ok(()),
                Some(measured) => missed = measured.note,
                None => {}
            }
            if self.is_over(search.most, at_work.costs[index]) {
                break;
            }
        }
        if missed.is_empty() {
            "none of the ways works here".clone_into(&mut missed);
        }
        self.why_not = missed;
        Ok(())
    }

    /// Has each that is left run once, uncounted: runners start with buffers that have no pages yet.
    fn warm_up_again(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
    ) -> Result<(), Error> {
        for index in 0..self.arms.len() {
            if self.arms[index].runs() && !self.is_over(search.deadline, at_work.cost_of(index)) {
                self.run(search, at_work, index, (Stage::WarmUp, 1))?;
            }
        }
        Ok(())
    }

    /// Shuffled rounds of all that are left, until the answer is there or the visit has had its own.
    fn finals(&mut self, search: &mut Search<'_>, at_work: &mut AtWork<'_>) -> Result<(), Error> {
        let (begun, before) = (Instant::now(), self.rounds);
        let last = (before + SHORT_ROUNDS_A_VISIT).min(ROUNDS_MAX);
        let margin = if self.visits == 1 { MARGIN_AT_FIRST } else { 0.0 };
        while self.rounds < last {
            let round = self.rounds + 1;
            if self.rounds - before >= ROUNDS_A_VISIT && begun.elapsed() > SHORT_VISIT {
                return Ok(());
            }
            // Without so many there is no answer at all.
            let end = if round <= ROUNDS_MIN { search.grace } else { search.deadline };
            let running: Vec<usize> =
                (0..self.arms.len()).filter(|&index| self.arms[index].runs()).collect();
            let round_cost: Duration =
                running.iter().map(|&i| at_work.cost_of(i).unwrap_or_default()).sum();
            if self.is_over(end, Some(round_cost)) {
                return Ok(());
            }
            self.rounds = round;
            self.rounds_ever += 1;
            for index in search.plan.order(Stage::Final, round, &running) {
                let run = self.run(search, at_work, index, (Stage::Final, round))?;
                if let Some(measured) = run.filter(|measured| measured.counted) {
                    self.arms[index].finals_ns.insert(round, measured.elapsed_ns);
                }
            }
            if round >= ROUNDS_MIN {
                if candidates::is_settled(&self.arms) {
                    self.settled = self.visits >= VISITS_TO_SETTLE;
                    return Ok(());
                }
                candidates::drop_beaten(&mut self.arms, margin);
            }
        }
        Ok(())
    }

    fn conclude(&mut self, at_work: &AtWork<'_>) {
        let counted =
            candidates::best(&self.arms).map_or(0, |best| self.arms[best].finals_ns.len());
        self.why_not = if counted >= ROUNDS_MIN as usize {
            String::new()
        } else if at_work.misses > 0 {
            "the page cache was not in the state that it had to be in".to_owned()
        } else {
            let costs = at_work.costs.iter().flatten();
            let run = costs.max().map_or(0.0, Duration::as_secs_f64);
            let run = crate::words::nanoseconds(run * 1e9);
            self.lacks_time = true;
            format!("the time was over before there were enough runs, of up to {run} each")
        };
    }

    fn is_over(&self, end: Instant, cost: Option<Duration>) -> bool {
        Instant::now() + cost.unwrap_or_default() > end
    }

    /// Runs one arm once; `None` when it refuses.
    fn run(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        index: usize,
        place: (Stage, u32),
    ) -> Result<Option<Measured>, Error> {
        self.run_length(search, at_work, index, place, Length::Whole)
    }

    fn run_length(
        &mut self,
        search: &mut Search<'_>,
        at_work: &mut AtWork<'_>,
        index: usize,
        (stage, round): (Stage, u32),
        length: Length,
    ) -> Result<Option<Measured>, Error> {
        (search.watch)(self, stage, round);
        let begun = Instant::now();
        let run = match at_work.runners(&self.arms[index], index, search.lanes.len()) {
            Ok(runners) => {
                copy_slot::run(&self.case, search.prover, search.lanes, runners, length)?
            }
            Err(why) => Run::Refused(why),
        };
        let arm = &mut self.arms[index];
        match run {
            Run::Refused(why) => {
                arm.standing = Standing::Refused(why);
                at_work.runners[index] = None;
                Ok(None)
            }
            Run::Measured(measured) => {
                at_work.costs[index] = Some(begun.elapsed());
                at_work.misses += u32::from(!measured.counted);
                arm.shares_extents = measured.shares_extents;
                Ok(Some(measured))
            }
        }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
