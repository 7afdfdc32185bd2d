//! Copies data in pieces, with a chain of variants: around holes, or with zeros in place of holes.

use engines::profile::Residency;
use engines::{Moved, Pos, Side, Span, Stop, Variant, pwrite_all};
use rustix::fs::{Stat, fstat, ftruncate};
use rustix::io::{Errno, retry_on_intr};
use sys::Buffer;

use super::data_copy::{
    BUFFER_BYTES, DataCopy, Facts, OldContents, buffer_bytes, is_sparse, observer,
};
use super::engine_choice::chains::{ChainId, READ_WRITE};
use super::engine_choice::profile::EngineContext;
use super::engine_choice::rule::{WorkerLoad, may_offload, workers};
use super::holes::{self, copy_without_zeros};
use crate::concurrency::Helpers;
use crate::fs::{file_bytes, is_regular};
use crate::report::{Action, Diagnostic, Result, SparseDetection, failed};
use crate::request::{Options, Sparse};

/// Bytes between two checks for an interrupt: one second of a slow disk, and a thousand times the
/// cost of the check on a fast one.
const PIECE_BYTES: u64 = 64 << 20;

/// Bytes between two checks for an interrupt if progress is displayed often and one call may copy it all:
/// copy_file_range(2) reports its count only when it returns.
const FINE_PIECE_BYTES: u64 = 8 << 20;

/// Bytes between two checks for an interrupt in a worker that copies a file alone and may get helpers later.
/// A processor or a partner that has become idle waits for half of it on average.
const ALONE_PIECE_BYTES: u64 = 16 << 20;

/// A shorter extent is not read past the page cache, unless it is a whole file.
const PAST_CACHE_BYTES_MIN: u64 = 4 << 20;

