//! How many workers run at once: the controller, what it measures, and its search.

mod controller;
mod heuristics;
mod limits;
mod monitor;
mod search;

pub(crate) use controller::{ConcurrencyController, EntryCost, OpenOnDrop, Permit};
pub(crate) use limits::WorkerLimits;
