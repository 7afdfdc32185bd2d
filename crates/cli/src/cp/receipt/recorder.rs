//! Records what was done with each entry, for `--receipt` and `--stats`.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haulage::RunTotals;
use haulage::events::{FileId, Receipt};
use haulage::options::{Destination, Request};

use crate::cp::command_line::Reports;
use crate::cp::receipt::clock::Clock;
use crate::cp::receipt::json::{End, Receipts};
use crate::cp::receipt::stats;

/// The totals, and the receipts that go to a file.
pub(crate) struct Recorder {
    totals: Mutex<RunTotals>,
    receipts: Option<Receipts>,
    stats: bool,
    clock: Clock,
    argv: Vec<OsString>,
    closed: AtomicBool,
}

/// What the end of a run reports.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// The error line, if the receipts could not be written and no line said so before.
    pub(crate) error_line: Option<Vec<u8>>,
    /// The text of `--stats`, if it was asked for.
    pub(crate) stats: Option<String>,
    /// Every receipt was written.
    pub(crate) is_complete: bool,
}

impl Recorder {
    /// A recorder, if `reports` ask for receipts or statistics.
    ///
    /// # Errors
    /// The error line, if the file for receipts cannot be opened or is an operand.
    pub(crate) fn open(reports: &Reports, request: &Request) -> Result<Option<Recorder>, Vec<u8>> {
        let (Destination::Directory(destination)
        | Destination::Last(destination)
        | Destination::Exact(destination)) = &request.destination;
        let operands: Vec<_> = request.sources.iter().chain([destination]).collect();
        let receipts = reports.receipt.as_ref();
        let receipts = receipts.map(|name| Receipts::open(name, &operands)).transpose()?;
        if receipts.is_none() && !reports.stats {
            return Ok(None);
        }
        Ok(Some(Recorder {
            totals: Mutex::default(),
            receipts,
            stats: reports.stats,
            clock: Clock::start(),
            argv: std::env::args_os().collect(),
            closed: AtomicBool::new(false),
        }))
    }

    /// The regular file that receipts go to.
    pub(crate) fn file(&self) -> Option<FileId> {
        self.receipts.as_ref().and_then(Receipts::file)
    }

    /// Records one entry.
    ///
    /// # Errors
    /// The error line, if it cannot be written; only the first time.
    pub(crate) fn record(&self, receipt: &Receipt) -> Result<(), Vec<u8>> {
        self.totals().add(receipt);
        self.receipts.as_ref().map_or(Ok(()), |receipts| receipts.entry(receipt))
    }

    /// Counts a file of the run's own that stays beside a destination.
    pub(crate) fn count_left_over(&self) {
        self.totals().left_over += 1;
    }

    /// Writes the summary of a run that ended or was interrupted. Returns `None` if it was written
    /// before: an interrupted copy may still reach its end.
    pub(crate) fn close(&self, failures: u64, signal: Option<&'static str>) -> Option<Closing> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return None;
        }
        let totals = self.totals();
        let end =
            End { totals: &totals, cost: self.clock.cost(), failures, signal, argv: &self.argv };
        let finished = self.receipts.as_ref().map_or(Ok(()), |receipts| receipts.finish(&end));
        Some(Closing {
            error_line: finished.err(),
            stats: self.stats.then(|| stats::text(&totals, &end.cost)),
            is_complete: self.receipts.as_ref().is_none_or(Receipts::is_complete),
        })
    }

    /// A panic while the lock was held leaves totals that lack at most one entry.
    fn totals(&self) -> MutexGuard<'_, RunTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
