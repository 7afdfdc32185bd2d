//! The search for the best variant of one case: visits, each of which is a race on files of its own that goes
//! on with the candidates of the visits before.

use std::time::{Duration, Instant};

use engines::Variant;

use super::candidates;
use super::case::Case;
use super::heuristics::{
    MARGIN_AT_FIRST, MOST, ROUNDS_MAX, RUNS_MIN, RUNS_WANTED, SEARCH_SHARE, STEPS, VISITS_TO_SETTLE,
};
use crate::error::Error;
use crate::race::config::{Config, Visit, Watch};
use crate::race::heuristics::ELIMINATION_ROUNDS;
use crate::race::runner::Race;
use crate::search::admission::ROUNDS_MIN;
use crate::search::candidate::{self, Candidate, Role};
use crate::trial::Bench;
use crate::words;

/// The candidates of one situation and their results so far.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) case: Case,
    pub(super) candidates: Vec<Candidate>,
    /// What a copy does without a profile: the first of them that works.
    defaults: Vec<Variant>,
    /// Whether more rounds would not change the choice.
    pub(super) settled: bool,
    /// Why there is no answer; empty as long as there may be one.
    pub(super) why_not: String,
    /// Time that it took so far.
    pub(super) took: Duration,
    /// Visits so far, the present one included.
    pub(super) visits: u32,
    /// Whether there is no answer because the time was too short.
    lacks_time: bool,
}

/// The time and the order of a visit.
pub(super) struct VisitTime {
    /// The share of the time that is meant for it.
    pub(super) share: Duration,
    /// What is left for all situations.
    pub(super) left: Duration,
    /// The seed of its orders.
    pub(super) seed: u64,
}

impl Search {
    /// A search in `case`, where a copy by default tries `defaults`, by `present` if the user has a profile.
    pub(super) fn new(
        case: Case,
        defaults: Vec<Variant>,
        present: Option<Variant>,
        variants: &[Variant],
    ) -> Search {
        let mut baselines = defaults.clone();
        baselines.extend(present);
        if !case.situation.no_cache {
            baselines.push("copy_file_range".parse().expect("it is in the table"));
        }
        let fitting: Vec<Variant> =
            variants.iter().filter(|variant| case.may_try(variant)).cloned().collect();
        let mut candidates = candidates::candidates(baselines, &fitting, case.file_bytes);
        if !case.situation.no_cache {
            candidates.push(Candidate::gnu_cp());
        }
        Search {
            case,
            candidates,
            defaults,
            settled: false,
            why_not: String::new(),
            took: Duration::ZERO,
            visits: 0,
            lacks_time: false,
        }
    }

    /// Starts or continues the search on `benches`, until it has an answer or the time is over.
    ///
    /// # Errors
    /// When files cannot be made or read, have changed, or a copy is wrong.
    pub(super) fn visit(
        &mut self,
        benches: Vec<Vec<Bench<'_>>>,
        time: &VisitTime,
        workers_max: usize,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let margin = if self.visits == 0 { MARGIN_AT_FIRST } else { 0.0 };
        let config = Config {
            state: self.case.state(),
            variants: Vec::new(),
            named: false,
            rounds: None,
            time: Some(time.share),
            started,
            seed: time.seed,
            visit: Some(Visit { rounds_before: self.rounds(), margin }),
        };
        self.visits += 1;
        let mut race = Race::new(config, benches, std::mem::take(&mut self.candidates), watch);
        let result = self.run(&mut race, time.left, workers_max);
        let missed = race.samples.iter().any(|sample| !sample.measured.counted);
        self.candidates = race.candidates;
        if result? {
            self.conclude(missed);
        }
        self.took += started.elapsed();
        Ok(())
    }

    /// Runs the race of a visit; false where there can be no answer.
    fn run(
        &mut self,
        race: &mut Race<'_>,
        left: Duration,
        workers_max: usize,
    ) -> Result<bool, Error> {
        if self.visits == 1 {
            race.run_elimination()?;
            self.search_around(race, workers_max)?;
        }
        let bytes = self.case.slot_bytes();
        let Some(cost) = race.running().map(|index| race.cost_of(index, bytes)).min() else {
            "no variant works here".clone_into(&mut self.why_not);
            self.lacks_time = false;
            return Ok(false);
        };
        // What a user compares with runs however slow it is.
        let is_baseline = |&index: &usize| race.candidates[index].role != Role::Contender;
        let baselines = race.running().filter(is_baseline).map(|index| race.cost_of(index, bytes));
        let wanted = race.config.started.elapsed() + baselines.max().unwrap_or(cost) * RUNS_WANTED;
        let wanted = wanted.min(left.mul_f64(MOST));
        race.config.time = race.config.time.max(Some(wanted));
        if race.time_left() < cost * RUNS_MIN {
            let run = words::nanoseconds(cost.as_secs_f64() * 1e9);
            self.give_up_for_now(format!("there is no time for enough runs, of about {run} each"));
            return Ok(false);
        }
        let tasks = race.tasks(bytes)?;
        race.run_final(&tasks)?;
        Ok(true)
    }

