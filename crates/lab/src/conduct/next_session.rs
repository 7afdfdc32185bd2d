//! The order of the next session: how many rounds, which variants, in which sequence.
//!
//! `Conductor::analyse` in `conduct/mod.rs` decides after each session whether its cell ends.

use std::time::Duration;

use super::cell_run::ROUNDS_MAX;
use super::state::Conductor;
use crate::analysis::interim::SESSIONS_MIN;
use crate::definition::Order;
use crate::process::own_pid;
use crate::session::protocol;

/// About how long the rounds of the first session of a cell take. That session measures what a
/// round costs.
const FIRST_SESSION: Duration = Duration::from_millis(30);

/// Runs of each variant in a part whose variants run one after another.
const RUNS_ONE_AFTER_ANOTHER: usize = 10;

/// How often a disturbed round is run again, by the session process (`session/mod.rs`).
const REPEATS: u32 = 2;

/// Longer runs have no warm-up run, except in the first session of a cell: warming up a new process
/// takes microseconds.
const WARM_UP_MAX: Duration = Duration::from_millis(20);

impl Conductor<'_> {
    /// Rounds for the next session of a cell.
    pub(super) fn rounds_for(&self, cell: usize) -> u32 {
        let run = &self.cells[cell];
        if let Some(rounds) = self.limits.rounds {
            let (each, last) = (self.sessions_max(), rounds);
            return last.div_ceil(each).min(last.saturating_sub(run.rounds)).max(1);
        }
        // The first session ends by time.
        let Some(round) = run.round_cost else { return ROUNDS_MAX };
        // Starting a session should take no longer than its rounds.
        let by_overhead = run.session_cost.as_secs_f64() / round.as_secs_f64().max(1e-6);
        let wanted = by_overhead.ceil().max(run.rounds_wanted.map_or(0.0, f64::from));
        // The sessions still needed for a first interim analysis have to fit into the time.
        let for_main = self.left_for_main().filter(|_| self.is_of_main(cell));
        let takes_turns = |&other: &usize| {
            self.cells[other].ended.is_none() && (for_main.is_none() || self.is_of_main(other))
        };
        let open = (0..self.cells.len()).filter(takes_turns).count().max(1);
        let left = for_main.or(self.left()).map_or(f64::INFINITY, |left| left.as_secs_f64());
        let needed = f64::from(SESSIONS_MIN.saturating_sub(run.sessions).max(1)) * open as f64;
        let by_time =
            (left / needed - run.session_cost.as_secs_f64()) / round.as_secs_f64().max(1e-6);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within 1 to 64.
        let rounds = wanted.min(by_time).clamp(1.0, f64::from(ROUNDS_MAX)) as u32;
        rounds
    }

    pub(super) fn order(&self, index: usize, rounds: u32, seed: u64) -> protocol::Order {
        let run = &self.cells[index];
        let part = &self.definition.parts[run.part];
        let runs_on = |&variant: &usize| run.refused[variant].is_none() && !run.answered[variant];
        let works: Vec<usize> = (0..part.variants.len()).filter(runs_on).collect();
        let mut rng = fastrand::Rng::with_seed(seed);
        let rounds = match part.order {
            Order::Shuffled => (0..rounds)
                .map(|_| {
                    let mut order = works.clone();
                    rng.shuffle(&mut order);
                    order
                })
                .collect(),
            Order::OneAfterAnother => {
                let runs = self.limits.rounds.map_or(RUNS_ONE_AFTER_ANOTHER, |n| n as usize);
                vec![works.iter().flat_map(|&variant| vec![variant; runs]).collect()]
            }
        };
        let shuffled = part.order == Order::Shuffled;
        let first =
            (run.round_cost.is_none() && self.limits.rounds.is_none()).then_some(FIRST_SESSION);
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let runs = u32::try_from(works.len()).unwrap_or(u32::MAX);
        protocol::Order {
            cell: run.cell.clone(),
            session: run.sessions + 1,
            variants: part.variants.clone(),
            rounds,
            src_dir: self.places.src.to_owned(),
            dst_dir: self.places.dst.to_owned(),
            seed,
            rounds_ns: self.left().into_iter().chain(first).min().map(nanos).filter(|_| shuffled),
            repeats_ns: self.left().map(nanos),
            // Most measurements have no warm-up run, and this order imitates them.
            warm_up: shuffled && run.round_cost.is_none_or(|cost| cost < WARM_UP_MAX * runs),
            count_calls: shuffled && run.calls.is_empty(),
            repeats: if shuffled && !run.is_always_disturbed() { REPEATS } else { 0 },
            slowed: part.slowed.clone(),
            worker: None,
            parent: Some(own_pid()),
        }
    }
}
