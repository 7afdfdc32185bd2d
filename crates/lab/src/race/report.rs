//! What came of a race.

use serde::Serialize;

use super::candidate::{Class, Entrant, Progressing};
use super::runner::Race;
use super::summary::{Standing, Summary};
use crate::environment::Environment;
use crate::page_cache::state::{Proof, State};
use crate::sample::{Sample, Stage};
use crate::search::winner::{self, Racer, Verdict};
use crate::source::Load;
use crate::words;

/// Slower by no more than this factor in the heats is as good there: they are few and short.
const AS_WELL: f64 = 1.1;

/// Everything there is to say of a race, in the order of the JSON file.
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
    pub samples: Vec<Sample>,
    /// Every run of the heats, and the one that warmed up: none of these counts.
    pub heats: Vec<Sample>,
    /// Every variant, fastest first.
    pub summary: Vec<Summary>,
    /// Who won.
    pub verdict: Verdict,
    /// Who won of those that moved bytes, where others shared extents.
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
        let racers_of = |classes: &[Class]| -> Vec<Racer> {
            let of_class = |entrant: &&Entrant| classes.contains(&entrant.class());
            let raced = |entrant: &&Entrant| !entrant.final_samples().is_empty();
            self.entrants.iter().filter(of_class).filter(raced).map(Entrant::racer).collect()
        };
        let movers = racers_of(&[Class::Mover]);
        let all = racers_of(&[Class::Mover, Class::Sharer]);
        let verdict = self.decide(&all);
        let shared = all.len() > movers.len();
        let verdict_moving_bytes = (shared && !movers.is_empty()).then(|| self.decide(&movers));
        let summary = self.summaries(&[&movers, &racers_of(&[Class::Sharer])]);
        self.note(&environment, load, rounds);
        let samples = |is_final: bool| {
            let all = self.entrants.iter().flat_map(|entrant| &entrant.samples);
            let mut samples: Vec<Sample> =
                all.filter(|sample| sample.is_final() == is_final).cloned().collect();
            samples.sort_by_key(|sample| {
                (sample.stage == Stage::WarmUp, sample.bytes, sample.round, sample.order_in_round)
            });
            samples
        };
        Report {
            schema_version: 1,
            state_wanted: self.config.state,
            source_bytes: whole.bytes,
            source_files: whole.parts.len(),
            raced_bytes: load.bytes,
            rounds,
            elapsed_ns: u64::try_from(self.config.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            samples: samples(true),
            heats: samples(false),
            summary,
            verdict,
            verdict_moving_bytes,
            notes: self.notes,
            environment,
        }
    }

    /// The verdict on `racers`. Whoever did as well as the winner in the heats, and did not come into
    /// the final, keeps it open.
    fn decide(&self, racers: &[Racer]) -> Verdict {
        let verdict = winner::decide(racers);
        let heat_ns = |entrant: &Entrant| entrant.heat_ns(entrant.heat_bytes());
        let winner = self.entrants.iter().find(|entrant| {
            verdict.winner.as_deref() == Some(entrant.variant.to_string().as_str())
        });
        let unraced: Vec<String> = self
            .entrants
            .iter()
            .filter(|entrant| entrant.final_samples().is_empty())
            .filter(|entrant| entrant.class() == Class::Mover)
            .filter(|entrant| {
                winner.is_some_and(|winner| {
                    let pair = heat_ns(entrant).zip(heat_ns(winner));
                    entrant.heat_bytes() == winner.heat_bytes()
                        && pair.is_some_and(|(its, best)| its <= best * AS_WELL)
                })
            })
            .map(|entrant| entrant.variant.to_string())
            .collect();
        verdict.unless_unraced(&unraced)
    }

    /// A line a variant: those of the final that move bytes, fastest first, those that share extents,
    /// those of the heats, floors, and those that do not work here.
    fn summaries(&self, classes: &[&[Racer]]) -> Vec<Summary> {
        let bests: Vec<&Racer> = classes
            .iter()
            .filter_map(|racers| winner::best(racers).map(|index| &racers[index]))
            .collect();
        let best_of_class = |entrant: &Entrant| {
            let name = entrant.variant.to_string();
            let class = classes.iter().position(|racers| racers.iter().any(|r| r.variant == name));
            let racers = classes[class?];
            bests.iter().copied().find(|best| racers.iter().any(|r| r.variant == best.variant))
        };
        let movers = self.entrants.iter().filter(|entrant| entrant.class() == Class::Mover);
        let best_heat_pace = movers.filter_map(Entrant::heat_pace).min_by(f64::total_cmp);
        let mut summaries: Vec<Summary> = self
            .entrants
            .iter()
            .map(|entrant| summary_of(entrant, best_of_class(entrant), best_heat_pace))
            .collect();
        summaries.sort_by(|a, b| {
            let place = |summary: &Summary| match summary.standing {
                Standing::Raced if !summary.shares_extents => 0,
                Standing::Raced => 1,
                Standing::Heat => 2,
                Standing::Floor => 3,
                Standing::Refused => 4,
            };
            let ratio = |summary: &Summary| summary.ratio_to_best.unwrap_or(f64::INFINITY);
            let rate = |summary: &Summary| summary.megabytes_per_second.unwrap_or(0.0);
            place(a)
                .cmp(&place(b))
                .then_with(|| ratio(a).total_cmp(&ratio(b)))
                .then_with(|| rate(b).total_cmp(&rate(a)))
        });
        summaries
    }

    fn note(&mut self, environment: &Environment, load: &Load, rounds: u32) {
        self.note_state(environment);
        let mut note = |text: String| self.notes.push(text);
        let samples = || self.entrants.iter().flat_map(|entrant| &entrant.samples);
        if rounds < 3 && self.config.rounds.is_none() {
            note("the time was too short for three rounds: allow more with --time".to_owned());
        }
        if self.bench.source.allocated_bytes(load) < load.bytes / 10 * 9 {
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
        let sharers = self.entrants.iter().filter(|entrant| entrant.class() == Class::Sharer);
        let sharers: Vec<String> = sharers.map(|entrant| entrant.variant.to_string()).collect();
        if !sharers.is_empty() {
            note(format!(
                "{} moved no bytes: source and copy share their extents",
                words::listed(&sharers)
            ));
        }
        let mut helped: Vec<String> = samples()
            .filter(|sample| sample.is_final() && sample.measured.last_resort_bytes > 0)
            .map(|sample| {
                let share = sample.measured.last_resort_bytes as f64 / sample.bytes as f64 * 100.0;
                let share = if share < 0.1 { "<0.1".to_owned() } else { format!("{share:.1}") };
                format!("{} refused {share} % ({})", sample.variant, sample.measured.refusals)
            })
            .collect();
        helped.sort();
        helped.dedup();
        if !helped.is_empty() {
            note(format!("{}: read_write copied that in its place", helped.join("; ")));
        }
    }

    fn note_state(&mut self, environment: &Environment) {
        let prover = &environment.prover;
        let finals = || self.entrants.iter().flat_map(Entrant::final_samples);
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

fn summary_of(entrant: &Entrant, best: Option<&Racer>, best_heat_pace: Option<f64>) -> Summary {
    let variant = &entrant.variant;
    let finals = entrant.final_samples();
    if let Progressing::Refused(reason) = &entrant.progressing {
        let summary = Summary::of(variant, Standing::Refused, &[]);
        return Summary { reason: reason.clone(), ..summary };
    }
    if entrant.class() == Class::Floor {
        let samples = if finals.is_empty() { entrant.longest_heats() } else { finals };
        return Summary::of(variant, Standing::Floor, &samples);
    }
    if finals.is_empty() {
        let mut summary = Summary::of(variant, Standing::Heat, &entrant.longest_heats());
        summary.ratio_to_best =
            entrant.heat_pace().zip(best_heat_pace).map(|(pace, best)| pace / best);
        summary.reason = match &entrant.progressing {
            Progressing::OutInHeats(reason) => reason.clone(),
            _ => "the time was over before its turn came".to_owned(),
        };
        return summary;
    }
    let racer = entrant.racer();
    let ratio = best
        .filter(|best| best.variant != racer.variant)
        .and_then(|best| racer.against(best).ratio());
    let mut summary = Summary::of(variant, Standing::Raced, &finals).with_ratio(ratio);
    if best.is_some_and(|best| best.variant == racer.variant) {
        summary.ratio_to_best = Some(1.0);
    }
    summary
}
