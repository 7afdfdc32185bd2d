//! The data of one file: which way it goes, its holes, and what it proves to be at the end.

use std::os::fd::BorrowedFd;

use engines::{Meter, Moved, Pair, Pos, Side, Span, Stop, Variant, pwrite_all};
use rustix::fs::{Mode, OFlags, Stat, fstat, ftruncate, ioctl_ficlone, openat};
use rustix::io::{self, Errno, retry_on_intr};

use crate::activity::Activity;
use crate::choice::may_offload;
use crate::diagnostic::{Action, Diagnostic};
use crate::extents;
use crate::identity::{FileId, file_bytes, is_regular, mtime};
use crate::journal::Journal;
use crate::measured::End;
use crate::options::{Reflink, Sparse};
use crate::page_cache::{self, Footprint};
use crate::place::Place;
use crate::receipt::{Attempt, Chosen, ChosenBy, Offload, SparseDetection, Verified};
use crate::routes::{File, Routes, Way};
use crate::run::{BUFFER_BYTES, Run, Worker, failed};
use crate::zeros::copy_without_zeros;

/// Both files, open, and as they were when they were opened.
pub(crate) struct Files<'f> {
    pub(crate) src: BorrowedFd<'f>,
    pub(crate) src_stat: &'f Stat,
    pub(crate) src_place: &'f Place<'f>,
    pub(crate) dst: BorrowedFd<'f>,
    pub(crate) dst_stat: &'f Stat,
    pub(crate) dst_place: &'f Place<'f>,
    /// The destination has no name yet, and none will be left of it should it not become whole.
    pub(crate) staged: bool,
}

/// What was copied.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) data_bytes: u64,
    pub(crate) hole_bytes: u64,
    /// The source was written to meanwhile.
    pub(crate) changed: bool,
    pub(crate) offload: Offload,
    /// Kept when receipts are, or who copies is told how it goes.
    pub(crate) chosen: Option<Chosen>,
    /// Kept with it.
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) verified: Option<Verified>,
}

/// What came of the data of a file that failed, for its receipt.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) contents: Contents,
    pub(crate) diagnostic: Diagnostic,
}

/// The most bytes that go without a look at whether to stop. One second of a slow disk, and a
/// thousand times the cost of looking on a fast one.
const PIECE_BYTES: u64 = 64 << 20;

/// The same while somebody looks on, where one call may take it all: an engine that leaves the copying
/// to the kernel counts only when that comes back.
const CLOSE_PIECE_BYTES: u64 = 8 << 20;

/// A file that a local disk has copied before anybody could want to stop it.
const SMALL_BYTES: u64 = 1 << 20;

/// Copies all data from `files.src` to `files.dst`.
///
/// # Errors
/// What happened, after the bytes that were moved before were counted in `Diagnostic::Incomplete`.
pub(crate) fn copy_contents(
    run: &Run<'_>,
    worker: &mut Worker,
    files: &Files<'_>,
    journal: Option<&mut Journal>,
) -> Result<Contents, Diagnostic> {
    let (src_dev, dst_dev) = (FileId::of(files.src_stat).dev, FileId::of(files.dst_stat).dev);
    let src = worker.end(files.src, src_dev);
    let dst = worker.end(files.dst, dst_dev);
    let honest = src.kind.is_some_and(extents::is_honest);
    let others_busy = worker.others_busy;
    let seat = worker.station.seat();
    let meter = seat.as_ref().map(|seat| &seat.meter);
    let (routes, buffer) = worker.routes(src, dst, run.options);
    let mut copying = Copying {
        run,
        files,
        routes,
        ends: (src, dst),
        measured: None,
        buffer,
        honest,
        may_wait: !honest || !dst.kind.is_some_and(extents::is_honest),
        others_busy,
        footprint: run.options.no_cache.then(|| Footprint::of(files)),
        meter,
        metered_before: meter.map_or(0, Meter::get),
        closely: run.observer.activity().is_some_and(Activity::is_watched_closely),
        at: journal.as_ref().map_or(0, |journal| journal.at),
        journal,
        contents: Contents {
            data_bytes: 0,
            hole_bytes: 0,
            changed: false,
            offload: Offload { offload: "unknown", reflink: "no", sparse: SparseDetection::No },
            chosen: None,
            attempts: Vec::new(),
            verified: None,
        },
    };
    if !honest || !copying.is_small() {
        run.begin_in_earnest();
    }
    let copied = copying.all();
    let Copying { contents, footprint, at, .. } = copying;
    if let Some(footprint) = footprint {
        worker.held.take(run, files, footprint, at);
    }
    match copied {
        Ok(()) => {
            worker.data_bytes += contents.data_bytes;
            Ok(contents)
        }
        Err(diagnostic) => {
            let counted =
                matches!(diagnostic, Diagnostic::Clone { .. } | Diagnostic::Interrupted { .. });
            let leaves_part = is_regular(files.dst_stat) && !counted && !files.staged;
            if run.observer.keeps_receipts() {
                let diagnostic = diagnostic.clone();
                worker.unfinished = Some(Unfinished { contents, diagnostic });
            }
            if !leaves_part {
                return Err(diagnostic);
            }
            run.report(diagnostic);
            Err(Diagnostic::Incomplete {
                dst: files.dst_place.path(),
                bytes: at,
                bytes_expected: file_bytes(files.src_stat),
            })
        }
    }
}

