//! `race`: which variant copies this source fastest.
//!
//! Elimination rounds on the start of the source drop candidates and measure what a run costs. The
//! final runs whole rounds in shuffled order until the best is known or the time is over.

pub mod config;
mod elimination;
mod final_rounds;
pub(crate) mod heuristics;
pub mod report;
pub(crate) mod runner;
pub mod sample;
pub mod summary;

use report::Report;

use crate::definition::cell::Destination;
use crate::environment;
use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::scratch::Scratch;
use crate::search::candidate::{Candidate, Role};
use crate::source::{Load, Source};
use crate::trial::Bench;
use config::{Config, Watch};
use runner::Race;

/// Runs the race.
///
/// # Errors
/// When the source cannot be read or changes, the destination cannot be written or is too full, a
/// copy fails or is wrong, or no variant works here.
pub fn run<'r>(
    config: &Config,
    source: &'r Source,
    scratch: &'r Scratch,
    haulage_commit: Option<&'static str>,
    watch: &'r mut Watch<'r>,
) -> Result<Report, Error> {
    let whole = source.whole();
    scratch.require_space(room_for(&whole))?;
    let prover = Prover::try_on(source, config.state)?;
    let dst_dir = scratch.path().parent().unwrap_or(scratch.path());
    let environment = environment::Environment::look(
        source.path(),
        dst_dir,
        prover.clone(),
        config.seed,
        haulage_commit,
    );
    source.settle()?;
    let contender = |variant| Candidate::new(variant, Role::Contender);
    let candidates = config.variants.iter().cloned().map(contender).collect();
    let bench = Bench {
        source,
        dst: scratch,
        prover: &prover,
        state: config.state,
        destination: Destination::Fresh,
        stays: false,
        durable: false,
    };
    let mut race = Race::new(config.clone(), vec![vec![bench]], candidates, watch);

    race.run_elimination()?;
    race.require_copiers()?;
    let load = race.choose_load(&whole);
    let tasks = race.tasks(load.bytes)?;
    let rounds = race.run_final(&tasks)?;
    race.require_copiers()?;
    Ok(race.report(environment, &whole, &load, rounds))
}

/// Room that a copy takes: its bytes, and what the file system needs beside them.
fn room_for(load: &Load) -> u64 {
    let block_slack = 8192 * load.parts.len() as u64;
    // Of sparse files there may be more bytes than a number holds.
    load.bytes.saturating_add(load.bytes / 50 + block_slack + (16 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_than_a_number_holds_need_all_the_room_that_there_is() {
        assert_eq!(room_for(&Load { parts: Vec::new(), bytes: u64::MAX - 1 }), u64::MAX);
    }
}
