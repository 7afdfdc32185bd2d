//! Ranges of a large file that several processes copy (docs/design/ranks.md).
//!
//! [`SharedFile`] says which process copies which range. The owner copies ranges until none is left, and
//! waits for those that others have. A process that helps copies one range at a time.

use std::time::Duration;

use rustix::fs::{fdatasync, ftruncate};
use rustix::io::retry_on_intr;

use super::context::{DataContext, Files, Shared};
use super::data_copy::DataCopy;
use super::journal::RangeRecords;
use super::sync::sync_file;
use super::verify::verify_range;
use super::worker::DataWorker;
use crate::fs::is_reliable;
use crate::report::{Action, Diagnostic, Reporter, Result, failed};
use crate::shared::SharedFile;
use crate::shared::messages::{ByteRange, CopiedRange, Done, Task};
use crate::shared::shared_file::{Failure, Next};

/// How long the owner waits for partners before it looks again for partners that want work and for an
/// interrupt.
const WAIT: Duration = Duration::from_millis(5);

impl DataCopy<'_, '_, '_> {
    /// Copies the file of which partners copy ranges as well. Afterwards none of them is at one.
    pub(super) fn copy_ranges(&mut self, (shared, file): (Shared<'_>, &SharedFile)) -> Result<()> {
        let chunk_bytes = self.records.journal.as_ref().map_or(0, |journal| journal.chunk_bytes);
        let (mut failure, mut begun) = (None, None);
        loop {
            // The first range is shorter if others help.
            let next = next_task(self.cx.report, (shared, file));
            // After the last range, too: nothing is recorded once all is over.
            self.records
                .journal
                .iter_mut()
                .for_each(|journal| journal.append(&file.take_records()));
            match next {
                Next::Task(task @ Task::Copy(range)) => match self.copy_range(range, chunk_bytes) {
                    Ok(copied) => file.done(task, Done::Copied(copied)),
                    Err(diagnostic) => {
                        let is_first = file.failed(Some(task), Failure::Own);
                        failure = is_first.then_some(diagnostic);
                        begun = Some((range.start, self.position.at));
                    }
                },
                Next::Task(Task::Verify(_)) => unreachable!("nothing is verified yet"),
                Next::Wait => {}
                Next::Over => break,
            }
        }
        let complete_to = file.complete_to();
        // A part of a range may follow what is complete.
        self.position.go_to(match begun {
            Some((start, at)) if start == complete_to => at,
            _ => complete_to,
        });
        let (data_bytes, hole_bytes) = file.by_others();
        self.by_others = data_bytes + hole_bytes;
        self.report.data_bytes += data_bytes;
        self.report.hole_bytes += hole_bytes;
        let truncated = match file.was_offered() {
            // It has its whole length. What follows the complete part is not there, or the source has become
            // shorter.
            true => retry_on_intr(|| ftruncate(self.files.dst.fd, self.position.at)),
            false => Ok(()),
        };
        match (failure, file.failure()) {
            (Some(Diagnostic::Interrupted { .. }), _) | (None, Some(Failure::Interrupted)) => {
                Err(self.interrupted())
            }
            (Some(diagnostic), _) => Err(diagnostic),
            (None, Some(_)) => Err(Diagnostic::RangeFailed { dst: self.files.dst.place.path() }),
            (None, None) => {
                truncated.map_err(failed(Action::Extend, self.files.dst.place))?;
                self.extend_to_end()
            }
        }
    }

    fn copy_range(&mut self, range: ByteRange, chunk_bytes: u64) -> Result<CopiedRange> {
        self.position.go_to(range.start);
        self.records.range = RangeRecords::new(range.start, chunk_bytes);
        let (data_before, holes_before) = (self.report.data_bytes, self.report.hole_bytes);
        let copied = self.copy_by_options(range.end);
        let mut records = std::mem::take(&mut self.records.range);
        copied?;
        records.record(self.files.dst.fd, self.position.at, true);
        Ok(CopiedRange {
            range,
            to: self.position.at,
            data_bytes: self.report.data_bytes - data_before,
            hole_bytes: self.report.hole_bytes - holes_before,
            records: records.take(),
            recorded_to: records.at,
        })
    }

    /// Makes sure that other hosts see what was written.
    fn show_to_others(&self) -> Result<()> {
        // A file system of one host is the same for all processes. On another, data that is not synced may be
        // known to this host alone, and its writeback may change the times that the owner sets.
        let is_local = self.facts.ends.dst.fs_type.is_some_and(is_reliable);
        if is_local && !self.cx.options.verify {
            return Ok(());
        }
        sync_file(self.files.dst.fd).map_err(failed(Action::Sync, self.files.dst.place))
    }
}

/// What the owner does next, after it has told partners that wait of the file. If partners are not done, it has waited
/// for them for a while.
fn next_task(report: &Reporter<'_>, (shared, file): (Shared<'_>, &SharedFile)) -> Next {
    (shared.look)();
    let next = file.next();
    if next == Next::Wait {
        file.wait(WAIT);
        if report.interrupted() {
            file.failed(None, Failure::Interrupted);
        }
    }
    next
}

/// Copies a range for the process that owns the file. `chunk_bytes` are those of its journal, 0 without
/// one.
///
/// # Errors
/// Those of the range. `Diagnostic::Interrupted` or `Diagnostic::InterruptedBefore` if the run was.
pub(crate) fn copy_range(
    cx: &DataContext<'_>,
    worker: &mut DataWorker,
    files: &Files<'_>,
    (range, chunk_bytes): (ByteRange, u64),
) -> Result<CopiedRange> {
    let counters = worker.progress.counters();
    let mut copy = DataCopy::start(cx, worker, files, counters.as_deref());
    copy.permit.release_if_limited();
    let copied = copy.copy_range(range, chunk_bytes);
    let copied = copied.and_then(|copied| copy.show_to_others().map(|()| copied));
    let moved_bytes = copy.report.data_bytes;
    worker.moved_bytes += moved_bytes;
    worker.end_data();
    copied
}

/// Reads all ranges back and compares them, each in another process than the one that wrote it, if one
/// helps.
///
/// # Errors
/// The first difference, and failures to read.
pub(crate) fn verify_ranges(
    report: &Reporter<'_>,
    files: &Files<'_>,
    (shared, file): (Shared<'_>, &SharedFile),
) -> Result<()> {
    retry_on_intr(|| fdatasync(files.dst.fd)).map_err(failed(Action::Sync, files.dst.place))?;
    file.start_verifying();
    let mut failure = None;
    loop {
        match next_task(report, (shared, file)) {
            Next::Task(task @ Task::Verify(range)) => match verify_range(report, files, range) {
                Ok(difference) => file.done(task, difference.map_or(Done::Verified, Done::Differs)),
                Err(diagnostic) => {
                    let is_first = file.failed(Some(task), Failure::Own);
                    failure = is_first.then_some(diagnostic);
                }
            },
            Next::Task(Task::Copy(_)) => unreachable!("all ranges are copied"),
            Next::Wait => {}
            Next::Over => break,
        }
    }
    let dst = || files.dst.place.path();
    match (failure, file.failure(), file.differs_at()) {
        (Some(diagnostic), ..) => Err(diagnostic),
        (None, _, Some(at)) => {
            Err(Diagnostic::Differs { src: files.src.place.path(), dst: dst(), at })
        }
        (None, Some(Failure::Interrupted), None) => Err(files.interrupted_unverified()),
        (None, Some(_), None) => Err(Diagnostic::RangeFailed { dst: dst() }),
        (None, None, None) => Ok(()),
    }
}
