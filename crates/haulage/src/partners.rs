//! A copy that several processes share, such as those of an MPI job: each of them runs
//! [`Copy::run_with_partners`](crate::Copy::run_with_partners), and passes messages between the copies
//! of all.

pub use tree::{Answer, Event, Inbox, Load, Partners, Partnership, RangeBytes, ShareEnd, Surplus};