    /// Tries half and twice the buffers, depths and workers of the leaders, and repeats this as
    /// long as it finds a better one.
    fn search_around(&self, race: &mut Race<'_>, workers_max: usize) -> Result<(), Error> {
        for step in 1..=STEPS {
            let Some(best) = candidates::leader(&race.candidates) else { return Ok(()) };
            let found =
                candidates::neighbours(&race.candidates, &self.case, workers_max, step == 1);
            if found.is_empty() {
                return Ok(());
            }
            let tasks = race.tasks(race.candidates[best].elimination_bytes)?;
            let first = race.candidates.len();
            race.candidates.extend(found);
            let tried: Vec<usize> = (first..race.candidates.len()).chain([best]).collect();
            // Twice, and the best with them: what an elimination round tells depends on the moment.
            for repeat in 0..2 {
                if race.has_taken(SEARCH_SHARE) {
                    return Ok(());
                }
                let round = ELIMINATION_ROUNDS + 2 * step + repeat;
                race.run_elimination_round(&tasks, round, &tried)?;
            }
            if candidates::leader(&race.candidates).is_none_or(|now| now < first) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Rounds of the finals of all visits.
    pub(super) fn rounds(&self) -> u32 {
        let last = |candidate: &Candidate| Some(candidate.finals_ns.keys().next_back()?.0);
        self.candidates.iter().filter_map(last).max().unwrap_or(0)
    }

    /// What a copy does here without a profile.
    pub(super) fn default(&self) -> &Variant {
        let works = |variant: &&Variant| {
            let mut candidates =
                self.candidates.iter().filter(|candidate| candidate.role != Role::OtherCopier);
            candidates.any(|candidate| candidate.variant == **variant && !candidate.is_refused())
        };
        self.defaults.iter().find(works).unwrap_or(&self.defaults[0])
    }

    /// Variants that came to the end and could be chosen.
    pub(super) fn finalists(&self) -> impl Iterator<Item = &Variant> {
        let chosen_from = |candidate: &&Candidate| {
            candidate.can_be_chosen() && candidate.runs() && !candidate.finals_ns.is_empty()
        };
        self.candidates.iter().filter(chosen_from).map(|candidate| &candidate.variant)
    }

    /// Whether more time might give an answer, or a better one.
    pub(super) fn may_gain_by_more(&self) -> bool {
        let is_open = self.why_not.is_empty() || self.lacks_time;
        is_open && !self.settled && self.rounds() < ROUNDS_MAX
    }

    /// Ends it without an answer that more time may give; `why` says what there was too little time
    /// for.
    pub(super) fn give_up_for_now(&mut self, why: String) {
        self.why_not = why;
        self.lacks_time = true;
    }

    /// What the finals show. `missed` says whether a run did not find the page cache in the state wanted.
    fn conclude(&mut self, missed: bool) {
        let counted = candidates::best(&self.candidates)
            .map_or(0, |best| self.candidates[best].finals_ns.len());
        self.lacks_time = false;
        if counted >= ROUNDS_MIN as usize {
            self.why_not.clear();
            let field = candidates::racing(&self.candidates);
            self.settled =
                self.visits >= VISITS_TO_SETTLE && candidate::is_settled(&self.candidates, &field);
        } else if missed {
            "the page cache was not in the state that it had to be in"
                .clone_into(&mut self.why_not);
        } else {
            let bytes = self.case.slot_bytes();
            let costs = self.candidates.iter().filter_map(|candidate| candidate.cost_of(bytes));
            let run = words::nanoseconds(costs.max().unwrap_or_default().as_secs_f64() * 1e9);
            self.give_up_for_now(format!(
                "the time was over before there were enough runs, of up to {run} each"
            ));
        }
    }
}
