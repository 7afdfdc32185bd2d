//! Output: diagnostics, announcements, receipts, progress.

pub(crate) mod attribute;
pub(crate) mod diagnostic;
pub(crate) mod progress;
pub(crate) mod receipt;
pub(crate) mod reporter;
pub(crate) mod wording;

pub(crate) use attribute::{Attribute, Loss};
pub(crate) use diagnostic::{Action, Diagnostic, Result, failed, failed_at};
pub(crate) use progress::{ProgressTracker, WorkerCounters, WorkerProgress};
pub(crate) use receipt::{
    Attempt, Chosen, ChosenBy, DataReport, Method, Offload, Receipt, SparseDetection, Verified,
};
#[cfg(test)]
pub(crate) use reporter::Silent;
pub(crate) use reporter::{
    Announcement, DirectoryStage, Observer, PendingMessages, Question, Reporter,
};
