//! Output: diagnostics, announcements, receipts, progress.

pub(crate) mod attribute;
pub(crate) mod diagnostic;
mod message_order;
pub(crate) mod observer;
pub(crate) mod progress;
pub(crate) mod receipt;
pub(crate) mod reporter;
pub(crate) mod wording;

pub(crate) use attribute::{Attribute, Loss};
pub(crate) use diagnostic::{Action, Diagnostic, Result, failed, failed_at};
pub(crate) use message_order::PendingMessages;
#[cfg(test)]
pub(crate) use observer::Silent;
pub(crate) use observer::{Announcement, DirectoryStage, Observer, Question};
pub(crate) use progress::{ProgressTracker, WorkerCounters, WorkerProgress};
pub(crate) use receipt::{
    Attempt, Chosen, ChosenBy, DataReport, Method, Offload, Receipt, SparseDetection, Verified,
};
pub(crate) use reporter::Reporter;
