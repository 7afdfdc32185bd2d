//! Whether the copied data is the whole file: sources that grow, shrink or change.

use engines::Span;

use super::data_copy::{BUFFER_BYTES, DataCopy};
use super::engine_choice::chains::ChainId;
use super::transfer::Ended;
use crate::fs::{file_bytes, mtime};
use crate::report::{Diagnostic, Result};

impl DataCopy<'_, '_, '_> {
    /// Checks the source again, and reads past the length that it had at first if there may be more
    /// data.
    pub(super) fn complete(&mut self, size: u64) -> Result<()> {
        if self.at < size {
            return self.ended_early(size);
        }
        if self.report.offload.reflink == "yes" {
            // A clone is the whole source as it was at one instant.
            return Ok(());
        }
        let mut now = self.src_now()?;
        if !self.reliable || file_bytes(&now) > size {
            self.read_past(size)?;
            now = self.src_now()?;
        }
        self.report.changed |= mtime(&now) != mtime(self.files.src_stat)
            || file_bytes(&now) != file_bytes(self.files.src_stat);
        if self.report.changed {
            self.cx.report.report(Diagnostic::Changed { src: self.files.src_place.path() });
        }
        Ok(())
    }

    /// Reads after the length that the source had at first. A file that another process appends to
    /// is read once more; a file whose length is not known, as in /proc, to its end.
    fn read_past(&mut self, size: u64) -> Result<()> {
        loop {
            let len = self.next_piece(self.at + BUFFER_BYTES as u64, ChainId::ReadWrite)?;
            let moved = self.span(Span::at(self.at, len), ChainId::ReadWrite);
            self.count(moved.bytes);
            if self.check_stop(moved)? == Ended::Yes || file_bytes(&self.src_now()?) > size {
                return Ok(());
            }
        }
    }

    /// The source ended before the length that it had when it was opened.
    fn ended_early(&mut self, size: u64) -> Result<()> {
        if self.is_pseudo() && file_bytes(&self.src_now()?) == size {
            return Ok(());
        }
        self.report.changed = true;
        self.cx.report.report(Diagnostic::Shrank {
            src: self.files.src_place.path(),
            bytes: self.at,
            bytes_expected: size,
        });
        Ok(())
    }
}
