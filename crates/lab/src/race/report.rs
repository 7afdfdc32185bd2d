//! The report of a race: samples, summaries, verdicts and notes, in the order of the JSON file.

use serde::Serialize;

use super::heuristics::AS_WELL;
use super::runner::Race;
use super::sample::RaceSample;
use super::summary::{Summary, VariantStage};
use crate::environment::Environment;
use crate::page_cache::state::{Proof, State};
use crate::sample::Stage;
use crate::search::candidate::{Candidate, Class, Status};
use crate::search::winner::{self, Verdict};
use crate::source::Load;
use crate::stats::{Runs, median};
use crate::words;

/// The version of the form. 3: ratios are of typical times until a slow mode is shown, as in `bench`;
/// in 2 they were of expected times, in 1 of typical ones.
const SCHEMA_VERSION: u32 = 3;

/// Everything about a race, in the order of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this form; it changes when a field changes its meaning or goes.
    pub schema_version: u32,
    /// Where it took place.
    pub environment: Environment,
    /// The page cache state asked for.
    pub state_wanted: State,
    /// Bytes of the source.
    pub source_bytes: u64,
    /// Files of the source that hold bytes.
    pub source_files: usize,
    /// Bytes that one run of the final copies.
    pub raced_bytes: u64,
    /// Whole rounds of the final.
    pub rounds: u32,
    /// What the race took in all.
    pub elapsed_ns: u64,
    /// Every run of the final.
    pub samples: Vec<RaceSample>,
    /// Every run of the elimination rounds, and the one that warmed up: none of these counts.
    pub eliminations: Vec<RaceSample>,
    /// Every variant, fastest first.
    pub summary: Vec<Summary>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict on the candidates that moved bytes, if others shared extents.
    pub verdict_moving_bytes: Option<Verdict>,
    /// What else a reader has to know, in sentences.
    pub notes: Vec<String>,
}

