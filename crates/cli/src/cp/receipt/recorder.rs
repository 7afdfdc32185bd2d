//! Records what was done with each entry, for `--receipt` and `--stats`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haulage::RunTotals;
use haulage::events::Receipt;
use haulage::options::{Destination, Request};
use sys::{Usage, Whose, usage};

use crate::cp::command_line::Reports;
use crate::cp::job::Job;
use crate::cp::messages::sink;
use crate::cp::receipt::json::Receipts;
use crate::cp::receipt::rank_summary::{JobSummary, RankSummary};
use crate::cp::receipt::stats;
use crate::terminal::live_lines::put_stderr;

/// The totals, and the receipts that go to a file.
pub(crate) struct Recorder {
    totals: Mutex<RunTotals>,
    receipts: Option<Receipts>,
    stats: bool,
    begun: Instant,
    /// The processor time that the process had used by then.
    used_before: Usage,
    closed: AtomicBool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// Failures of this process.
    pub(crate) failures: u64,
    pub(crate) signal: Option<&'static str>,
    /// The copy has returned. Otherwise the process dies while it lasts.
    pub(crate) has_ended: bool,
    /// What is not on the medium yet; `None` on a rank of a job.
    pub(crate) unwritten_bytes: Option<u64>,
}

impl Recorder {
    /// A recorder, if `reports` ask for receipts or statistics.
    ///
    /// # Errors
    /// The error line, if the file for receipts cannot be opened or is an operand.
    pub(crate) fn open(
        reports: &Reports,
        request: &Request,
        job: Option<&Arc<dyn Job>>,
    ) -> Result<Option<Recorder>, Vec<u8>> {
        let (Destination::Directory(destination)
        | Destination::Last(destination)
        | Destination::Exact(destination)) = &request.destination;
        let sources: Vec<&Path> = request.sources.iter().map(AsRef::as_ref).collect();
        let operands: Vec<&Path> =
            sources.iter().copied().chain([AsRef::<Path>::as_ref(destination)]).collect();
        let open = |name: &Path| match job {
            None => Receipts::open(name, &operands),
            Some(job) if job.is_first() => {
                let (receipts, left) = Receipts::open_for_job(name, (&sources, &operands))?;
                if !left.is_empty() {
                    sink::put(&left);
                }
                Ok(receipts)
            }
            Some(job) => Ok(Receipts::of_rank(name, job)),
        };
        let receipts = reports.receipt.as_deref().map(Path::new).map(open).transpose()?;
        if receipts.is_none() && !reports.stats {
            return Ok(None);
        }
        Ok(Some(Recorder {
            totals: Mutex::default(),
            receipts,
            stats: reports.stats,
            begun: Instant::now(),
            used_before: used(),
            closed: AtomicBool::new(false),
        }))
    }

    /// The receipts, if they were asked for.
    pub(crate) fn receipts(&self) -> Option<&Receipts> {
        self.receipts.as_ref()
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

    /// Writes the summary of a run that ended or was interrupted, and reports errors and statistics by
    /// `put`. A rank of `job` other than 0 sends its summary to rank 0. Returns whether every receipt
    /// was written. The second call does nothing: an interrupted copy may still reach its end.
    pub(crate) fn close(
        &self,
        ending: Ending,
        job: Option<&Arc<dyn Job>>,
        put: impl Fn(&[u8]),
    ) -> bool {
        if self.closed.swap(true, Ordering::SeqCst) {
            return true;
        }
        let elapsed = self.begun.elapsed();
        let Usage { user_ns, system_ns, .. } = used().since(self.used_before);
        let Ending { failures, signal, unwritten_bytes, has_ended } = ending;
        let own = RankSummary {
            host: job.map(|job| job.host()).unwrap_or_default(),
            totals: self.totals().clone(),
            failures,
            signal: signal.map(str::to_owned),
            user: Duration::from_nanos(user_ns),
            system: Duration::from_nanos(system_ns),
            waited: job.map(|job| job.waited()).unwrap_or_default(),
        };
        let others = match job {
            None => Vec::new(),
            Some(job) if job.is_first() => job.ended(),
            Some(job) => {
                job.summarize(own.encode());
                return true;
            }
        };
        let run = JobSummary::of(own, elapsed, &others);
        let receipts = self.receipts.as_ref();
        let finished = receipts.map(|receipts| receipts.finish(&run, unwritten_bytes, has_ended));
        if let Some(Err(line)) = finished {
            put(&line);
        }
        match job {
            _ if !self.stats => {}
            None => put(stats::text(&run, unwritten_bytes.unwrap_or(0)).as_bytes()),
            // Not as a message of rank 0, which names it.
            Some(_) => put_stderr(stats::text_of_job(&run).as_bytes()),
        }
        receipts.is_none_or(Receipts::is_complete)
    }

    /// A panic while the lock was held leaves totals that lack at most one entry.
    fn totals(&self) -> MutexGuard<'_, RunTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processor time of this process so far. getrusage(2) documents no error for these arguments.
fn used() -> Usage {
    usage(Whose::Process).unwrap_or_default()
}
