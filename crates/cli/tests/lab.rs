//! The commands of the lab that take a short time, as a user runs them.

mod bench;
mod bench_killed;
mod compare;
mod race;
