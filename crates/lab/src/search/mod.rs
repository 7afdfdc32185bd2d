//! Which variants take part in a race or a search, in which order they run, which go on and which
//! wins: decisions that `race` and `tune` share.

pub mod admission;
pub mod candidate;
pub mod run_order;
pub mod selection;
pub mod winner;
