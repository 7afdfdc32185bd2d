//! `tune`: the fastest variant between two directories, for each situation.
//!
//! A [`Plan`] names the case that stands for each situation, as far as space and time allow. A
//! search finds the best variant of one case by [races](crate::race): elimination rounds of all
//! candidates, then neighbours of the best (other buffers, depths and workers), then final rounds,
//! which are continued with other files. The result is a [`Record`], and its choices are lines of a
//! profile.

mod candidates;
pub mod case;
pub mod config;
mod copy_slot;
mod copy_slots;
mod export;
mod heuristics;
pub mod plan;
pub mod record;
mod search;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use engines::Variant;
use engines::profile::{Residency, Situation, SizeClass};

use case::Case;
use plan::{Plan, Planned};
use record::{Finding, Record, Refused};

use crate::definition::deltas::DELTA_LEAST;
use crate::environment::Environment;
use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::race::config::Progress as RaceProgress;
use crate::scratch::Scratch;
use crate::search::candidate::Status;
use config::Config;
use copy_slots::CopySlots;
use heuristics::{LATER, SECONDS_FOR_LONG_FILES, SECONDS_MIN};
use search::{Search, VisitTime};

/// What happens, for the caller. It is reported between runs and never during one.
#[derive(Debug)]
pub enum Event<'e> {
    /// A run starts.
    Run(Progress<'e>),
    /// A situation has an answer or none yet; a better one may follow.
    Found {
        /// The answer.
        finding: &'e Finding,
        /// The number of the situation, from 1.
        number: usize,
        /// How many situations are measured.
        of: usize,
    },
}

/// How far a search is.
#[derive(Debug)]
pub struct Progress<'p> {
    /// The situation.
    pub case: &'p Case,
    /// The number of the situation, from 1.
    pub number: usize,
    /// How many are measured.
    pub of: usize,
    /// Visits of this situation so far, this one included.
    pub visit: u32,
    /// Time that is left for everything.
    pub left: Duration,
    /// How far the race of this visit is.
    pub race: &'p RaceProgress<'p>,
}

/// Called with each event.
pub type Watch<'w> = dyn FnMut(&Event<'_>) + 'w;

/// Searches: sources are made in `src`, copies in `dst`.
///
/// # Errors
/// When files cannot be made or read, change, or a copy is wrong.
pub fn run(
    config: &Config<'_>,
    plan: &Plan,
    src: &Scratch,
    dst: &Scratch,
    haulage_commit: Option<&'static str>,
    watch: &mut Watch<'_>,
) -> Result<Record, Error> {
    let date = crate::environment::utc_now();
    let measured: Vec<&Planned> = plan.measured().collect();
    let mut tuning = Tuning {
        config,
        slots: CopySlots::new((src, dst), config.seed),
        provers: BTreeMap::new(),
        searches: Vec::new(),
        of: measured.len(),
        watch,
    };
    for (number, planned) in measured.iter().enumerate() {
        let wanted: f64 = measured[number..].iter().map(|planned| planned.seconds).sum();
        let now = tuning.left().saturating_sub(tuning.later());
        let share = now.mul_f64(planned.seconds / wanted.max(1e-9));
        tuning.begin(&planned.case, share)?;
    }
    tuning.go_on_with_the_open_ones()?;

    let first = tuning.searches[0].case;
    let prover = tuning.prover(&first)?;
    let (src_dir, dst_dir) = (above(src), above(dst));
    let environment = Environment::look(src_dir, dst_dir, prover, config.seed, haulage_commit);
    let mut situations: Vec<Finding> = tuning.searches.iter().map(Finding::of).collect();
    let left_out = plan.cases.iter().filter(|planned| planned.why_not.is_some());
    situations.extend(left_out.map(|planned| {
        let mut search = Search::new(planned.case, (config.defaults)(&planned.case), None, &[]);
        search.why_not = planned.why_not.clone().unwrap_or_default();
        Finding::of(&search)
    }));
    Ok(Record {
        date,
        environment: serde_json::to_value(environment).expect("plain data"),
        seconds_allowed: config.time.as_secs_f64(),
        seconds: config.started.elapsed().as_secs_f64(),
        at_once: config.at_once,
        delta: DELTA_LEAST,
        refused: refused(&tuning.searches),
        situations,
    })
}

/// A running search.
struct Tuning<'t, 'c> {
    config: &'t Config<'c>,
    slots: CopySlots<'t>,
    /// What is known to be provable, by the class of a source and its state.
    provers: BTreeMap<(SizeClass, Residency), Prover>,
    searches: Vec<Search>,
    of: usize,
    watch: &'t mut Watch<'c>,
}

impl Tuning<'_, '_> {
    fn left(&self) -> Duration {
        self.config.time.saturating_sub(self.config.started.elapsed())
    }

