//! `--receipt` and `--stats`: what was done with each entry, and the totals of the run.

pub(super) mod clock;
pub(super) mod json;
pub(super) mod recorder;
pub(super) mod stats;
