//! Statistics without any I/O: ratios of paired runs and of sessions, interim analyses and answers,
//! models of cost, artefacts, densities, predictions.

mod answer;
pub mod artefacts;
mod bisquare;
mod bootstrap;
mod covariate;
pub mod density;
mod dip;
mod estimate;
mod estimated;
mod holm;
mod interim;
pub mod models;
mod predict;
mod quantile;
mod rank_sum;
mod sessions;
mod share;
mod slow_runs;
#[cfg(test)]
mod tests;
mod theil_sen;

pub use answer::{Answer, POWER, Tested, decide};
pub use bootstrap::median_interval;
pub use estimate::{Estimate, Ratio, Runs};
pub use estimated::Estimated;
pub use holm::holm;
pub use interim::InterimAnalyses;
pub use predict::{Deviations, rounds_per_session, smallest_effect};
pub use quantile::{median, quantile};
pub use rank_sum::rank_sum_p;
pub use sessions::{Sessions, unpaired};
pub use share::Share;
pub use slow_runs::{SlowMode, has_slow_runs, slow_modes};
#[cfg(test)]
pub(crate) use tests::normal;

/// Two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}
