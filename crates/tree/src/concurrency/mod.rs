//! How many workers run at once: the controller, what it measures, and its search.

pub(crate) mod controller;
pub(crate) mod limits;
mod monitor;
mod search;

pub(crate) use controller::{ConcurrencyController, EntryCost, OpenOnDrop, Permit};
pub(crate) use limits::WorkerLimits;
