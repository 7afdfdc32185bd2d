//! Every way to move bytes between two open descriptors on Linux, under one contract.
//!
//! The table [`ENGINES`] has one row a technique and one file a row. A [`Variant`] is a row with its
//! tuning, started into a [`Copier`], which takes a [`Pair`] of borrowed descriptors and a [`Span`]
//! and returns [`Moved`]: the exact number of bytes and why it stopped. A [`Chain`] of variants
//! knows what follows a refusal.

mod chain;
mod copy_file_range;
mod cursor;
mod direct;
mod direct_read;
mod dontcache;
mod engine;
mod io_uring;
mod memory;
mod mmap;
pub mod mount;
mod moved;
mod parallel;
mod positions;
mod presized;
mod probe;
pub mod profile;
mod read_write;
mod reflink;
mod sendfile;
mod span;
mod splice;
mod status_flags;
mod stdio;
pub mod sys;
mod until_done;
mod variant;

pub use chain::{Chain, FileCopy, Observer};
pub use engine::{
    Copier, Ends, Engine, Facts, Floor, Kind, Param, ParamKind, StatusFlags, Verdict,
};
pub use moved::{Moved, Side, Stop, is_refusal, refuses_for_good};
pub use probe::{describe, probe, probe_variant, write_sample};
pub use rustix::io::Errno;
pub use span::{Meter, Pair, Pos, Span};
pub use until_done::{pread_full, pwrite_all};
pub use variant::{Bytes, ParseError, Tuning, Variant, WORKERS_MAX};

/// The most bytes one call moves: Linux cuts every read, write and kernel copy there
/// (MAX_RW_COUNT, read(2)).
pub const CALL_BYTES_MAX: u64 = 0x7fff_f000;

/// Every engine there is. A new one is a file beside the others and a row here.
pub static ENGINES: &[&Engine] = &[
    &read_write::READ_WRITE,
    &stdio::STDIO,
    &mmap::MMAP,
    &copy_file_range::COPY_FILE_RANGE,
    &sendfile::SENDFILE,
    &splice::SPLICE,
    &io_uring::IO_URING,
    &direct::DIRECT,
    &direct_read::DIRECT_READ,
    &dontcache::DONTCACHE,
    &reflink::REFLINK,
    &memory::MEMORY,
];

/// The row called `name`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().copied().find(|engine| engine.name == name)
}
