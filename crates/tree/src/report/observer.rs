//! Whom a copy tells what it does and asks what it may do.

use std::path::PathBuf;

use engines::{Moved, Span, Variant};
use rustix::fs::Mode;

use super::diagnostic::Diagnostic;
use super::progress::ProgressTracker;
use super::receipt::{Attempt, Chosen, Offload, Receipt};

/// Told of everything, from any thread that copies. Only [`diagnose`](Observer::diagnose) must be
/// there: who does not ask for more gets a copy without questions.
pub trait Observer: Sync {
    /// Something went wrong, or should be known.
    fn diagnose(&self, diagnostic: Diagnostic);

    /// May this be done?
    fn confirm(&self, question: Question) -> bool {
        let _ = question;
        false
    }

    /// Called when [`Options::verbose`](crate::Options::verbose) or
    /// [`Options::debug`](crate::Options::debug) is on.
    fn announce(&self, announcement: Announcement) {
        let _ = announcement;
    }

    /// Whether [`finished`](Observer::finished) is wanted, which costs two paths an entry.
    fn keeps_receipts(&self) -> bool {
        false
    }

    /// An entry is done with. A directory is when its last child is.
    fn finished(&self, receipt: Receipt) {
        let _ = receipt;
    }

    /// An engine was asked for a span of a file's data; called inside large files too.
    fn moved(&self, variant: &Variant, span: Span, moved: Moved) {
        let _ = (variant, span, moved);
    }

    /// The deferred initialisation: what a copy of one small file does not need, such as a thread
    /// that waits for signals. Called at most once, when there is much to copy or a file system may
    /// block.
    fn deferred_init(&self) {}

    /// Where the run is to show what it is doing.
    fn progress(&self) -> Option<&ProgressTracker> {
        None
    }

    /// Whether to stop soon. What has been entered is still given its attributes.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Something that needs leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Replace this file?
    Overwrite {
        /// The destination.
        dst: PathBuf,
    },
    /// This file cannot be written to: remove it first, or try anyway?
    OverwriteUnwritable {
        /// The destination.
        dst: PathBuf,
        /// Its permissions.
        mode: Mode,
        /// Removing it is what will be done.
        removing: bool,
    },
}

/// Something done that a verbose copy tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// A copy is about to be made of an entry, or has been.
    Copied {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
        /// What was there before, under its new name.
        backup: Option<PathBuf>,
    },
    /// A directory was made on the way to the destination.
    ParentMade {
        /// The source's directory.
        src: PathBuf,
        /// The one made.
        dst: PathBuf,
    },
    /// An existing destination was removed.
    Removed {
        /// The destination.
        dst: PathBuf,
    },
    /// The copy failed, and the backup was given its own name again.
    Restored {
        /// The name that the backup had.
        backup: PathBuf,
        /// The destination.
        dst: PathBuf,
    },
    /// An existing destination was left alone. Told only when debugging.
    Skipped {
        /// The destination.
        dst: PathBuf,
    },
    /// An entry was left out by [`Options::filter`](crate::Options::filter). Told only when
    /// debugging.
    LeftOut {
        /// The source.
        src: PathBuf,
    },
    /// How a regular file's data went, in the terms of GNU cp. Told only when debugging.
    Data(Offload),
    /// Which engines moved it, and why these. Told only when debugging.
    Engine {
        /// The source.
        src: PathBuf,
        /// The destination.
        dst: PathBuf,
        /// What was tried first.
        chosen: Chosen,
        /// What was tried.
        attempts: Vec<Attempt>,
    },
}
