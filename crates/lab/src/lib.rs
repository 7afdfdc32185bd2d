//! Measures the engines with a protocol that survives noisy machines.
//!
//! A [`race`] runs variants in shuffled, interleaved rounds on one [`source`]. Each [`trial`] sets
//! and proves the page cache [`state`], times the copy alone, verifies it outside the timed part
//! and becomes a [`sample`]; [`summary`] and [`verdict`] follow from samples by [`stats`] without
//! any I/O. Everything is written in one [`fixture`] directory, which is removed on every way out.

pub mod analysis;
pub mod certificate;
pub mod clock;
pub mod compare;
pub mod conduct;
pub mod definition;
pub mod environment;
pub mod error;
pub mod experiment;
pub mod page_cache;
pub mod process;
pub mod race;
pub mod run_dir;
pub mod sample;
pub mod scratch;
pub mod search;
pub mod session;
pub mod source;
pub mod stats;
pub mod trial;
pub mod tune;
pub mod verdict;
pub mod wording;
pub mod words;
pub mod workload;
