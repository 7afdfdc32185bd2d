//! The observer of a copy that a program runs: it counts, keeps errors, and passes to the thread of
//! the caller what its callbacks want to know.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;
use tree::{Diagnostic, DirectoryStage, Observer, ProgressTracker, Receipt, Severity};

use crate::cancel::{CancelToken, Control};
use crate::error::Error;
use crate::report::{ERRORS_KEPT_MAX, Report};

/// What a callback is called for. The copy waits for an answer, where there is a channel for one.
pub(crate) enum Event {
    Failed(Error, SyncSender<Control>),
    Found(PathBuf, FileType, SyncSender<Control>),
    /// Source and destination of a directory.
    Directory(PathBuf, PathBuf, DirectoryStage, SyncSender<Control>),
    Finished(Box<Receipt>),
    /// The copy has ended.
    Ended,
}

/// Which callbacks there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) progress: bool,
    pub(crate) errors: bool,
    pub(crate) receipts: bool,
    pub(crate) selection: bool,
    pub(crate) directories: bool,
}

/// The observer of one copy.
pub(crate) struct Session {
    cancel: CancelToken,
    /// A callback has asked to stop.
    quit: AtomicBool,
    report: Mutex<Report>,
    pub(crate) tracker: ProgressTracker,
    wanted: Wanted,
    /// To the thread of the caller, if there are callbacks.
    events: Option<SyncSender<Event>>,
}

impl Session {
    pub(crate) fn new(
        cancel: CancelToken,
        wanted: Wanted,
        events: Option<SyncSender<Event>>,
    ) -> Session {
        let tracker = match wanted.progress {
            true => ProgressTracker::fine_grained(),
            false => ProgressTracker::default(),
        };
        let (quit, report) = (AtomicBool::new(false), Mutex::default());
        Session { cancel, quit, report, tracker, wanted, events }
    }

    /// Makes the copy stop soon.
    pub(crate) fn quit(&self) {
        self.quit.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.quit.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    /// What was done so far. Nothing is left.
    pub(crate) fn take_report(&self) -> Report {
        Report { tracker: self.tracker.clone(), ..std::mem::take(&mut *self.report()) }
    }

    /// A panic while the lock was held leaves a report that lacks at most one entry.
    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what `event` makes of a channel for the answer, and waits for the answer. If the thread
    /// of the caller is gone, which is so after a panic in a callback, the copy is to stop.
    fn ask(&self, event: impl FnOnce(SyncSender<Control>) -> Event) -> Control {
        let Some(events) = &self.events else { return Control::Continue };
        let (answer, answered) = mpsc::sync_channel(1);
        let sent = events.send(event(answer));
        let control = sent.ok().and_then(|()| answered.recv().ok()).unwrap_or(Control::Quit);
        if control == Control::Quit {
            self.quit();
        }
        control
    }
}

impl Observer for Session {
    fn diagnose(&self, diagnostic: Diagnostic) {
        let severity = diagnostic.severity();
        let is_left_over = matches!(diagnostic, Diagnostic::LeftOver { .. });
        let error = Error::from(diagnostic);
        if severity != Severity::Failure {
            let mut report = self.report();
            report.totals.left_over += u64::from(is_left_over);
            if severity == Severity::Warning && report.warnings.len() < ERRORS_KEPT_MAX {
                report.warnings.push(error);
            }
            return;
        }
        let control = match self.wanted.errors {
            true => self.ask(|answer| Event::Failed(error.clone(), answer)),
            false => Control::Continue,
        };
        let mut report = self.report();
        if control == Control::Skip {
            report.skipped_errors += 1;
            return;
        }
        report.failure_count += 1;
        if report.failures.len() < ERRORS_KEPT_MAX {
            report.failures.push(error);
        }
    }

    fn is_selective(&self) -> bool {
        self.wanted.selection
    }

    fn selects(&self, src: &Path, kind: FileType) -> bool {
        self.ask(|answer| Event::Found(src.to_owned(), kind, answer)) == Control::Continue
    }

    fn follows_directories(&self) -> bool {
        self.wanted.directories
    }

    fn directory(&self, src: &Path, dst: &Path, stage: DirectoryStage) -> bool {
        let event = |answer| Event::Directory(src.to_owned(), dst.to_owned(), stage, answer);
        self.ask(event) == Control::Continue
    }

    fn keeps_receipts(&self) -> bool {
        true
    }

    fn finished(&self, receipt: Receipt) {
        self.report().totals.add(&receipt);
        if self.wanted.receipts
            && let Some(events) = &self.events
            && events.send(Event::Finished(Box::new(receipt))).is_err()
        {
            self.quit();
        }
    }

    fn progress(&self) -> Option<&ProgressTracker> {
        Some(&self.tracker)
    }

    fn interrupted(&self) -> bool {
        self.is_cancelled()
    }
}