    /// The time that is kept for later visits. With little time each situation gets one visit, and
    /// more only from time that is left over.
    fn later(&self) -> Duration {
        let enough = self.config.time.as_secs_f64() >= SECONDS_FOR_LONG_FILES;
        if enough { self.config.time.mul_f64(LATER) } else { Duration::ZERO }
    }

    /// Searches in `case` for about `share` of time.
    fn begin(&mut self, case: &Case, share: Duration) -> Result<(), Error> {
        let (defaults, present) = ((self.config.defaults)(case), (self.config.present)(case));
        let variants = [self.config.variants.clone(), self.found_for_shorter(case)].concat();
        self.searches.push(Search::new(*case, defaults, present, &variants));
        let number = self.searches.len();
        if self.left().is_zero() {
            self.searches[number - 1].give_up_for_now("the time was over".to_owned());
        } else {
            self.search(number - 1, share)?;
        }
        let finding = Finding::of(&self.searches[number - 1]);
        (self.watch)(&Event::Found { finding: &finding, number, of: self.of });
        Ok(())
    }

    /// The variants that reached the end in the next smaller size class. There is little time to
    /// try neighbours with the largest files.
    fn found_for_shorter(&self, case: &Case) -> Vec<Variant> {
        let own = case.situation;
        let is_below = |search: &&Search| {
            let it = search.case.situation;
            it.size.index() + 1 == own.size.index() && Situation { size: own.size, ..it } == own
        };
        let below = self.searches.iter().filter(is_below);
        below.flat_map(Search::finalists).cloned().collect()
    }

    /// Starts or continues search `place` for about `share` of time.
    fn search(&mut self, place: usize, share: Duration) -> Result<(), Error> {
        let case = self.searches[place].case;
        let (mut left, later) = (self.left(), self.later());
        let prover = self.prover(&case)?;
        if let Some(why) = why_out_of_reach(&case, &prover) {
            self.searches[place].why_not = why;
            return Ok(());
        }
        let slots = self.slots.of(&case, case.slots(self.config.at_once), left)?;
        let benches = slots.iter().map(|slot| slot.benches(&case, &prover)).collect();
        let (number, of, limit) = (place + 1, self.of, self.config.started + self.config.time);
        let search = &mut self.searches[place];
        let visit = search.visits + 1;
        if visit == 1 {
            left = left.saturating_sub(later);
        }
        let time = VisitTime { share, left, seed: self.config.seed ^ (number as u64) << 48 };
        let watch = &mut *self.watch;
        search.visit(benches, &time, self.config.workers_max, &mut |race| {
            let left = limit.saturating_duration_since(Instant::now());
            watch(&Event::Run(Progress { case: &case, number, of, visit, left, race }));
        })
    }

    /// Gives the remaining time to the situations that have no answer yet.
    fn go_on_with_the_open_ones(&mut self) -> Result<(), Error> {
        loop {
            self.slots.renew(self.left())?;
            let may_gain = |&place: &usize| self.searches[place].may_gain_by_more();
            let open: Vec<usize> = (0..self.searches.len()).filter(may_gain).collect();
            let rounds = |tuning: &Self| tuning.searches.iter().map(Search::rounds).sum::<u32>();
            let before = rounds(self);
            for (nth, &place) in open.iter().enumerate() {
                let share = self.left() / u32::try_from(open.len() - nth).unwrap_or(1);
                if self.left().as_secs_f64() < SECONDS_MIN {
                    return Ok(());
                }
                self.search(place, share)?;
            }
            if rounds(self) == before {
                return Ok(());
            }
        }
    }

    /// What can be proved of the sources of `case`, which is tried out once.
    fn prover(&mut self, case: &Case) -> Result<Prover, Error> {
        let key = (case.situation.size, case.situation.residency);
        if let Some(known) = self.provers.get(&key) {
            return Ok(known.clone());
        }
        let left = self.left();
        let slots = self.slots.of(case, 1, left)?;
        let prover = Prover::try_on(&slots[0].source, case.state())?;
        self.provers.insert(key, prover.clone());
        Ok(prover)
    }
}

/// Cold has to be proved; otherwise the state of the measurement would be unknown.
fn why_out_of_reach(case: &Case, prover: &Prover) -> Option<String> {
    if case.situation.residency == Residency::Resident {
        return None;
    }
    if !prover.counts_pages {
        return Some(format!("absent cannot be proved: {}", prover.counts_pages_note));
    }
    let keeps = "the file system of the source keeps its pages in memory";
    (!prover.drops_pages).then(|| keeps.to_owned())
}

fn refused(searches: &[Search]) -> Vec<Refused> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for candidate in searches.iter().flat_map(|search| &search.candidates) {
        if let Status::Refused(reason) = &candidate.status {
            all.entry(candidate.name.clone()).or_insert_with(|| reason.clone());
        }
    }
    all.into_iter().map(|(variant, reason)| Refused { variant, reason }).collect()
}

fn above(scratch: &Scratch) -> &std::path::Path {
    scratch.path().parent().unwrap_or(scratch.path())
}
