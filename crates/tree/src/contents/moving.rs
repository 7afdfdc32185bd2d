//! Data on its way, piece by piece, around holes or filling them.

use engines::{Moved, Pair, Pos, Side, Span, Stop, Variant, pwrite_all};
use rustix::fs::ftruncate;
use rustix::io::{Errno, retry_on_intr};

use super::{Copying, observer};
use crate::choice::may_offload;
use crate::diagnostic::{Action, Diagnostic};
use crate::extents;
use crate::identity::{file_bytes, is_regular};
use crate::options::Sparse;
use crate::page_cache;
use crate::receipt::SparseDetection;
use crate::routes::{File, Way};
use crate::run::{BUFFER_BYTES, failed};
use crate::zeros::copy_without_zeros;

/// The most bytes that go without a look at whether to stop. One second of a slow disk, and a
/// thousand times the cost of looking on a fast one.
const PIECE_BYTES: u64 = 64 << 20;

/// The same while somebody looks on, where one call may take it all: an engine that leaves the copying
/// to the kernel counts only when that comes back.
const CLOSE_PIECE_BYTES: u64 = 8 << 20;

/// Data past the page cache, unless it is a whole file.
const PAST_CACHE_BYTES_MIN: u64 = 4 << 20;

impl Copying<'_, '_, '_> {
    /// Copies up to the offset `end`, or to where the source ends before.
    fn copy_to(&mut self, end: u64, way: Way) -> Result<(), Diagnostic> {
        while self.at < end {
            let len = self.next_piece(end, way)?;
            let moved = self.span(Span::at(self.at, len), way);
            self.count(moved.bytes);
            self.note();
            if self.proceed(moved)? == Ended::Yes {
                break;
            }
        }
        Ok(())
    }

    fn note(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.note(self.files.dst, self.at);
        }
    }

    /// The same for data in the way that suits its length.
    pub(super) fn copy_data(&mut self, end: u64) -> Result<(), Diagnostic> {
        let bytes = end.saturating_sub(self.at);
        if bytes == 0 {
            return Ok(());
        }
        let measured = self.measured_way();
        let way = match measured.filter(|&way| self.is_long_enough(way, bytes)) {
            Some(way) => way,
            None => self.routes.by_rule(self.run, bytes, self.others_busy),
        };
        self.copy_to(end, way)
    }

    /// Whether `bytes` of data between two holes are enough for a way that was measured with a file in one
    /// piece: past the page cache nothing is read ahead of the next piece.
    fn is_long_enough(&mut self, way: Way, bytes: u64) -> bool {
        let all = file_bytes(self.files.src_stat);
        let past_cache = self.routes.route(way).chosen.variant.reads_past_cache();
        !past_cache || bytes >= all.min(PAST_CACHE_BYTES_MIN)
    }

    /// The way that was measured to be the fastest for the whole file, which is asked once.
    fn measured_way(&mut self) -> Option<Way> {
        if let Some(known) = self.measured {
            return known;
        }
        let (src, bytes) = (self.files.src, file_bytes(self.files.src_stat));
        let bytes_to_move = self.bytes_to_move();
        let (may_wait, others_busy) = (self.may_wait, self.others_busy);
        let file = File { bytes, bytes_to_move, may_wait, others_busy };
        let look = || page_cache::residency(src, bytes, bytes_to_move < bytes);
        let way = self.routes.measured(self.run, self.ends, file, look);
        self.measured = Some(way);
        way
    }

    /// The same with blocks of zeros left out.
    pub(super) fn sift_to(&mut self, end: u64) -> Result<(), Diagnostic> {
        let block_bytes = usize::try_from(self.files.dst_stat.st_blksize).unwrap_or(4096);
        let block_bytes = block_bytes.clamp(512, BUFFER_BYTES);
        self.contents.offload.offload = "avoided";
        while self.at < end {
            let len = self.next_piece(end, Way::Plain)?;
            let (src, dst) = (self.files.src, self.files.dst);
            let pair = Pair::new(src, dst).with_meter(self.meter);
            self.buffer.resize(BUFFER_BYTES, 0);
            let sifted = copy_without_zeros(pair, self.at, len, block_bytes, self.buffer);
            // Zeros had to be read like any data.
            self.count(sifted.moved.bytes);
            self.contents.hole_bytes += sifted.hole_bytes;
            self.contents.data_bytes -= sifted.hole_bytes;
            self.note();
            if self.proceed(sifted.moved)? == Ended::Yes {
                break;
            }
        }
        Ok(())
    }

    /// Copies what the file system says is data, and skips what it says is hole, or fills it with
    /// zeros where there are to be none.
    pub(super) fn by_extents(&mut self, size: u64) -> Result<(), Diagnostic> {
        while self.at < size {
            let extent = match extents::next_data(self.files.src, self.at, size) {
                Ok(extent) => extent,
                // It has no opinion on its holes after all.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => return self.without_extents(size),
                Err(errno) => return Err(failed(Action::Read, self.files.src_place)(errno)),
            };
            let Some(extent) = extent else {
                // Nothing but a hole, up to where the source ends by now.
                let end = file_bytes(&self.src_now()?).min(size);
                self.skip_to(end.max(self.at))?;
                break;
            };
            self.skip_to(extent.at)?;
            let end = extent.at + extent.len;
            if self.run.options.sparse == Sparse::Always {
                self.contents.offload.sparse = SparseDetection::SeekHoleAndZeros;
                self.sift_to(end)?;
            } else {
                self.copy_data(end)?;
            }
            if self.at < end {
                break;
            }
        }
        Ok(())
    }

    fn without_extents(&mut self, size: u64) -> Result<(), Diagnostic> {
        match self.run.options.sparse {
            Sparse::Never => self.copy_data(size),
            Sparse::Auto | Sparse::Always => self.sift_to(size),
        }
    }

    /// Goes on behind a hole.
    fn skip_to(&mut self, offset: u64) -> Result<(), Diagnostic> {
        if self.run.options.sparse != Sparse::Never {
            self.contents.hole_bytes += offset - self.at;
            self.advance(offset - self.at);
            return Ok(());
        }
        self.buffer.clear();
        self.buffer.resize(BUFFER_BYTES, 0);
        while self.at < offset {
            let left = usize::try_from(self.next_piece(offset, Way::Plain)?).unwrap_or(usize::MAX);
            let zeros = &self.buffer[..left.min(self.buffer.len())];
            let (bytes, result) = pwrite_all(self.files.dst, zeros, self.at);
            self.count(bytes as u64);
            result.map_err(failed(Action::Write, self.files.dst_place))?;
        }
        Ok(())
    }

    /// Copies from cursor to cursor until the source ends: pipes, devices, terminals.
    pub(super) fn stream(&mut self) -> Result<(), Diagnostic> {
        self.contents.offload.offload =
            if may_offload(self.run.options) { "unsupported" } else { "avoided" };
        // A regular file is read to its length, lest a copy onto a device chase a writer for ever.
        let end = match is_regular(self.files.src_stat) {
            true if file_bytes(self.files.src_stat) > 0 => file_bytes(self.files.src_stat),
            _ => Span::TO_EOF,
        };
        while self.at < end {
            let len = self.next_piece(end, Way::Plain)?;
            let moved = self.span(Span { src: Pos::Here, dst: Pos::Here, len }, Way::Plain);
            self.count(moved.bytes);
            if self.proceed(moved)? == Ended::Yes {
                break;
            }
        }
        Ok(())
    }

    /// Goes on behind `bytes` that are right, and says so.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.at += bytes;
        if let Some(meter) = self.meter {
            meter.set(self.metered_before + self.at);
        }
    }

    pub(super) fn span(&mut self, span: Span, way: Way) -> Moved {
        let pair = Pair::new(self.files.src, self.files.dst).with_meter(self.meter);
        let route = self.routes.route(way);
        let avoids = !route.offloads && way != Way::Plain;
        if self.run.keeps_attempts() {
            self.contents.chosen.get_or_insert_with(|| route.chosen.clone());
        }
        let offload = &mut self.contents.offload.offload;
        if avoids {
            *offload = "avoided";
        }
        let mut keep = observer(self.run, &mut self.contents.attempts);
        let mut observe = |variant: &Variant, span: Span, moved: Moved| {
            keep(variant, span, moved);
            if variant.engine.name == "copy_file_range" {
                *offload = match moved.stop {
                    Stop::Refused(_) if moved.bytes == 0 => "unsupported",
                    _ => "yes",
                };
            }
        };
        route.chain.file_after(pair, self.contents.data_bytes).copy(span, &mut observe)
    }

    /// Turns an engine's stop into what it means for this file.
    pub(super) fn proceed(&self, moved: Moved) -> Result<Ended, Diagnostic> {
        let (side, errno) = match moved.stop {
            Stop::Done => return Ok(Ended::No),
            Stop::Eof => return Ok(Ended::Yes),
            Stop::Failed { side, errno } => (side, errno),
            Stop::Refused(errno) => (Side::Pair, errno),
        };
        Err(match side {
            Side::Src => failed(Action::Read, self.files.src_place)(errno),
            Side::Dst => failed(Action::Write, self.files.dst_place)(errno),
            Side::Pair => Diagnostic::Copy {
                src: self.files.src_place.path(),
                dst: self.files.dst_place.path(),
                errno,
            },
        })
    }

    /// Gives the destination the length that a hole at its end makes.
    pub(super) fn extend(&mut self) -> Result<(), Diagnostic> {
        if self.contents.hole_bytes == 0 {
            return Ok(());
        }
        retry_on_intr(|| ftruncate(self.files.dst, self.at))
            .map_err(failed(Action::Extend, self.files.dst_place))
    }

    /// How many bytes go next on `way`, at most up to the offset `end`, with a look around before: at whether
    /// to wait or to stop, and at what is behind.
    pub(super) fn next_piece(&mut self, end: u64, way: Way) -> Result<u64, Diagnostic> {
        let at_once = self.closely && self.routes.route(way).offloads;
        let mut piece_bytes = if at_once { CLOSE_PIECE_BYTES } else { PIECE_BYTES };
        if let Some(throttle) = &self.run.throttle {
            throttle.wait(|| self.run.observer.interrupted());
            piece_bytes = piece_bytes.min(throttle.piece_bytes());
        }
        self.heed_interrupt()?;
        if let Some(journal) = &self.journal {
            piece_bytes = piece_bytes.min(journal.stretch_bytes);
        }
        let mut len = (end - self.at).min(piece_bytes);
        if let Some(footprint) = &mut self.footprint {
            footprint.passed(self.at).map_err(failed(Action::Write, self.files.dst_place))?;
            len = len.min(page_cache::PIECE_BYTES);
            footprint.before_reading(self.at + len);
        }
        Ok(len)
    }

    /// Counts what was moved.
    pub(super) fn count(&mut self, bytes: u64) {
        self.advance(bytes);
        self.contents.data_bytes += bytes;
        if let Some(throttle) = &self.run.throttle {
            throttle.pay(bytes);
        }
    }

    fn heed_interrupt(&self) -> Result<(), Diagnostic> {
        if self.run.observer.interrupted() {
            let dst = self.files.dst_place.path();
            return Err(match self.files.staged {
                true => Diagnostic::InterruptedBefore { dst },
                false => Diagnostic::Interrupted { dst, bytes: self.at },
            });
        }
        Ok(())
    }
}

/// Whether the source came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Yes,
    No,
}
