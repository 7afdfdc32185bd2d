//! How many workers run at once: the controller, what it measures, and its search.
//!
//! | question | file |
//! |---|---|
//! | when the second worker starts | `walk/single_worker.rs` |
//! | when the number changes later | `controller.rs`; what is measured: `monitor.rs` |
//! | which numbers are compared | `search.rs` |
//! | thresholds, bounds | `limits.rs` |
//! | how many workers share one large file | `processor_use.rs` |

mod controller;
mod limits;
mod monitor;
mod processor_use;
mod search;

pub(crate) use controller::{ConcurrencyController, Permit};
pub(crate) use limits::WorkerLimits;
pub(crate) use processor_use::{Helpers, ProcessorUse};
