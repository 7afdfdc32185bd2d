//! Every technique to move bytes between two open descriptors on Linux, under one contract.
//!
//! The table [`ENGINES`] has one row for each technique, and each row has a file of its own. A
//! [`Variant`] is a row with its tuning. It starts a [`Copier`], which takes a [`Pair`] of borrowed
//! descriptors and a [`Span`] and returns [`Moved`]: the exact number of bytes and why it stopped.
//! A [`Chain`] of variants decides which variant is tried after a refusal.

mod bytes;
mod chain;
mod contract;
mod engine;
pub mod fs_types;
pub mod mount;
mod moved;
mod probe;
pub mod profile;
mod span;
mod support;
mod tuning;
mod variant;
mod variant_text;

pub use bytes::Bytes;
pub use chain::{Chain, FileCopy, Observer};
pub use contract::{Copier, Ends, Engine, Facts, Floor, Kind, StatusFlags, Verdict};
pub use engine::{ENGINES, by_name};
pub use moved::{Moved, Side, Stop, is_refusal, refuses_for_good};
pub use probe::{describe, probe, probe_variant, words_of_error, write_sample};
pub use rustix::io::Errno;
pub use span::{Meter, Pair, Pos, Span};
pub use support::placement::spawn_worker;
pub use support::presized::compresses;
pub use support::processor_cache::l2_bytes;
pub use support::until_done::{CALL_BYTES_MAX, pread_full, pwrite_all};
pub use tuning::{Param, ParamKind, Tuning};
pub use variant::{Variant, WORKERS_MAX};
pub use variant_text::ParseError;
