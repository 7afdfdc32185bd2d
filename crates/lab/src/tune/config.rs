//! What a user asks of `tune`.

use std::time::{Duration, Instant};

use engines::Variant;

use super::case::Case;

/// What a search is to do.
pub struct Config<'c> {
    /// Time for everything.
    pub time: Duration,
    /// When the time began.
    pub begun: Instant,
    /// The seed of all orders.
    pub seed: u64,
    /// Copies in flight where there are several.
    pub at_once: usize,
    /// The most workers that a file is shared by.
    pub workers_max: usize,
    /// The candidates.
    pub variants: Vec<Variant>,
    /// What a copy tries in a case without being told, one after another.
    pub defaults: &'c dyn Fn(&Case) -> Vec<Variant>,
    /// What was chosen for a case before, if anything was: it takes part to the end, so that a new
    /// search tells what going on with it would cost.
    pub present: &'c dyn Fn(&Case) -> Option<Variant>,
}