impl Race<'_> {
    pub(super) fn report(
        mut self,
        environment: Environment,
        whole: &Load,
        load: &Load,
        rounds: u32,
    ) -> Report {
        let [movers, sharers] =
            [Class::Mover, Class::Sharer].map(|class| finalists(&self.candidates, class));
        let mut all = [movers.as_slice(), &sharers].concat();
        all.sort_unstable();
        let verdict = decide(&self.candidates, &all);
        let shared = !sharers.is_empty() && !movers.is_empty();
        let verdict_moving_bytes = shared.then(|| decide(&self.candidates, &movers));
        let summary = self.summaries(&[movers, sharers]);
        let slow_mode =
            |it: &Summary| Some(format!("{}: {}", it.variant, it.slow_mode?.in_words()));
        self.notes.extend(summary.iter().filter_map(slow_mode));
        self.note(&environment, load, rounds);
        self.samples.sort_by_key(|sample| {
            (sample.stage == Stage::WarmUp, sample.bytes, sample.round, sample.order_in_round)
        });
        let (samples, eliminations) = self.samples.into_iter().partition(RaceSample::is_final);
        Report {
            schema_version: SCHEMA_VERSION,
            state_wanted: self.config.state,
            source_bytes: whole.bytes,
            source_files: whole.parts.len(),
            raced_bytes: load.bytes,
            rounds,
            elapsed_ns: u64::try_from(self.config.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
            samples,
            eliminations,
            summary,
            verdict,
            verdict_moving_bytes,
            notes: self.notes,
            environment,
        }
    }

    /// A line a variant: those of the final that move bytes, fastest first, those that share
    /// extents, those of the elimination rounds, floors, and those that do not work here.
    fn summaries(&self, classes: &[Vec<usize>]) -> Vec<Summary> {
        let movers = self.candidates.iter().filter(|candidate| candidate.is_working_mover());
        let best_ns_per_byte = movers.filter_map(ns_per_byte).min_by(f64::total_cmp);
        let summary = |candidate| self.summary_of(candidate, best_ns_per_byte);
        let mut summaries: Vec<Summary> = self.candidates.iter().map(summary).collect();
        for raced in classes {
            let times: Vec<&Runs> =
                raced.iter().map(|&index| &self.candidates[index].finals_ns).collect();
            let best = winner::best(&times);
            for (place, (ratio, slow_mode)) in winner::standings(&times, best).enumerate() {
                let summary = &mut summaries[raced[place]];
                let one = (best == Some(place)).then_some(1.0);
                summary.slow_mode = slow_mode;
                summary.ratio_to_best = ratio.map(|ratio| ratio.estimate).or(one);
                summary.ratio_low = ratio.map(|ratio| ratio.interval.low);
                summary.ratio_high = ratio.map(|ratio| ratio.interval.high);
            }
        }
        summaries.sort_by(|a, b| {
            let place =
                |it: &Summary| (it.stage, it.stage == VariantStage::Raced && it.shares_extents);
            let ratio = |summary: &Summary| summary.ratio_to_best.unwrap_or(f64::INFINITY);
            let rate = |summary: &Summary| summary.megabytes_per_second.unwrap_or(0.0);
            place(a)
                .cmp(&place(b))
                .then_with(|| ratio(a).total_cmp(&ratio(b)))
                .then_with(|| rate(b).total_cmp(&rate(a)))
        });
        summaries
    }

    fn summary_of(&self, candidate: &Candidate, best_ns_per_byte: Option<f64>) -> Summary {
        let variant = &candidate.variant;
        if let Status::Refused(reason) = &candidate.status {
            let summary = Summary::of(variant, VariantStage::Refused, &[]);
            return Summary { reason: reason.clone(), ..summary };
        }
        let finals = self.finals_of(candidate);
        let longest = || -> Vec<&RaceSample> {
            let is_it = |sample: &&RaceSample| {
                sample.variant == candidate.name
                    && sample.stage == Stage::Elimination
                    && sample.bytes == candidate.elimination_bytes
            };
            self.samples.iter().filter(is_it).collect()
        };
        if candidate.class() == Class::Floor {
            let samples = if finals.is_empty() { longest() } else { finals };
            return Summary::of(variant, VariantStage::Floor, &samples);
        }
        if candidate.final_runs == 0 {
            let mut summary = Summary::of(variant, VariantStage::Eliminated, &longest());
            summary.ratio_to_best =
                ns_per_byte(candidate).zip(best_ns_per_byte).map(|(own, best)| own / best);
            summary.reason = match &candidate.status {
                Status::Slow(reason) => reason.clone(),
                _ => "the time was over before it could run".to_owned(),
            };
            return summary;
        }
        Summary::of(variant, VariantStage::Raced, &finals)
    }

    fn note(&mut self, environment: &Environment, load: &Load, rounds: u32) {
        self.note_state(environment);
        let source = self.source();
        let mut note = |text: String| self.notes.push(text);
        if rounds < 3 && self.config.rounds.is_none() {
            note("the time was too short for three rounds: allow more with --time".to_owned());
        }
        if source.allocated_bytes(load) < load.bytes / 10 * 9 {
            note("the source has holes: reading them costs less than reading data".to_owned());
        }
        let throttled = environment.dirty_background_bytes.is_some_and(|most| load.bytes > most);
        if throttled {
            note(
                "copies of this size make the kernel write to the device while they run: the \
                 figures hold part of that"
                    .to_owned(),
            );
        }
        if !environment.optimized_build {
            note("this is a debug build: use cargo run --release".to_owned());
        }
        let sharers = self.candidates.iter().filter(|candidate| candidate.class() == Class::Sharer);
        let sharers: Vec<&str> = sharers.map(|candidate| candidate.name.as_str()).collect();
        if !sharers.is_empty() {
            note(format!(
                "{} moved no bytes: source and copy share their extents",
                words::listed(&sharers)
            ));
        }
        let was_helped = |it: &&RaceSample| it.is_final() && it.measured.last_resort_bytes > 0;
        let refused = |it: &RaceSample| {
            let share = it.measured.last_resort_bytes as f64 / it.bytes as f64 * 100.0;
            let share = if share < 0.1 { "<0.1".to_owned() } else { format!("{share:.1}") };
            format!("{} refused {share} % ({})", it.variant, it.measured.refusals)
        };
        let mut helped: Vec<String> = self.samples.iter().filter(was_helped).map(refused).collect();
        helped.sort();
        helped.dedup();
        if !helped.is_empty() {
            note(format!("{}: read_write copied that in its place", helped.join("; ")));
        }
    }

    fn note_state(&mut self, environment: &Environment) {
        let prover = &environment.prover;
        let finals = || self.samples.iter().filter(|sample| sample.is_final());
        let mut notes = Vec::new();
        if !prover.counts_pages {
            notes.push(format!("the state is unverified: {}", prover.counts_pages_note));
        }
        let missed: Vec<_> =
            finals().filter(|sample| sample.measured.state_proved == Proof::NotReached).collect();
        if let Some(sample) = missed.first() {
            notes.push(format!(
                "{} of {} runs were not {} and do not count ({})",
                missed.len(),
                finals().count(),
                self.config.state.name(),
                sample.measured.state_note
            ));
        }
        if self.config.state == State::Cold && environment.virtual_machine {
            notes.push("cold is guest-cold: the host of this virtual machine may cache".to_owned());
        }
        if environment.reports_free_pages {
            let why = "the host of this virtual machine takes free memory back: runs that need much \
                       of it are slow now and then";
            notes.push(why.to_owned());
        }
        self.notes.extend(notes);
    }
}

