//! Copies the data of one file: as a clone, by extents, without blocks of zeros, or as a whole.

use super::context::{DataContext, Files};
use super::data_copy::{BUFFER_BYTES, DataCopy, Medium, OldContents, Records};
use super::engine_choice::chains::READ_WRITE;
use super::journal::{Journal, RangeRecords};
use super::ranges::verify_ranges;
use super::transfer::Ended;
use super::verify::verify;
use super::worker::{DataWorker, FailedData};
use crate::fs::{file_bytes, is_regular, mtime};
use crate::report::{Action, DataReport, Diagnostic, Result, failed};

/// The writeback of shorter files starts when all are synced: one by one at once took longer
/// (docs/design/durable.md).
const LAST_WRITEBACK_BYTES_MIN: u64 = 1 << 20;

/// Copies all data from `files.src.fd` to `files.dst.fd`.
///
/// # Errors
/// The failure; `Diagnostic::Incomplete`, after the failure was reported, if the destination is
/// left with part of the data. If receipts are kept, `worker.failed_data` then has what was copied
/// before the failure, which `add_failure` puts into the receipt of the entry.
pub(crate) fn copy_data(
    cx: &DataContext<'_>,
    worker: &mut DataWorker,
    files: &Files<'_>,
    journal: Option<&mut Journal>,
) -> Result<DataReport> {
    let counters = worker.progress.counters();
    let mut copy = DataCopy::start(cx, worker, files, counters.as_deref());
    match copy.truncate_or_keep() {
        Ok(old_contents) => copy.old_contents = old_contents,
        Err(diagnostic) => {
            worker.end_data();
            return Err(diagnostic);
        }
    }
    if let Some(journal) = journal {
        copy.position.at = journal.at;
        let range = RangeRecords::new(journal.at, journal.chunk_bytes);
        copy.records = Records { journal: Some(journal), range };
    }
    if !copy.facts.reliable || cx.rate_limit.is_some() || !copy.is_clone_short() {
        cx.report.deferred_init();
    }
    let copied = copy.run_steps();
    let copied = copy.cut_old_contents(copied);
    if copied.is_err() {
        // A hole at the end that a failed copy does not have.
        let missing = copy.missing_hole();
        copy.position.at -= missing;
        copy.report.hole_bytes = copy.report.hole_bytes.saturating_sub(missing);
    }
    let DataCopy { report, medium, position, old_contents, by_others, .. } = copy;
    let (Medium { footprint, backlog }, at) = (medium, position.at);
    worker.end_data();
    worker.progress.leave_to_others(by_others);
    if let Some(footprint) = footprint {
        let written_to = backlog.map_or(0, |backlog| backlog.written_to);
        worker.pending_drops.add(cx.report, files, footprint, written_to..at.max(written_to));
    }
    let Err(diagnostic) = copied else {
        if report.offload.reflink != "yes" {
            worker.moved_bytes += report.data_bytes.saturating_sub(by_others);
        }
        return Ok(report);
    };
    if cx.report.keeps_receipts() {
        let diagnostic = diagnostic.clone();
        worker.failed_data = Some(FailedData { data: report, diagnostic });
    }
    let has_count = matches!(diagnostic, Diagnostic::Clone { .. } | Diagnostic::Interrupted { .. });
    let has_old = old_contents != OldContents::Gone;
    let bytes_expected = file_bytes(files.src.stat);
    // A file of /proc does not tell its length.
    let is_whole = at >= bytes_expected;
    if has_count || !is_regular(files.dst.stat) || files.atomic || has_old || is_whole {
        return Err(diagnostic);
    }
    // A partner has reported its own error.
    if !matches!(diagnostic, Diagnostic::RangeFailed { .. }) {
        cx.report.report(diagnostic);
    }
    Err(Diagnostic::Incomplete { dst: files.dst.place.path(), bytes: at, bytes_expected })
}

