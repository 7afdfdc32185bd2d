//! Copies files and trees: what to copy, in which order, with which metadata.
//!
//! [`copy`] takes a [`Request`] (names) and [`Options`] (every knob of GNU cp) and tells an
//! [`Observer`] what it does: diagnostics as typed values, questions, announcements and one
//! [`Receipt`] an entry. It prints nothing and knows no message.
//!
//! Both ends are anchored on directory descriptors. A name is looked up in a directory that is
//! open, one component at a time, and what was opened is compared with what was looked at, so that
//! nobody who swaps names while a copy runs can lead it elsewhere.

mod concurrency;
mod copy;
mod data;
mod destination;
mod entry;
mod fs;
mod lock;
mod metadata;
mod report;
mod request;
mod security;
mod shared;
mod walk;

pub use data::engine_choice::prediction::{PlannedFile, Predictor};
pub use engines::Errno;
pub use fs::stat::FileId;
pub use report::diagnostic::{Action, Diagnostic, OldAttribute, Severity};
pub use report::observer::{Announcement, Observer, Question};
pub use report::progress::{CurrentFile, Progress, ProgressTracker};
pub use report::receipt::{
    Attempt, Attribute, Chosen, ChosenBy, Loss, Method, Offload, Receipt, SparseDetection, Verified,
};
pub use request::filter::{BadGlob, Filter, IgnoreFile, Rule};
pub use request::options::{
    Backup, BackupKind, Context, Existing, Follow, Keep, Make, ModeRule, Options, Preserve,
    Reflink, Sparse,
};
pub use request::paths::{Destination, Request};
pub use walk::operands::{Outcome, copy};
pub use walk::pre_scan::{PreScan, Totals};
