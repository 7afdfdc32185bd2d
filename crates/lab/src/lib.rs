//! Measures the engines with a protocol that survives noisy machines.
//!
//! A [`race`] runs variants in shuffled, interleaved rounds on one [`source`]. Each [`trial`] sets
//! and proves the page cache [`state`], times the copy alone, verifies it outside the timed part
//! and becomes a [`sample`]; [`summary`] and [`verdict`] follow from samples by [`stats`] without
//! any I/O. Everything is written in one [`fixture`] directory, which is removed on every way out.

mod digest;
pub mod environment;
mod error;
pub mod experiment;
pub mod fixture;
pub mod race;
pub mod sample;
pub mod source;
pub mod state;
pub mod stats;
pub mod summary;
pub mod trial;
pub mod verdict;
pub mod words;

pub use digest::Digests;
pub use error::Error;