struct Copying<'c, 'r, 'f> {
    run: &'c Run<'r>,
    files: &'c Files<'f>,
    routes: &'c mut Routes,
    /// Source and destination.
    ends: (End<'f>, End<'f>),
    /// The way that was measured to be the fastest, once that was asked.
    measured: Option<Option<Way>>,
    buffer: &'c mut [u8],
    /// Whether the source's file system is known to tell the truth about lengths and holes.
    honest: bool,
    /// One of the file systems is of no kind that is known to be quick.
    may_wait: bool,
    /// All other workers have something to do.
    others_busy: bool,
    /// Kept where the page cache is to be left as it was.
    footprint: Option<Footprint<'f>>,
    /// Where others see how far it is, and what it showed before.
    meter: Option<&'c Meter>,
    metered_before: u64,
    /// Somebody looks so often that no call is to take long.
    closely: bool,
    /// How far the copy is right: offset in bytes.
    at: u64,
    /// Where that is noted for a later run.
    journal: Option<&'c mut Journal>,
    contents: Contents,
}

impl Copying<'_, '_, '_> {
    /// Whether it is read and written in an instant.
    fn is_small(&self) -> bool {
        let regular = is_regular(self.files.src_stat) && is_regular(self.files.dst_stat);
        regular && file_bytes(self.files.src_stat) < SMALL_BYTES
    }

    fn all(&mut self) -> Result<(), Diagnostic> {
        let size = file_bytes(self.files.src_stat);
        let regular = is_regular(self.files.src_stat) && is_regular(self.files.dst_stat);
        if regular && size > 0 {
            if self.at == 0 && self.clone_all(size)? {
                return self.settle(size);
            }
        } else {
            self.clone_nothing()?;
        }
        if !regular {
            return self.stream();
        }
        self.by_options(size)?;
        self.extend()?;
        self.settle(size)
    }

    /// Copies in the way that the option on holes and the source's own holes make the right one.
    fn by_options(&mut self, size: u64) -> Result<(), Diagnostic> {
        let sparse = self.run.options.sparse;
        let looks_sparse =
            is_sparse(self.files.src_stat) && (self.honest || !extents::is_pseudo(self.files.src));
        if looks_sparse && self.honest {
            self.contents.offload.sparse = SparseDetection::SeekHole;
            return self.by_extents(size);
        }
        if sparse == Sparse::Always || (sparse == Sparse::Auto && looks_sparse) {
            self.contents.offload.sparse = SparseDetection::Zeros;
            return self.sift_to(size);
        }
        if !may_offload(self.run.options) {
            self.contents.offload.offload = "avoided";
        } else if size == 0 && extents::is_pseudo(self.files.src) {
            self.contents.offload.offload = "unsupported";
        }
        self.copy_data(size)
    }

    /// Shares all blocks, if that is wanted and can be.
    fn clone_all(&mut self, size: u64) -> Result<bool, Diagnostic> {
        let Some(clone) = &mut self.routes.clone else {
            self.ask_about_clones();
            return Ok(false);
        };
        self.contents.offload.reflink = "unsupported";
        let pair = Pair::new(self.files.src, self.files.dst);
        let mut observe = observer(self.run, &mut self.contents.attempts);
        let moved = clone.file(pair).copy(Span::whole(size), &mut observe);
        drop(observe);
        self.advance(moved.bytes);
        let required = self.run.options.reflink == Reflink::Always;
        match moved.stop {
            Stop::Done | Stop::Eof => {
                self.contents.data_bytes = moved.bytes;
                self.chose_clone(required);
                self.contents.offload = Offload {
                    offload: "unknown",
                    reflink: "yes",
                    sparse: SparseDetection::Unknown,
                };
                Ok(true)
            }
            Stop::Refused(_) if !required => Ok(false),
            Stop::Refused(errno) | Stop::Failed { errno, .. } => Err(Diagnostic::Clone {
                src: self.files.src_place.path(),
                dst: self.files.dst_place.path(),
                errno,
            }),
        }
    }

    fn chose_clone(&mut self, required: bool) {
        if let Some(last) = self.contents.attempts.last() {
            let by = if required { ChosenBy::Forced } else { ChosenBy::Rule };
            self.contents.chosen = Some(Chosen { variant: last.variant.clone(), by });
        }
    }

    /// Where there is no block to share it matters only whether that can be done at all: to those
    /// who insist on it, and to those who want to know.
    fn clone_nothing(&mut self) -> Result<(), Diagnostic> {
        let required = self.run.options.reflink == Reflink::Always;
        let wanted =
            self.run.options.reflink != Reflink::Never && self.run.options.sparse != Sparse::Never;
        if !wanted || !(required || self.run.options.debug) {
            return Ok(());
        }
        match ioctl_ficlone(self.files.dst, self.files.src) {
            Ok(()) => self.contents.offload.reflink = "yes",
            Err(errno) if required => {
                return Err(Diagnostic::Clone {
                    src: self.files.src_place.path(),
                    dst: self.files.dst_place.path(),
                    errno,
                });
            }
            Err(_) => self.contents.offload.reflink = "unsupported",
        }
        Ok(())
    }

    /// Holes that are to be made everywhere cannot be shared; `--debug` tells whether blocks could
    /// have been.
    fn ask_about_clones(&mut self) {
        let options = self.run.options;
        let wanted = options.reflink != Reflink::Never && options.sparse == Sparse::Always;
        let can = || matches!(try_clone(self.files.src, self.files.dst_place), Some(Ok(())));
        if wanted && options.debug && !can() {
            self.contents.offload.reflink = "unsupported";
        }
    }

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
    fn copy_data(&mut self, end: u64) -> Result<(), Diagnostic> {
        let bytes = end.saturating_sub(self.at);
        if bytes == 0 {
            return Ok(());
        }
        let way = match self.measured_way() {
            Some(way) => way,
            None => self.routes.by_rule(self.run, bytes, self.others_busy),
        };
        self.copy_to(end, way)
    }

    /// The way that was measured to be the fastest for the whole file, which is asked once.
    fn measured_way(&mut self) -> Option<Way> {
        if let Some(known) = self.measured {
            return known;
        }
        let (src, bytes) = (self.files.src, file_bytes(self.files.src_stat));
        let file = File { bytes, may_wait: self.may_wait, others_busy: self.others_busy };
        let look = || page_cache::residency(src, bytes);
        let way = self.routes.measured(self.run, self.ends, file, look);
        self.measured = Some(way);
        way
    }

    /// The same with blocks of zeros left out.
    fn sift_to(&mut self, end: u64) -> Result<(), Diagnostic> {
        let block_bytes = usize::try_from(self.files.dst_stat.st_blksize).unwrap_or(4096);
        let block_bytes = block_bytes.clamp(512, BUFFER_BYTES);
        self.contents.offload.offload = "avoided";
        while self.at < end {
            let len = self.next_piece(end, Way::Plain)?;
            let (src, dst) = (self.files.src, self.files.dst);
            let pair = Pair::new(src, dst).with_meter(self.meter);
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
    fn by_extents(&mut self, size: u64) -> Result<(), Diagnostic> {
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
        self.buffer.fill(0);
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
    fn stream(&mut self) -> Result<(), Diagnostic> {
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
    fn advance(&mut self, bytes: u64) {
        self.at += bytes;
        if let Some(meter) = self.meter {
            meter.set(self.metered_before + self.at);
        }
    }

    fn span(&mut self, span: Span, way: Way) -> Moved {
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
    fn proceed(&self, moved: Moved) -> Result<Ended, Diagnostic> {
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
    fn extend(&mut self) -> Result<(), Diagnostic> {
        if self.contents.hole_bytes == 0 {
            return Ok(());
        }
        retry_on_intr(|| ftruncate(self.files.dst, self.at))
            .map_err(failed(Action::Extend, self.files.dst_place))
    }

    /// Finds out whether what was copied is the file: another look at the source, and a read past
    /// the length seen at first where there may be more.
    fn settle(&mut self, size: u64) -> Result<(), Diagnostic> {
        if self.at < size {
            return self.ended_early(size);
        }
        if self.contents.offload.reflink == "yes" {
            // A clone is the whole source as it was at one instant.
            return Ok(());
        }
        let mut now = self.src_now()?;
        if !self.honest || file_bytes(&now) > size {
            self.read_past(size)?;
            now = self.src_now()?;
        }
        self.contents.changed |= mtime(&now) != mtime(self.files.src_stat)
            || file_bytes(&now) != file_bytes(self.files.src_stat);
        if self.contents.changed {
            self.run.report(Diagnostic::Changed { src: self.files.src_place.path() });
        }
        Ok(())
    }

    /// Reads on after the length seen at first. A file that a writer makes longer, perhaps for
    /// ever, is read once more; one whose length says nothing, as in /proc, to its end.
    fn read_past(&mut self, size: u64) -> Result<(), Diagnostic> {
        loop {
            let len = self.next_piece(self.at + BUFFER_BYTES as u64, Way::Plain)?;
            let moved = self.span(Span::at(self.at, len), Way::Plain);
            self.count(moved.bytes);
            if self.proceed(moved)? == Ended::Yes || file_bytes(&self.src_now()?) > size {
                return Ok(());
            }
        }
    }

    /// The source ended before the length it had when it was opened.
    fn ended_early(&mut self, size: u64) -> Result<(), Diagnostic> {
        if extents::is_pseudo(self.files.src) && file_bytes(&self.src_now()?) == size {
            return Ok(());
        }
        self.contents.changed = true;
        self.run.report(Diagnostic::Shrank {
            src: self.files.src_place.path(),
            bytes: self.at,
            bytes_expected: size,
        });
        Ok(())
    }

    fn src_now(&self) -> Result<Stat, Diagnostic> {
        fstat(self.files.src).map_err(failed(Action::Fstat, self.files.src_place))
    }

    /// How many bytes go next on `way`, at most up to the offset `end`, with a look around before: at whether
    /// to wait or to stop, and at what is behind.
    fn next_piece(&mut self, end: u64, way: Way) -> Result<u64, Diagnostic> {
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
    fn count(&mut self, bytes: u64) {
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
enum Ended {
    Yes,
    No,
}

/// Fewer blocks than the length fills: there may be holes. What is shorter than a block has none
/// that would be worth the question, and may be kept in the inode.
fn is_sparse(stat: &Stat) -> bool {
    u64::try_from(stat.st_blocks).unwrap_or(0) < file_bytes(stat) / 512
}

/// Shares the blocks of `src` with a file beside `dst` that has no name and goes away at once. `None`
/// where no such file can be had.
pub(crate) fn try_clone(src: BorrowedFd<'_>, dst: &Place<'_>) -> Option<io::Result<()>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let scratch = openat(dst.dir, c".", flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some(ioctl_ficlone(&scratch, src))
}

/// Passes attempts on to the run's observer, and keeps them where somebody wants to know.
fn observer<'o>(
    run: &'o Run<'_>,
    attempts: &'o mut Vec<Attempt>,
) -> impl FnMut(&Variant, Span, Moved) + use<'o> {
    let keeps = run.keeps_attempts();
    let observer = run.observer;
    move |variant, span, moved| {
        observer.moved(variant, span, moved);
        if keeps {
            Attempt::keep(attempts, variant, span, moved);
        }
    }
}
