//! Statistics without any I/O: medians, ratios of paired runs, intervals, many tests at once.

mod bootstrap;
mod holm;
mod paired;
mod quantile;

pub use bootstrap::median_interval;
pub use holm::holm;
#[cfg(test)]
pub(crate) use paired::tests::normal;
pub use paired::{Paired, Ratio};
pub use quantile::{median, quantile};

/// Two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}