/// With `--verify`, reads the copy back and compares it: before its attributes are set, because reading changes the
/// access time.
///
/// # Errors
/// The first difference, and failures to read.
pub(crate) fn verify_copy(
    cx: &DataContext<'_>,
    worker: &DataWorker,
    files: &Files<'_>,
    copied: &mut DataReport,
) -> Result<()> {
    if !cx.options.verify {
        return Ok(());
    }
    match files.shared.and_then(|shared| Some((shared, shared.owned?))) {
        // The data was copied in ranges, and is that of the source.
        Some(owned) if copied.offload.reflink != "yes" && !copied.changed => {
            verify_ranges(cx.report, files, owned)
        }
        _ => {
            let counters = worker.progress.counters();
            copied.verified = verify(cx.report, files, counters.as_deref())?;
            Ok(())
        }
    }
}

impl DataCopy<'_, '_, '_> {
    fn run_steps(&mut self) -> Result<()> {
        let size = file_bytes(self.files.src.stat);
        let regular = self.facts.is_regular;
        if regular && size > 0 {
            let may_clone = self.position.at == 0 && self.old_contents != OldContents::UntilWritten;
            if may_clone && self.clone_all(size)? {
                return self.complete(size);
            }
        } else {
            self.clone_empty()?;
        }
        if !self.facts.is_small() {
            if !self.cx.report.is_deferred_init_done() && !self.is_brief() {
                self.cx.report.deferred_init();
            }
            // A large file does not contend for the locks that limit the workers.
            self.permit.release_if_limited();
        }
        if !regular {
            return self.copy_stream();
        }
        match self.files.shared.and_then(|shared| Some((shared, shared.owned?))) {
            Some(owned) => self.copy_ranges(owned)?,
            None => {
                self.copy_by_options(size)?;
                self.extend_to_end()?;
            }
        }
        let at = self.position.at;
        // The copy waits for the medium.
        if let Some(backlog) = &mut self.medium.backlog
            && at >= LAST_WRITEBACK_BYTES_MIN
        {
            backlog.start(at).map_err(failed(Action::Write, self.files.dst.place))?;
        }
        self.complete(size)
    }

    /// Checks the source again, and reads past the length that it had at first if there may be more
    /// data.
    pub(super) fn complete(&mut self, size: u64) -> Result<()> {
        if self.position.at < size {
            return self.ended_early(size);
        }
        if self.report.offload.reflink == "yes" {
            // A clone is the whole source as it was at one instant.
            return Ok(());
        }
        let mut now = self.src_now()?;
        if !self.facts.reliable || file_bytes(&now) > size {
            self.read_past(size)?;
            now = self.src_now()?;
        }
        self.report.changed |= mtime(&now) != mtime(self.files.src.stat)
            || file_bytes(&now) != file_bytes(self.files.src.stat);
        if self.report.changed {
            self.cx.report.report(Diagnostic::Changed { src: self.files.src.place.path() });
        }
        Ok(())
    }

    /// Reads after the length that the source had at first. A file that another process appends to
    /// is read once more; a file whose length may be wrong, as in /proc and on FUSE, to its end.
    fn read_past(&mut self, size: u64) -> Result<()> {
        loop {
            let ended = self.copy_piece(self.position.at + BUFFER_BYTES as u64, READ_WRITE)?;
            if ended == Ended::Yes || self.facts.reliable && file_bytes(&self.src_now()?) > size {
                return Ok(());
            }
        }
    }

    /// The source ended before the length that it had when it was opened.
    fn ended_early(&mut self, size: u64) -> Result<()> {
        if self.facts.is_pseudo() && file_bytes(&self.src_now()?) == size {
            return Ok(());
        }
        self.report.changed = true;
        let shrank = Diagnostic::Shrank {
            src: self.files.src.place.path(),
            bytes: self.position.at,
            bytes_expected: size,
        };
        if self.cx.report.keeps_receipts() {
            self.report.failures.push(shrank.clone());
        }
        self.cx.report.report(shrank);
        Ok(())
    }
}
