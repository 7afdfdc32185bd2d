//! What a user asks of a race, and the progress that it reports.

use std::time::{Duration, Instant};

use engines::Variant;

use crate::page_cache::state::State;
use crate::sample::Stage;
use crate::search::candidate::Line;

/// What a race is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// The page cache state before each run.
    pub state: State,
    /// The variants.
    pub variants: Vec<Variant>,
    /// Whether the user named the variants. If so, and with a number of rounds, far slower ones are
    /// kept.
    pub named: bool,
    /// Rounds to run; without it as many as the time allows.
    pub rounds: Option<u32>,
    /// Time for everything; without it as long as the rounds take.
    pub time: Option<Duration>,
    /// When the time began.
    pub started: Instant,
    /// The seed of all orders.
    pub seed: u64,
    /// Set where the race is a visit of a search for a profile.
    pub visit: Option<Visit>,
}

/// A visit of a search for a profile: a race that goes on with candidates of the visits before, on other
/// files.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Rounds of the finals of the visits before.
    pub rounds_before: u32,
    /// A candidate that is slower than the best by up to this share is not dropped.
    pub margin: f64,
}

/// What is about to be run, for the caller. It is reported between runs and never during one.
#[derive(Debug)]
pub struct Progress<'p> {
    /// The part of the race.
    pub stage: Stage,
    /// The round, from 1.
    pub round: u32,
    /// The variant about to run.
    pub variant: &'p Variant,
    /// Time since the race began.
    pub elapsed: Duration,
    /// Time it will take yet, as far as that is known.
    pub left: Option<Duration>,
    /// The variants that ran so far, fastest first.
    pub ranking: Vec<Line>,
}

/// Called before each run.
pub type Watch<'w> = dyn FnMut(&Progress<'_>) + 'w;
