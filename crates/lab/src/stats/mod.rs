//! Statistics without any I/O: ratios of paired runs and of sessions, interim analyses and answers,
//! models of cost, artefacts, densities, predictions.

mod answer;
pub mod artefacts;
mod bisquare;
mod bootstrap;
mod covariate;
pub mod density;
mod dip;
mod expected_time;
mod holm;
mod interim;
pub mod models;
mod paired;
mod predict;
mod quantile;
mod rank_sum;
mod sessions;
mod share;
#[cfg(test)]
mod simulate;
mod theil_sen;
mod trimmed;
mod two_samples;
mod unpaired;

pub use answer::{Answer, POWER, Tested, decide, decide_family};
pub use bootstrap::median_interval;
pub use expected_time::{RoundTimes, SlowMode};
pub use holm::holm;
pub use interim::InterimAnalyses;
#[cfg(test)]
pub(crate) use paired::tests::normal;
pub use paired::{Paired, Ratio};
pub use predict::{Deviations, Pilot, Prediction, rounds_per_session};
pub use quantile::{median, quantile};
pub use rank_sum::rank_sum_p;
pub use sessions::{Runs, Sessions};
pub use share::Share;
pub use theil_sen::{Line, theil_sen};
pub use two_samples::TwoSamples;
pub use unpaired::unpaired;

/// Two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}
