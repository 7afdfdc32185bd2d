//! One run of a race as a row. The names of the fields give their units.

pub mod call_times;
pub mod csv_rows;
pub mod measurement;
pub mod record;
pub mod run_samples;

use serde::Serialize;

use crate::page_cache::state::State;
use measurement::Measurement;

/// One run of one variant: a line of the CSV file, an object of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The variant in its text form.
    pub variant: String,
    /// The engine of the variant.
    pub engine: &'static str,
    /// Workers that shared each file.
    pub workers: usize,
    /// The part of the race that it belongs to.
    pub stage: Stage,
    /// The round, from 1.
    pub round: u32,
    /// The run's place in the shuffled order of the round, from 1.
    pub order_in_round: u32,
    /// Bytes of the source that were copied, all files together.
    pub bytes: u64,
    /// The page cache state asked for.
    pub state_wanted: State,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measurement,
}

impl Sample {
    pub(crate) fn is_final(&self) -> bool {
        self.stage == Stage::Final
    }
}

/// The parts of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A short run on the start of the source; elimination rounds decide which candidates go on.
    Elimination,
    /// One run on the whole load that warms up and is never counted.
    WarmUp,
    /// Runs that count.
    Final,
}

/// Where in the race a run takes place.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The part of the race.
    pub stage: Stage,
    /// The round, from 1.
    pub round: u32,
    /// The place in the round's order, from 1.
    pub order_in_round: u32,
}

impl Sample {
    /// One run of `variant` over `bytes`, and its result.
    #[must_use]
    pub fn of(
        variant: &engines::Variant,
        place: Place,
        state_wanted: State,
        bytes: u64,
        measured: Measurement,
    ) -> Sample {
        Sample {
            variant: variant.to_string(),
            engine: variant.engine.name,
            workers: variant.workers,
            stage: place.stage,
            round: place.round,
            order_in_round: place.order_in_round,
            bytes,
            state_wanted,
            measured,
        }
    }
}
