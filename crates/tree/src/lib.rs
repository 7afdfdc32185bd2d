//! Copies files and trees: what to copy, in which order, with which metadata.
//!
//! [`copy`] takes a [`Request`] (names) and [`Options`] (every knob of GNU cp) and tells an
//! [`Observer`] what it does: diagnostics as typed values, questions, announcements and one
//! [`Receipt`] an entry. It prints nothing and knows no message.
//!
//! Both ends are anchored on directory descriptors. A name is looked up in a directory that is
//! open, one component at a time, and what was opened is compared with what was looked at, so
//! that nobody who swaps names while a copy runs can lead it elsewhere.

mod activity;
mod backup;
mod began;
mod beside;
mod choice;
mod contents;
mod copies;
mod count;
mod diagnostic;
mod dir;
mod directory;
mod durable;
mod entry;
mod existing;
mod extents;
mod filter;
mod follow;
mod identity;
mod journal;
mod lines;
mod links;
mod listing;
mod lock;
mod measured;
mod metadata;
mod observer;
mod open;
mod options;
mod order;
mod outlook;
mod pace;
mod page_cache;
mod parents;
mod place;
mod plan;
mod pool;
mod receipt;
mod region;
mod regular;
mod rehearsal;
mod remains;
mod routes;
mod run;
mod same_file;
mod special;
mod staged;
mod standing;
mod throttle;
mod together;
mod trail;
mod umask;
mod verify;
mod walk;
mod writing;
mod xattr;
mod zeros;

pub use activity::{Activity, InHand, Progress};
pub use count::{Count, Counted};
pub use diagnostic::{Action, Diagnostic, OldAttribute, Severity};
pub use engines::Errno;
pub use filter::{BadGlob, Filter, IgnoreFile, Rule};
pub use identity::FileId;
pub use observer::{Announcement, Observer, Question};
pub use options::{
    Backup, BackupKind, Context, Existing, Follow, Keep, Make, ModeRule, Options, Preserve,
    Reflink, Sparse,
};
pub use outlook::{Outlook, Prospect};
pub use plan::{Destination, Outcome, Request, copy};
pub use receipt::{
    Attempt, Attribute, Chosen, ChosenBy, Loss, Method, Offload, Receipt, SparseDetection, Verified,
};
