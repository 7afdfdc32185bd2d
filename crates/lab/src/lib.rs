//! Measures the engines with a protocol that survives noisy machines.
//!
//! A [`race`] runs variants in shuffled, interleaved rounds on one [`source`]. Each [`trial`] sets
//! and proves the page cache [`state`], times the copy alone, verifies it outside the timed part
//! and becomes a [`sample`]; [`summary`] and [`verdict`] follow from samples by [`stats`] without
//! any I/O. Everything is written in one [`fixture`] directory, which is removed on every way out.

pub mod bench;
pub mod block_device;
pub mod clock;
mod digest;
pub mod environment;
mod error;
pub mod experiment;
pub mod fixture;
pub mod measurement;
pub mod perf;
mod proc_file;
pub mod race;
pub mod removal;
pub mod rows;
pub mod sample;
mod served;
mod share;
pub mod source;
pub mod state;
pub mod stats;
pub mod summary;
pub mod trial;
pub mod tune;
pub mod verdict;
pub mod words;

pub use digest::Digests;
pub use error::Error;
