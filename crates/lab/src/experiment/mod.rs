//! What is run, in which order, and who takes part: pure decisions without any I/O.

pub mod admission;
pub mod plan;
pub mod selection;
