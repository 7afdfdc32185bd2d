//! Copies files and trees: what to copy, in which order, with which metadata.
//!
//! [`copy()`] takes a [`Request`] (names) and [`Options`] (those of GNU cp, and more). It tells an
//! [`Observer`] what it does: diagnostics as typed values, questions, announcements and one
//! [`Receipt`] for each entry. It prints nothing.
//!
//! A name is looked up in an open directory, one component at a time, and an opened file is
//! compared with the one that was looked at. A symlink swapped in during the copy is never
//! followed.

mod concurrency;
mod copy;
mod data;
mod destination;
mod entry;
mod fs;
mod hash;
mod lock;
mod metadata;
mod report;
mod request;
mod security;
mod shared;
mod walk;

pub use data::engine_choice::prediction::{PlannedFile, Predictor};
pub use data::engine_choice::rule::{RULE, Row};
pub use engines::{Errno, words_of_error};
pub use fs::stat::FileId;
pub use report::attribute::{Attribute, Loss};
pub use report::diagnostic::{Action, Diagnostic, Severity};
pub use report::observer::{Announcement, DirectoryStage, Observer, Question};
pub use report::progress::{CurrentFile, Progress, ProgressTracker};
pub use report::receipt::{
    Attempt, Chosen, ChosenBy, Method, Offload, Receipt, SparseDetection, Verified,
};
pub use report::wording::fill;
pub use request::filter::{BadGlob, Filter, IgnoreFile, Rule};
pub use request::options::{
    Backup, BackupKind, Context, Destination, Existing, Follow, Keep, Make, ModeRule, Options,
    Preserve, Reflink, Request, Sparse,
};
pub use shared::partners::{Event, Inbox, Load, Partners, Partnership, ShareEnd, Surplus};
pub use shared::shared_file::{Answer, RangeBytes};
pub use walk::contexts::Outcome;
pub use walk::pre_scan::{PreScan, Totals};
pub use walk::run::{copy, copy_descriptors, copy_with_partners};
