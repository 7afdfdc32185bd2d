//! Passes diagnostics and announcements to the observer of a run, and counts failures.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::diagnostic::{Diagnostic, Severity};
use super::message_order::{MessageOrder, PendingMessages};
use super::observer::{Announcement, Observer};
use crate::request::Options;

/// Shared by all workers of a run.
pub(crate) struct Reporter<'r> {
    pub(crate) observer: &'r dyn Observer,
    options: &'r Options,
    /// The order of messages about operands that are copied in parallel.
    pub(crate) order: MessageOrder,
    deferred_init: Once,
    failures: AtomicU64,
    /// The run is to stop, whatever the observer says.
    cancelled: &'r AtomicBool,
}

impl<'r> Reporter<'r> {
    /// For a run that also stops when `cancelled` is set.
    pub(crate) fn new(
        observer: &'r dyn Observer,
        options: &'r Options,
        cancelled: &'r AtomicBool,
    ) -> Reporter<'r> {
        Reporter {
            observer,
            options,
            order: MessageOrder::default(),
            deferred_init: Once::new(),
            failures: AtomicU64::new(0),
            cancelled,
        }
    }

    /// Reports `diagnostic` and counts it.
    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        self.count(&diagnostic);
        self.order.send(self.observer, diagnostic);
    }

    /// Reports the diagnostics of a file whose messages were pending.
    pub(crate) fn report_pending(&self, pending: PendingMessages, diagnostics: Vec<Diagnostic>) {
        diagnostics.iter().for_each(|diagnostic| self.count(diagnostic));
        self.order.release(self.observer, pending, diagnostics);
    }

    fn count(&self, diagnostic: &Diagnostic) {
        if diagnostic.severity() == Severity::Failure {
            self.add_failures(1);
        }
    }

    /// Counts failures without a message: a question that the user answered with no, and failures
    /// that another reporter has reported.
    pub(crate) fn add_failures(&self, failures: u64) {
        self.failures.fetch_add(failures, Ordering::Relaxed);
    }

    /// The number of failures so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Calls the deferred initialisation of the observer, once.
    pub(crate) fn deferred_init(&self) {
        self.deferred_init.call_once(|| self.observer.deferred_init());
    }

    /// Whether [`deferred_init`](Reporter::deferred_init) was called.
    pub(crate) fn is_deferred_init_done(&self) -> bool {
        self.deferred_init.is_completed()
    }

    /// Whether the run is to stop.
    pub(crate) fn interrupted(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.observer.interrupted()
    }

    /// Whether receipts are wanted.
    pub(crate) fn keeps_receipts(&self) -> bool {
        self.observer.keeps_receipts()
    }

    /// Whether the attempts of each engine are kept.
    pub(crate) fn keeps_attempts(&self) -> bool {
        self.options.debug || self.keeps_receipts()
    }

    /// With `--verbose`, announces the result of `announcement`.
    pub(crate) fn announce(&self, announcement: impl FnOnce() -> Announcement) {
        if self.options.verbose {
            self.observer.announce(announcement());
        }
    }

    /// With `--debug`, announces the result of `announcement`.
    pub(crate) fn announce_debug(&self, announcement: impl FnOnce() -> Announcement) {
        if self.options.debug {
            self.announce(announcement);
        }
    }
}
