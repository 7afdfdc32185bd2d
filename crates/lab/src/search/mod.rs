//! Which variants take part in a race, in which order they run, which go on and which wins: decisions
//! without I/O.

pub mod admission;
pub mod candidate;
pub mod run_order;
pub mod selection;
pub mod winner;
