//! `haulage cp` as a parallel job: several processes, the ranks, copy one tree together.
//!
//! Each rank walks as `haulage cp` does. [`cluster::Protocol`] decides which rank gives names to which;
//! this crate passes its messages on, and calls the copy of its rank ([`driver`]). The thread that
//! runs the driver is the only one that communicates ([`transport`]). docs/design/ranks.md describes
//! the whole.

pub mod driver;
mod event;
pub mod frame;
#[cfg(feature = "mpi")]
pub mod network;
mod place;
mod rank;
mod receipt_lines;
pub mod transport;
mod waiting_time;