impl DataCopy<'_, '_, '_> {
    /// Copies by extents, without zeros, or as a whole, by `--sparse` and the holes of the source.
    /// Holes are trusted on reliable file systems only.
    pub(super) fn copy_by_options(&mut self, size: u64) -> Result<()> {
        let sparse = self.cx.options.sparse;
        let looks_sparse =
            is_sparse(self.files.src.stat) && (self.facts.reliable || !self.facts.is_pseudo());
        if looks_sparse && self.facts.reliable {
            self.report.offload.sparse = SparseDetection::SeekHole;
            return self.copy_extents(size);
        }
        if sparse == Sparse::Always || (sparse == Sparse::Auto && looks_sparse) {
            self.report.offload.sparse = SparseDetection::Zeros;
            return self.copy_nonzero_to(size);
        }
        if !may_offload(self.cx.options) {
            self.report.offload.offload = "avoided";
        } else if size == 0 && self.facts.is_pseudo() {
            self.report.offload.offload = "unsupported";
        }
        self.copy_data_to(size)
    }

    /// Copies the next piece of data that ends at the offset `end`.
    pub(super) fn copy_piece(&mut self, end: u64, chain: ChainId) -> Result<Ended> {
        let len = self.next_piece(end, chain)?;
        let span = match self.facts.is_regular {
            true => Span::at(self.position.at, len),
            // A stream goes on where the descriptors are.
            false => Span { src: Pos::Here, dst: Pos::Here, len },
        };
        let moved = self.span(span, chain);
        self.count(moved.bytes);
        self.records.record(self.files.dst.fd, self.position.at);
        self.check_stop(moved)
    }

    /// Copies data up to the offset `end` by the chain for its length.
    pub(super) fn copy_data_to(&mut self, end: u64) -> Result<()> {
        let bytes = end.saturating_sub(self.position.at);
        if bytes == 0 {
            return Ok(());
        }
        self.adjust_helpers(bytes);
        let mut chain = self.chain_for(bytes);
        while self.copy_piece(end, chain)? == Ended::No && self.position.at < end {
            if self.adjust_helpers(bytes) {
                chain = self.chain_for(bytes);
            }
        }
        Ok(())
    }

    /// The chain for an extent of `bytes`.
    fn chain_for(&mut self, bytes: u64) -> ChainId {
        if let Some(line) = self.line_chain().filter(|&chain| self.is_long_enough(chain, bytes)) {
            return line;
        }
        // A range is a part of a large file, of which this process may copy further ranges.
        let is_range = self.files.shared.is_some() && !is_sparse(self.files.src.stat);
        let bytes = if is_range { self.facts.bytes } else { bytes };
        let verifies = self.cx.options.verify;
        // With --verify the source is read twice: past the page cache it would come from storage twice.
        let is_absent = || !verifies && self.facts.residency() == Some(Residency::Absent);
        let jobs = file_workers(&self.cx.engines, &self.helpers);
        let load = WorkerLoad { others_busy: self.others_busy(), jobs: &jobs };
        self.chains.by_rule(bytes, load, &is_absent)
    }

    /// Takes processors that other workers do not use for an extent of `bytes`, or returns them.
    /// Returns whether the chain has to be chosen again.
    fn adjust_helpers(&mut self, bytes: u64) -> bool {
        if !self.chains.between.may_share(bytes) {
            return false;
        }
        let engines = &self.cx.engines;
        let most = workers(engines.jobs()) - 1;
        let has_changed = self.helpers.adjust(most, || engines.processors());
        if has_changed {
            self.by_line = None;
        }
        has_changed
    }

    /// Whether other workers use all processors.
    fn others_busy(&self) -> bool {
        self.helpers.are_refused(|| self.cx.engines.processors())
    }

    /// Whether an extent of `bytes` is long enough for a chain that was measured with a whole file:
    /// past the page cache the kernel does not read ahead to the next extent.
    fn is_long_enough(&mut self, chain: ChainId, bytes: u64) -> bool {
        let past_cache = self.chains.get(chain).chosen.variant.reads_past_cache();
        !past_cache || bytes >= self.facts.bytes.min(PAST_CACHE_BYTES_MIN)
    }

    /// The chain of the profile line for the whole file, which is looked up once.
    fn line_chain(&mut self) -> Option<ChainId> {
        if let Some(known) = self.by_line {
            return known;
        }
        let engines = &self.cx.engines;
        let jobs = file_workers(engines, &self.helpers);
        let load = WorkerLoad { others_busy: self.others_busy(), jobs: &jobs };
        let look = || self.facts.residency();
        let Facts { ends, bytes, bytes_to_move, may_block, .. } = self.facts;
        let is_worth_reading = engines.is_worth_reading(bytes_to_move, may_block);
        let chain = self.chains.by_line(engines, (ends, bytes, is_worth_reading), load, look);
        self.by_line = Some(chain);
        chain
    }

    /// Copies up to the offset `end` without blocks of zeros.
    pub(super) fn copy_nonzero_to(&mut self, end: u64) -> Result<()> {
        let block_bytes = usize::try_from(self.files.dst.stat.st_blksize).unwrap_or(4096);
        let block_bytes = block_bytes.clamp(512, BUFFER_BYTES);
        self.report.offload.offload = without_offload(self.cx.options);
        while self.position.at < end {
            let len = self.next_piece(end, READ_WRITE)?;
            let pair = self.files.pair().with_meter(self.position.meter());
            let buffer = buffer_bytes(self.buffer)
                .map_err(|_| failed(Action::Read, self.files.src.place)(Errno::NOMEM))?;
            let src_at = self.facts.is_regular.then_some(self.position.at);
            let offsets = (src_at, self.position.at);
            let copied = copy_without_zeros(pair, offsets, len, block_bytes, buffer);
            self.count(copied.moved.bytes);
            self.report.hole_bytes += copied.hole_bytes;
            self.report.data_bytes -= copied.hole_bytes;
            self.records.record(self.files.dst.fd, self.position.at);
            if self.check_stop(copied.moved)? == Ended::Yes {
                break;
            }
        }
        Ok(())
    }

    /// Copies the extents that lseek(2) reports as data. Holes are skipped, or filled with zeros
    /// with `--sparse=never`.
    pub(super) fn copy_extents(&mut self, size: u64) -> Result<()> {
        let sparse = self.cx.options.sparse;
        while self.position.at < size {
            let extent = match holes::next_data(self.files.src.fd, self.position.at, size) {
                Ok(extent) => extent,
                // The file system does not support SEEK_DATA.
                Err(Errno::INVAL | Errno::OPNOTSUPP) if sparse == Sparse::Never => {
                    return self.copy_data_to(size);
                }
                Err(Errno::INVAL | Errno::OPNOTSUPP) => return self.copy_nonzero_to(size),
                Err(errno) => return Err(failed(Action::Read, self.files.src.place)(errno)),
            };
            let Some(extent) = extent else {
                // Only a hole is left, up to the current end of the source.
                let end = file_bytes(&self.src_now()?).min(size);
                self.skip_to(end.max(self.position.at))?;
                break;
            };
            self.skip_to(extent.at)?;
            let end = extent.at + extent.len;
            if sparse == Sparse::Always {
                self.report.offload.sparse = SparseDetection::SeekHoleAndZeros;
                self.copy_nonzero_to(end)?;
            } else {
                self.copy_data_to(end)?;
            }
            if self.position.at < end {
                break;
            }
        }
        Ok(())
    }

    /// Continues after a hole.
    fn skip_to(&mut self, offset: u64) -> Result<()> {
        if self.cx.options.sparse != Sparse::Never {
            self.report.hole_bytes += offset - self.position.at;
            self.records.range.skip(self.position.at..offset);
            self.position.advance(offset - self.position.at);
            return Ok(());
        }
        let mut zeros = Buffer::page_aligned(BUFFER_BYTES)
            .map_err(|_| failed(Action::Write, self.files.dst.place)(Errno::NOMEM))?;
        let zeros = zeros.as_mut_slice();
        while self.position.at < offset {
            let left = usize::try_from(self.next_piece(offset, READ_WRITE)?).unwrap_or(usize::MAX);
            let zeros = &zeros[..left.min(BUFFER_BYTES)];
            let (bytes, result) = pwrite_all(self.files.dst.fd, zeros, self.position.at);
            self.count(bytes as u64);
            result.map_err(failed(Action::Write, self.files.dst.place))?;
        }
        Ok(())
    }

    /// Copies from file offset to file offset until the source ends: pipes, devices, terminals.
    pub(super) fn copy_stream(&mut self) -> Result<()> {
        self.report.offload.offload =
            if may_offload(self.cx.options) { "unsupported" } else { "avoided" };
        // A regular file is read to its length, if that is right: while another process appends to it, the copy
        // onto a device would not end.
        let bytes = self.facts.bytes;
        let has_end = is_regular(self.files.src.stat) && self.facts.reliable && bytes > 0;
        let end = if has_end { bytes } else { Span::TO_EOF };
        let may_have_holes = is_regular(self.files.dst.stat) && self.files.opened_here;
        if self.cx.options.sparse == Sparse::Always && may_have_holes {
            self.report.offload.sparse = SparseDetection::Zeros;
            self.copy_nonzero_to(end)?;
            return self.extend_to_end();
        }
        while self.position.at < end && self.copy_piece(end, READ_WRITE)? == Ended::No {}
        Ok(())
    }

    fn span(&mut self, span: Span, chain: ChainId) -> Moved {
        let pair = self.files.pair().with_meter(self.position.meter());
        let selected = self.chains.get(chain);
        let avoids = !selected.offloads && chain != READ_WRITE;
        let offload = &mut self.report.offload.offload;
        if avoids {
            *offload = without_offload(self.cx.options);
        }
        let mut keep = observer(self.cx.report, &mut self.report.attempts);
        let mut observe = |variant: &Variant, span: Span, moved: Moved| {
            keep(variant, span, moved);
            if variant.engine.name == "copy_file_range" {
                match moved.stop {
                    Stop::Refused(_) if moved.bytes == 0 => *offload = "unsupported",
                    _ => *offload = "yes",
                }
            }
        };
        let bytes_before = self.report.data_bytes;
        let moved = selected.chain.file_after(pair, bytes_before).copy(span, &mut observe);
        if self.cx.report.keeps_attempts() && self.report.chosen.is_none() {
            self.report.chosen = Some(selected.chosen.clone());
        }
        moved
    }

    /// Translates an engine's stop: whether the source has ended, or the error of this file.
    pub(super) fn check_stop(&self, moved: Moved) -> Result<Ended> {
        let (side, errno) = match moved.stop {
            Stop::Done => return Ok(Ended::No),
            Stop::Eof => return Ok(Ended::Yes),
            Stop::Failed { side, errno } => (side, errno),
            Stop::Refused(errno) => (Side::Pair, errno),
        };
        Err(match side {
            Side::Src => failed(Action::Read, self.files.src.place)(errno),
            Side::Dst => failed(Action::Write, self.files.dst.place)(errno),
            Side::Pair => Diagnostic::Copy {
                src: self.files.src.place.path(),
                dst: self.files.dst.place.path(),
                errno,
            },
        })
    }

    /// The current attributes of the source.
    pub(super) fn src_now(&self) -> Result<Stat> {
        fstat(self.files.src.fd).map_err(failed(Action::Fstat, self.files.src.place))
    }

    /// Extends the destination by a hole at its end.
    pub(super) fn extend_to_end(&mut self) -> Result<()> {
        if self.report.hole_bytes == 0 {
            return Ok(());
        }
        retry_on_intr(|| ftruncate(self.files.dst.fd, self.position.at))
            .map_err(failed(Action::Extend, self.files.dst.place))
    }

    /// The bytes before the offset that the destination does not have: a hole at its end, until it is extended.
    pub(super) fn missing_hole(&self) -> u64 {
        match fstat(self.files.dst.fd) {
            Ok(now) if is_regular(&now) => self.position.at.saturating_sub(file_bytes(&now)),
            _ => 0,
        }
    }

    /// The length of the next piece for `chain`, up to the offset `end`. Before it, waits for the
    /// rate limit and the medium, checks for an interrupt, and drops pages of earlier pieces.
    pub(super) fn next_piece(&mut self, end: u64, chain: ChainId) -> Result<u64> {
        let at_once = self.position.fine_grained && self.chains.get(chain).offloads;
        let mut piece_bytes = if at_once { FINE_PIECE_BYTES } else { PIECE_BYTES };
        if self.helpers.may_come() || self.files.shared.is_some() {
            piece_bytes = piece_bytes.min(ALONE_PIECE_BYTES);
        }
        if let Some(rate_limit) = &self.cx.rate_limit {
            rate_limit.wait(|| self.cx.report.interrupted());
            piece_bytes = piece_bytes.min(rate_limit.piece_bytes());
        }
        if self.cx.report.interrupted() {
            return Err(self.interrupted());
        }
        if let Some(shared) = &self.files.shared {
            (shared.look)();
        }
        if let Some(chunk_bytes) = self.records.range.chunk_bytes() {
            piece_bytes = piece_bytes.min(chunk_bytes);
        }
        let mut len = (end - self.position.at).min(piece_bytes);
        let waited = self.medium.wait(self.position.at, self.files.dst.fd);
        let written_bytes = waited.map_err(failed(Action::Write, self.files.dst.place))?;
        // Of a file that several processes copy, others may have written the range.
        if self.files.shared.is_none() {
            self.position.counters.iter().for_each(|counters| counters.wrote(written_bytes));
        }
        if let Some(backlog) = &self.medium.backlog {
            len = len.min(backlog.limit.bytes);
        }
        if let Some(footprint) = &mut self.medium.footprint {
            footprint.before_reading(self.position.at + len);
        }
        Ok(len)
    }

    /// Counts moved bytes.
    pub(super) fn count(&mut self, bytes: u64) {
        self.position.advance(bytes);
        self.report.data_bytes += bytes;
        self.position.counters.iter().for_each(|counters| counters.moved(bytes));
        if let Some(rate_limit) = &self.cx.rate_limit {
            rate_limit.charge(bytes);
        }
    }

    /// The run was interrupted, with the copy complete up to here.
    pub(super) fn interrupted(&self) -> Diagnostic {
        let dst = self.files.dst.place.path();
        let is_as_before = self.old_contents == OldContents::UntilWritten && self.position.at == 0;
        match self.files.atomic || is_as_before {
            true => Diagnostic::InterruptedBefore { dst },
            false => Diagnostic::Interrupted { dst, bytes: self.position.at - self.missing_hole() },
        }
    }
}

/// How many workers may share the file. Processors are counted when it is called.
fn file_workers<'c>(engines: &'c EngineContext<'_>, helpers: &'c Helpers) -> impl Fn() -> usize {
    || helpers.taken.map_or_else(|| engines.jobs(), |helpers| 1 + helpers)
}

/// The word for data that copy_file_range(2) did not copy. With `--sparse=always` it cannot, because
/// the data has to be searched for zeros.
fn without_offload(options: &Options) -> &'static str {
    if may_offload(options) && options.sparse != Sparse::Always { "no" } else { "avoided" }
}

/// Whether the source has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Yes,
    No,
}
