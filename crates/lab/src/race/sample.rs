//! One run of a race as a row.

use serde::Serialize;

use crate::page_cache::state::State;
use crate::sample::Stage;
use crate::sample::measurement::Measurement;

/// One run of one variant: a line of the CSV file, an object of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct RaceSample {
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

impl RaceSample {
    pub(super) fn is_final(&self) -> bool {
        self.stage == Stage::Final
    }
}
