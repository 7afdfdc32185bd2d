//! The data of one file: which way it goes, its holes, and what it proves to be at the end.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use engines::profile::Residency;
use engines::{Meter, Moved, Span, Variant};
use rustix::fs::Stat;

use crate::activity::Activity;
use crate::choice::may_offload;
use crate::diagnostic::Diagnostic;
use crate::extents::{self, BTRFS, EXT4, TMPFS, XFS};
use crate::identity::{FileId, data_bytes, file_bytes, is_regular};
use crate::journal::Journal;
use crate::measured::End;
use crate::options::Sparse;
use crate::pace::Turn;
use crate::page_cache::{Footprint, residency};
use crate::place::Place;
use crate::receipt::{Attempt, Chosen, Offload, SparseDetection, Verified};
use crate::routes::{Routes, Way};
use crate::run::{Run, Worker};

pub(crate) use old::CloningOver;
use sharing::try_clone;

mod moving;
mod old;
mod settling;
mod sharing;

/// Both files, open, and as they were when they were opened.
pub(crate) struct Files<'f> {
    pub(crate) src: BorrowedFd<'f>,
    pub(crate) src_stat: &'f Stat,
    pub(crate) src_place: &'f Place<'f>,
    pub(crate) dst: BorrowedFd<'f>,
    pub(crate) dst_stat: &'f Stat,
    pub(crate) dst_place: &'f Place<'f>,
    /// This run made the destination.
    pub(crate) new: bool,
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

/// A file that a local disk has copied before anybody could want to stop it.
const SMALL_BYTES: u64 = 1 << 20;

/// The same of one that is in the page cache: it takes a local file system 5 ms, and a process that copies
/// nothing else up to a tenth longer if it begins in earnest.
const BRIEF_BYTES: u64 = 16 << 20;

/// A run that has lasted so long may go on for longer, one brief file after another.
const BRIEF_TIME: Duration = Duration::from_millis(10);

/// A file whose blocks a local file system shares before anybody could want to stop it, or refuses to:
/// if each block is an extent of its own, 4 GiB take seconds, and else a millisecond.
const SHARED_AT_ONCE_BYTES: u64 = 4 << 30;

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
    let (routes, buffer, turn) = worker.routes(src, dst, run.options);
    let old_stands = files.clear_or_keep_old(run, dst, routes)?;
    let mut copying = Copying {
        run,
        files,
        old_stands,
        routes,
        ends: (src, dst),
        measured: None,
        buffer,
        turn,
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
    if !honest || run.throttle.is_some() || !copying.is_shared_at_once() {
        run.begin_in_earnest();
    }
    let copied = copying.all();
    let Copying { contents, footprint, at, old_stands, .. } = copying;
    if let Some(footprint) = footprint {
        worker.held.take(run, files, footprint, at);
    }
    match copied {
        Ok(()) => {
            worker.data_bytes += contents.data_bytes;
            if contents.offload.reflink != "yes" {
                worker.moved_bytes += contents.data_bytes;
            }
            Ok(contents)
        }
        Err(diagnostic) => {
            let counted =
                matches!(diagnostic, Diagnostic::Clone { .. } | Diagnostic::Interrupted { .. });
            let leaves_part =
                is_regular(files.dst_stat) && !counted && !files.staged && !old_stands;
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
    /// The destination has its old contents still.
    old_stands: bool,
    routes: &'c mut Routes,
    /// Source and destination.
    ends: (End<'f>, End<'f>),
    /// The way that was measured to be the fastest, once that was asked.
    measured: Option<Option<Way>>,
    /// Empty until it is needed.
    buffer: &'c mut Vec<u8>,
    turn: &'c mut Turn,
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
    fn is_regular(&self) -> bool {
        is_regular(self.files.src_stat) && is_regular(self.files.dst_stat)
    }

    /// Whether the source is one of the kernel's own variables.
    fn is_pseudo(&self) -> bool {
        self.ends.0.kind.is_some_and(extents::is_pseudo)
    }

    /// Whether it is read and written in an instant.
    fn is_small(&self) -> bool {
        self.is_regular() && file_bytes(self.files.src_stat) < SMALL_BYTES
    }

    /// Whether it is read and written in little more than that.
    fn is_brief(&self) -> bool {
        let options = self.run.options;
        let bytes = self.bytes_to_move();
        // What has to be tidied up or told after an interrupt is not left to luck, nor what waits for a
        // medium.
        let is_plain = !options.atomic && options.backup.is_none() && self.journal.is_none();
        let waits = self.may_wait || options.durable || options.no_cache;
        let is_short = self.is_regular() && bytes <= BRIEF_BYTES;
        let is_quiet = is_plain && !waits && !self.run.observer.keeps_receipts();
        let is_early = || self.run.elapsed() < BRIEF_TIME;
        self.is_small()
            || is_quiet && is_short && is_early() && self.residency() == Some(Residency::Resident)
    }

    /// How much of the source is in the page cache.
    fn residency(&self) -> Option<Residency> {
        let bytes = file_bytes(self.files.src_stat);
        residency(self.files.src, bytes, self.bytes_to_move() < bytes)
    }

    /// Bytes of the source, but for holes where its blocks tell of those.
    fn bytes_to_move(&self) -> u64 {
        let stat = self.files.src_stat;
        // Elsewhere data may be counted as it is compressed, or not at all; btrfs counts it as it was.
        let blocks_tell = matches!(self.ends.0.kind, Some(EXT4 | XFS | BTRFS | TMPFS));
        let skips_holes = self.run.options.sparse != Sparse::Never && blocks_tell;
        if skips_holes { data_bytes(stat) } else { file_bytes(stat) }
    }

    /// Whether the attempt to share its blocks, if one is made, takes an instant.
    fn is_shared_at_once(&self) -> bool {
        let is_tried = self.at == 0 && self.routes.clone.is_some();
        let at_once = self.is_regular() && file_bytes(self.files.src_stat) <= SHARED_AT_ONCE_BYTES;
        !is_tried || self.is_small() || (!self.may_wait && at_once)
    }

    fn all(&mut self) -> Result<(), Diagnostic> {
        let size = file_bytes(self.files.src_stat);
        let regular = self.is_regular();
        if regular && size > 0 {
            if self.at == 0 && self.clone_all(size)? {
                return self.settle(size);
            }
        } else {
            self.clone_nothing()?;
        }
        if !self.is_small() {
            if !self.run.is_in_earnest() && !self.is_brief() {
                self.run.begin_in_earnest();
            }
            // To move so much is in nobody's way.
            self.turn.let_by();
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
        let looks_sparse = is_sparse(self.files.src_stat) && (self.honest || !self.is_pseudo());
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
        } else if size == 0 && self.is_pseudo() {
            self.contents.offload.offload = "unsupported";
        }
        self.copy_data(size)
    }
}

/// Fewer blocks than the length fills: there may be holes. What is shorter than a block has none
/// that would be worth the question, and may be kept in the inode.
fn is_sparse(stat: &Stat) -> bool {
    data_bytes(stat) / 512 < file_bytes(stat) / 512
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
