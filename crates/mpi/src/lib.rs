//! `haulage cp` as a parallel job: several processes, the ranks, copy one tree together.
//!
//! Each rank walks as `haulage cp` does. [`cluster::Protocol`] decides which rank gives names to which;
//! this crate passes its messages on, and calls the copy of its rank ([`rank`]). The thread that
//! runs it is the only one that communicates ([`transport`]). docs/design/ranks.md describes
//! the whole.

mod driver;
pub mod frame;
#[cfg(feature = "mpi")]
pub mod network;
pub mod place;
mod ranges;
pub mod rank;
mod receipt_lines;
mod shared;
pub mod transport;
mod waiting_time;
