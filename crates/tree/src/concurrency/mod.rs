//! How many workers run at once: the controller, what it measures, and its search.
//!
//! | question | file |
//! |---|---|
//! | when the second worker starts | `walk/contexts.rs` |
//! | when the number changes later | `controller.rs`; what is measured: `monitor.rs` |
//! | which numbers are compared, thresholds, bounds | `monitor.rs` |
//! | how many workers share one large file | `processor_use.rs` |

mod controller;
mod monitor;
mod processor_use;

pub(crate) use controller::{ConcurrencyController, EntryCost, OpenOnDrop, Permit};
pub(crate) use monitor::WorkerLimits;
pub(crate) use processor_use::{Helpers, ProcessorUse};