/// The indices of the candidates of a class that were in the final. One that was refused there does not
/// work here, however fast its runs before were.
fn finalists(candidates: &[Candidate], class: Class) -> Vec<usize> {
    let is_it = |it: &Candidate| it.class() == class && !it.is_refused() && it.final_runs > 0;
    (0..candidates.len()).filter(|&index| is_it(&candidates[index])).collect()
}

/// The verdict on the candidates with these indices. It stays open if a candidate did as well as the
/// winner in the elimination rounds and was not in the final.
fn decide(candidates: &[Candidate], finalists: &[usize]) -> Verdict {
    let of = |&index: &usize| {
        let Candidate { name, finals_ns, .. } = &candidates[index];
        (name.as_str(), finals_ns)
    };
    let verdict = winner::decide(&finalists.iter().map(of).collect::<Vec<_>>());
    let is_winner = |it: &&Candidate| verdict.winner.as_ref() == Some(&it.name);
    let Some(winner) = candidates.iter().find(is_winner) else { return verdict };
    let did_as_well = |it: &&Candidate| {
        let its = it.elimination_ns_at(winner.elimination_bytes);
        let pair = its.zip(winner.elimination_median_ns());
        pair.is_some_and(|(its, best)| its <= best * AS_WELL)
    };
    let is_unraced = |it: &&Candidate| it.is_working_mover() && it.final_runs == 0;
    let unraced = candidates.iter().filter(is_unraced).filter(did_as_well);
    let unraced: Vec<String> = unraced.map(|it| it.name.clone()).collect();
    verdict.unless_unraced(&unraced)
}

/// Nanoseconds a byte in its longest elimination rounds.
fn ns_per_byte(candidate: &Candidate) -> Option<f64> {
    Some(median(&candidate.elimination_ns)? / candidate.elimination_bytes.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::candidate::{Role, raced};

    #[test]
    fn one_that_was_refused_in_the_final_does_not_win() {
        let of = |(name, ns): (&str, f64)| {
            let times: [f64; 11] = std::array::from_fn(|run| ns + (run % 3) as f64);
            raced(name, Role::Contender, &times)
        };
        let mut candidates = [("splice", 100.0), ("sendfile", 200.0), ("mmap", 300.0)].map(of);
        candidates[0].status = Status::Refused("no more".to_owned());
        let movers = finalists(&candidates, Class::Mover);
        assert_eq!(decide(&candidates, &movers).winner.as_deref(), Some("sendfile"));
    }
}
