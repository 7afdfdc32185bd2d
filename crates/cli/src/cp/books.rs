//! What is kept of each entry, for those who asked for receipts or statistics.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tree::{FileId, Receipt};

use super::args::Args;
use super::receipt::{End, Receipts};
use super::stats;
use super::tally::{Clock, Tally};

/// Sums, and the receipts that go to a file.
pub(super) struct Books {
    tally: Mutex<Tally>,
    receipts: Option<Receipts>,
    stats: bool,
    clock: Clock,
    argv: Vec<OsString>,
    closed: AtomicBool,
}

/// What is to be said when the books are closed.
#[derive(Debug, Default)]
pub(super) struct Closed {
    /// The receipts could not be written: the complaint, where it was not made before.
    pub(super) complaint: Option<Vec<u8>>,
    /// What `--stats` asks for.
    pub(super) stats: Option<String>,
    /// Every receipt was written.
    pub(super) whole: bool,
}

impl Books {
    /// Books, if `args` ask for any.
    ///
    /// # Errors
    /// The line that says why receipts cannot be written.
    pub(super) fn open(args: &Args) -> Result<Option<Books>, Vec<u8>> {
        let receipts = args.receipt.as_ref();
        let receipts = receipts.map(|name| Receipts::open(name, &args.operands)).transpose()?;
        if receipts.is_none() && !args.stats {
            return Ok(None);
        }
        Ok(Some(Books {
            tally: Mutex::default(),
            receipts,
            stats: args.stats,
            clock: Clock::start(),
            argv: std::env::args_os().collect(),
            closed: AtomicBool::new(false),
        }))
    }

    /// The regular file that receipts go to.
    pub(super) fn file(&self) -> Option<FileId> {
        self.receipts.as_ref().and_then(Receipts::file)
    }

    /// Enters what became of an entry.
    ///
    /// # Errors
    /// The line to complain with when it cannot be written, the first time only.
    pub(super) fn enter(&self, receipt: &Receipt) -> Result<(), Vec<u8>> {
        self.tally().add(receipt);
        self.receipts.as_ref().map_or(Ok(()), |receipts| receipts.entry(receipt))
    }

    /// Writes the last line, whatever the end was like; `None` if it was written before. A copy that
    /// was given up may yet come to its end.
    pub(super) fn close(&self, failures: u64, signal: Option<&'static str>) -> Option<Closed> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return None;
        }
        let tally = self.tally();
        let end =
            End { tally: &tally, cost: self.clock.cost(), failures, signal, argv: &self.argv };
        let finished = self.receipts.as_ref().map_or(Ok(()), |receipts| receipts.finish(&end));
        Some(Closed {
            complaint: finished.err(),
            stats: self.stats.then(|| stats::text(&tally, &end.cost)),
            whole: self.receipts.as_ref().is_none_or(Receipts::is_whole),
        })
    }

    /// A poisoned lock guards sums that are right but for one entry.
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
