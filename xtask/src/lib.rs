//! The set-up of tests, for the tasks of this crate and for those of crates/sweeps.

pub mod command;
pub mod file_systems;
mod namespace;
pub mod packages;
pub mod skips;

pub use namespace::words;
