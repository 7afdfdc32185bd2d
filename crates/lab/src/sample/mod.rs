//! Timed runs as rows. The names of the fields give their units.

pub mod call_times;
pub mod csv_rows;
pub mod measurement;
pub mod record;
pub mod run_samples;

use serde::Serialize;

/// The parts of a race or search.
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
