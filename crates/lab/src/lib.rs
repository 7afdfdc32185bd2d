//! Measures the engines with a protocol that tolerates noisy machines.
//!
//! A [`race`] runs variants in shuffled, interleaved rounds on one [`source`]. Each [`trial`] sets
//! and proves the state of the [`page_cache`], times the copy alone, verifies it outside the timed
//! part, and becomes a [`sample`]. An experiment runs the cells of a [`definition`] in [`session`]
//! processes, as [`conduct`] decides. Its [`verdict`] follows from samples by [`analysis`],
//! [`studies`] and [`stats`] without I/O. The lab writes to one [`scratch`] directory, which is
//! removed however the program ends; after SIGKILL the next run reports it.
//!
//! # Results
//!
//! [`run_dir::Run::read`] reads a run directory: its definition, and every [`sample`] as a row of
//! fields. The crate `haulage-report` adds the [`verdict`] of the run.
//!
//! ```no_run
//! use haulage_lab::run_dir::Run;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let run = Run::read("runs/20260131T120000Z-host-engines".as_ref())?;
//! for sample in &run.samples {
//!     println!("{} {} {} ns", sample.cell, sample.variant, sample.measured.elapsed_ns);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! Where a rule is implemented:
//!
//! | rule | where |
//! |---|---|
//! | which rounds count as disturbed | limits and `RoundRecord::breaches` in `session/gates.rs` |
//! | how a disturbed round is run again | `carry_out` in `session/mod.rs`; how often: `REPEATS` in `conduct/next_session.rs` |
//! | why no slow sample is removed | [`stats::Sessions`] (`stats/sessions.rs`), which weights rounds instead |
//! | how many rounds the next session has | `Conductor::rounds_for` in `conduct/next_session.rs` |
//! | when a cell ends | `Conductor::analyse` in `conduct/mod.rs`; the most sessions: `sessions_max` in `conduct/state.rs` |
//! | when a race stops | `Race::run_final` and `is_decided` in `race/final_rounds.rs` |
//! | when a search of `tune` stops | `is_settled` in `tune/candidates.rs` |

pub mod analysis;
pub mod certificate;
pub mod clock;
pub mod compare;
pub mod conduct;
pub mod definition;
pub mod environment;
pub mod error;
pub mod experiment;
pub mod in_order;
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
pub mod studies;
pub mod trial;
pub mod tune;
pub mod verdict;
pub mod words;
pub mod workload;
