//! What is tried by the thousand, or on other kernels, because a test would take too long: the tasks `sweep`,
//! `guest`, `matrix` and `mutants` of `cargo xtask`. The set-up of all tests is here, too.

pub mod command;
pub mod file_systems;
mod guest;
mod matrix;
mod mutants;
mod namespace;
pub mod packages;
pub mod skips;
mod sweep;
pub mod tasks;

pub use namespace::words;
