//! A copy that the processes of a parallel job share: each of them runs
//! [`Copy::run_as_rank`](crate::Copy::run_as_rank), and passes messages between the copies of all.

pub use tree::{Event, Inbox, RangeBytes, Rank, Ranks, Surplus};
