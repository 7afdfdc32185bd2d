//! `--receipt` and `--stats`: what was done with each entry, and the totals of the run.

pub(super) mod json;
mod part_file;
mod rank_summary;
pub(super) mod recorder;
pub(super) mod stats;
