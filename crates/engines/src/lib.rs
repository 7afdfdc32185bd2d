//! Every technique to move bytes between two open descriptors on Linux, under one contract.
//!
//! The table [`ENGINES`] has one row for each technique, and each row has a file of its own. A
//! [`Variant`] is a row with its tuning. It starts a [`Copier`], which takes a [`Pair`] of borrowed
//! descriptors and a [`Span`] and returns [`Moved`]: the exact number of bytes and why it stopped.
//! A [`Chain`] of variants decides which variant is tried after a refusal.

mod bytes;
mod chain;
mod copy_file_range;
mod cursor;
mod direct;
mod direct_read;
mod dontcache;
mod engine;
pub mod fs_types;
mod io_uring;
mod memory;
mod mmap;
pub mod mount;
mod moved;
mod parallel;
mod placement;
mod positions;
mod presized;
mod probe;
mod processor_cache;
pub mod profile;
mod read_write;
mod reflink;
mod sendfile;
mod span;
mod splice;
mod status_flags;
mod stdio;
mod stripes;
pub mod sys;
mod table;
mod tuning;
mod until_done;
mod variant;
mod variant_text;

pub use bytes::Bytes;
pub use chain::{Chain, FileCopy, Observer};
pub use engine::{Copier, Ends, Engine, Facts, Floor, Kind, StatusFlags, Verdict};
pub use moved::{Moved, Side, Stop, is_refusal, refuses_for_good};
pub use placement::{Place, Placement, spawn_worker};
pub use probe::{describe, probe, probe_variant, write_sample};
pub use processor_cache::l2_bytes;
pub use rustix::io::Errno;
pub use span::{Meter, Pair, Pos, Span};
pub use table::{ENGINES, by_name};
pub use tuning::{Param, ParamKind, Tuning};
pub use until_done::{CALL_BYTES_MAX, pread_full, pwrite_all};
pub use variant::{Variant, WORKERS_MAX};
pub use variant_text::ParseError;
