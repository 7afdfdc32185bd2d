//! Whole experiments: many cells, measured in sessions of shuffled rounds.

pub mod analysis;
pub mod answer;
pub mod call_times;
pub mod cell;
pub mod certificate;
pub mod certificates;
pub mod compare;
pub mod conduct;
pub mod definition;
pub mod estimate;
pub mod gates;
pub mod hands;
mod known;
pub mod library;
mod peer;
pub mod points;
pub mod probe;
pub mod prover_check;
pub mod record;
pub mod reference;
pub mod run_dir;
pub mod session;
pub mod signs;
pub mod site;
pub mod workload;
