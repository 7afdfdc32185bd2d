//! What a user asks of `tune`.

use std::time::{Duration, Instant};

use engines::Variant;

use super::case::Case;

/// What a search does, between two directories.
pub struct Config<'c> {
    /// Time for everything.
    pub time: Duration,
    /// When the time began.
    pub started: Instant,
    /// The seed of all orders.
    pub seed: u64,
    /// Copies in flight where there are several.
    pub at_once: usize,
    /// The most workers that a file is shared by.
    pub workers_max: usize,
    /// The candidates.
    pub variants: Vec<Variant>,
    /// The variants that a copy tries in a case by default, in order.
    pub defaults: &'c dyn Fn(&Case) -> Vec<Variant>,
    /// The choice for a case in the current profile. It takes part to the end, so that the search
    /// shows what keeping it would cost.
    pub present: &'c dyn Fn(&Case) -> Option<Variant>,
}
