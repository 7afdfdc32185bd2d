//! The state of one file while its data is copied, and what follows from its attributes.

use std::cell::OnceCell;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use engines::profile::Residency;
use engines::{Meter, Moved, Span, Variant};
use rustix::fs::Stat;
use rustix::io;
use sys::Buffer;

use super::context::{DataContext, Files};
use super::engine_choice::chains::{ChainId, VariantChains};
use super::journal::{Journal, RangeRecords};
use super::page_cache::{Footprint, residency};
use super::sync::Backlog;
use super::worker::{CloneOverPolicy, DataWorker, FsPair};
use crate::concurrency::{Helpers, Permit};
use crate::fs::dirty_pages::has_dirty_pages;
use crate::fs::{
    BTRFS, EXT4, Endpoint, Endpoints, FileAt, FileId, TMPFS, XFS, data_bytes, file_bytes,
    is_pseudo, is_regular, is_reliable,
};
use crate::report::{Attempt, DataReport, ProgressTracker, Reporter, WorkerCounters};
use crate::request::{Options, Sparse};

/// Bytes of a worker's buffer.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// Deferred initialisation (docs/design/start-up.md) is not needed for a shorter file: a local disk
/// copies it before a user can interrupt.
const SMALL_BYTES: u64 = 1 << 20;

/// Deferred initialisation is not needed for a shorter file in the page cache: its copy takes 5 ms,
/// and deferred initialisation would add up to a tenth.
const CACHED_BYTES: u64 = 16 << 20;

/// [`CACHED_BYTES`] applies only until this time after the start of the run.
const EARLY_TIME: Duration = Duration::from_millis(10);

/// Cloning a longer file triggers deferred initialisation. A clone of 4 GiB takes a millisecond, or
/// seconds if each block is an extent of its own.
const CLONE_BYTES: u64 = 4 << 30;

/// What there is of the old contents of a destination while its data is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OldContents {
    /// Nothing: the file was truncated, or is new.
    Gone,
    /// All. A clone replaces them.
    UntilCloned,
    /// All. The first write replaces them, and the file is cut behind it.
    UntilWritten,
}

/// One file while its data is copied. Each file of this folder that does a step has an impl block:
///
/// | step | file |
/// |---|---|
/// | the order of the steps, and the check for a source that changed | `copy.rs` |
/// | clone of the whole file, clone or write over old contents | `clone.rs` |
/// | ranges of a file that several processes copy | `ranges.rs` |
/// | transfer of extents, nonzero blocks, streams | `transfer.rs` |
pub(super) struct DataCopy<'c, 'r, 'f> {
    pub(super) cx: &'c DataContext<'r>,
    pub(super) files: &'c Files<'f>,
    pub(super) facts: Facts<'f>,
    pub(super) old_contents: OldContents,
    pub(super) clone_over: &'c mut CloneOverPolicy,
    pub(super) chains: &'c mut VariantChains,
    /// The chain of a profile line, once it was looked up.
    pub(super) by_line: Option<Option<ChainId>>,
    /// Allocated when it is first used.
    pub(super) buffer: &'c mut Option<Buffer>,
    pub(super) permit: &'c mut Permit,
    /// Other workers of this file.
    pub(super) helpers: Helpers,
    pub(super) position: Position<'c>,
    pub(super) records: Records<'c>,
    pub(super) medium: Medium<'f>,
    /// Bytes of data and of holes that partners have copied. The report has them as well.
    pub(super) by_others: u64,
    pub(super) report: DataReport,
}

/// What was found of both files before the copy.
pub(super) struct Facts<'f> {
    pub(super) ends: Endpoints<'f>,
    /// The length of the source.
    pub(super) bytes: u64,
    /// The length of the source without holes.
    pub(super) bytes_to_move: u64,
    /// One of the file systems may block.
    pub(super) may_block: bool,
    /// Source and destination are regular files.
    pub(super) is_regular: bool,
    /// The source's file system is reliable, see [`crate::fs::fs_type`].
    pub(super) reliable: bool,
    residency: OnceCell<Option<Residency>>,
}

/// How far the copy is, and who sees it.
pub(super) struct Position<'c> {
    /// Up to this offset the copy is complete.
    pub(super) at: u64,
    /// Of the worker.
    pub(super) counters: Option<&'c WorkerCounters>,
    /// The value of the worker's meter before this file.
    metered_before: u64,
    /// Progress is displayed often, so that no call may take long.
    pub(super) fine_grained: bool,
}

/// What `--resume` is told of the copy.
pub(super) struct Records<'c> {
    pub(super) journal: Option<&'c mut Journal>,
    /// Of what is copied now, which may be a range of a file that several processes copy.
    pub(super) range: RangeRecords,
}

/// What the copy waits for and leaves in the page cache.
pub(super) struct Medium<'f> {
    /// With `--no-cache`.
    pub(super) footprint: Option<Footprint<'f>>,
    /// If the copy waits for the medium.
    pub(super) backlog: Option<Backlog<'f>>,
}

impl<'c, 'r, 'f> DataCopy<'c, 'r, 'f> {
    /// The state for a file of which nothing is copied yet, whose old contents were truncated.
    pub(super) fn start(
        cx: &'c DataContext<'r>,
        worker: &'c mut DataWorker,
        files: &'c Files<'f>,
        counters: Option<&'c WorkerCounters>,
    ) -> Self {
        let mut end = |FileAt { fd, stat, .. }: FileAt<'f>| {
            let dev = FileId::of(stat).dev;
            Endpoint { fd, dev, fs_type: worker.fs_types.of(fd, dev) }
        };
        let ends = Endpoints { src: end(files.src), dst: end(files.dst) };
        let dst_dev = ends.dst.dev;
        let has_dirty_pages = ends.dst.fs_type.is_some_and(|of| has_dirty_pages(of, dst_dev));
        counters
            .iter()
            .for_each(|counters| counters.start_data(has_dirty_pages.then_some(dst_dev)));
        let waits = cx.options.no_cache || has_dirty_pages && cx.options.waits_for_medium();
        let regular_dst = is_regular(files.dst.stat).then_some(files.dst.fd);
        let progress = cx.report.observer.progress();
        let facts = Facts::of(files, ends, cx.options);
        let helpers = worker.processors.helpers();
        let at = worker.pair(cx.options, ends);
        let DataWorker { pairs, buffer, permit, .. } = worker;
        let FsPair { chains, clone_over } = &mut pairs[at].1;
        DataCopy {
            cx,
            files,
            facts,
            old_contents: OldContents::Gone,
            clone_over,
            chains,
            by_line: None,
            buffer,
            permit,
            helpers,
            position: Position {
                at: 0,
                counters,
                metered_before: counters.map_or(0, |counters| counters.meter.get()),
                fine_grained: progress.is_some_and(ProgressTracker::is_fine_grained),
            },
            records: Records { journal: None, range: RangeRecords::default() },
            medium: Medium {
                footprint: cx.options.no_cache.then(|| Footprint::of(files)),
                backlog: waits.then(|| Backlog::new(regular_dst)),
            },
            by_others: 0,
            report: DataReport::default(),
        }
    }

    /// Whether it is copied in milliseconds, without deferred initialisation.
    pub(super) fn is_brief(&self) -> bool {
        let Options { atomic, backup, durable, no_cache, .. } = self.cx.options;
        // Not if an interrupt needs a clean-up or a report, nor if the copy waits for a medium.
        let is_plain = !atomic && backup.is_none() && self.records.journal.is_none();
        let waits = self.facts.may_block || *durable || *no_cache;
        let is_short = self.facts.is_regular && self.facts.bytes_to_move <= CACHED_BYTES;
        let is_quiet = is_plain && !waits && !self.cx.report.keeps_receipts();
        let is_early = || self.cx.engines.elapsed() < EARLY_TIME;
        self.facts.is_small()
            || is_quiet
                && is_short
                && is_early()
                && self.facts.residency() == Some(Residency::Resident)
    }

    /// Whether the attempt to clone it, if there is one, is short.
    pub(super) fn is_clone_short(&self) -> bool {
        let is_tried = self.position.at == 0 && self.chains.clone.is_some();
        let is_short = self.facts.is_regular && self.facts.bytes <= CLONE_BYTES;
        !is_tried || self.facts.is_small() || (!self.facts.may_block && is_short)
    }
}

impl<'f> Facts<'f> {
    fn of(files: &Files<'f>, ends: Endpoints<'f>, options: &Options) -> Facts<'f> {
        let (src_stat, bytes) = (files.src.stat, file_bytes(files.src.stat));
        let reliable = ends.src.fs_type.is_some_and(is_reliable);
        // Other file systems count compressed blocks, or none. btrfs counts uncompressed ones.
        let blocks_tell = matches!(ends.src.fs_type, Some(EXT4 | XFS | BTRFS | TMPFS));
        let skips_holes = options.sparse != Sparse::Never && blocks_tell;
        Facts {
            ends,
            bytes,
            bytes_to_move: if skips_holes { data_bytes(src_stat) } else { bytes },
            may_block: !reliable || !ends.dst.fs_type.is_some_and(is_reliable),
            is_regular: is_regular(src_stat) && is_regular(files.dst.stat),
            reliable,
            residency: OnceCell::new(),
        }
    }

    /// Whether the source is a variable of the kernel, as in /proc.
    pub(super) fn is_pseudo(&self) -> bool {
        self.ends.src.fs_type.is_some_and(is_pseudo)
    }

    /// Whether it is copied in microseconds.
    pub(super) fn is_small(&self) -> bool {
        self.is_regular && self.bytes < SMALL_BYTES
    }

    /// How much of the source was in the page cache when that was asked first.
    pub(super) fn residency(&self) -> Option<Residency> {
        let &Facts { ends, bytes, bytes_to_move, .. } = self;
        *self.residency.get_or_init(|| residency(ends.src.fd, bytes, bytes_to_move < bytes))
    }
}

impl<'c> Position<'c> {
    /// Shows the progress to other threads.
    pub(super) fn meter(&self) -> Option<&'c Meter> {
        self.counters.map(|counters| &counters.meter)
    }

    /// Advances the offset by `bytes`, and the progress.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.at += bytes;
        if let Some(meter) = self.meter() {
            // The bytes of a process that begins in the middle of a file are counted from there.
            meter.set(self.metered_before.wrapping_add(self.at));
        }
    }

    /// Continues at the offset `at`, up to which partners may have copied.
    pub(super) fn go_to(&mut self, at: u64) {
        self.at = at;
        self.metered_before = self.meter().map_or(0, Meter::get).wrapping_sub(at);
    }
}

impl Records<'_> {
    /// Records that the copy into `dst` is complete up to the offset `at`.
    pub(super) fn record(&mut self, dst: BorrowedFd<'_>, at: u64) {
        if self.journal.as_ref().is_some_and(|journal| journal.broken) {
            self.range = RangeRecords::default();
        }
        self.range.record(dst, at, false);
        if let Some(journal) = &mut self.journal
            && self.range.follows(journal.at)
        {
            journal.append(&self.range.take());
        }
    }
}

impl Medium<'_> {
    /// Waits for the medium, if the copy up to the offset `at` is too far ahead. Returns the bytes that it has
    /// written meanwhile.
    ///
    /// # Errors
    /// Errors of the writeback.
    pub(super) fn wait(&mut self, at: u64, dst: BorrowedFd<'_>) -> io::Result<u64> {
        let Some(backlog) = &mut self.backlog else { return Ok(0) };
        let Some(written) = backlog.passed(at)? else { return Ok(0) };
        let bytes = written.end - written.start;
        if let Some(footprint) = &mut self.footprint {
            footprint.passed(at, dst, written);
        }
        Ok(bytes)
    }
}

/// Whether there may be holes: fewer blocks than the length needs. A file of less than a block is
/// not sparse; it may be stored in the inode.
pub(super) fn is_sparse(stat: &Stat) -> bool {
    data_bytes(stat) / 512 < file_bytes(stat) / 512
}

/// The bytes of a worker's buffer, which is allocated if there is none yet.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn buffer_bytes(buffer: &mut Option<Buffer>) -> std::io::Result<&mut [u8]> {
    if buffer.is_none() {
        *buffer = Some(Buffer::page_aligned(BUFFER_BYTES)?);
    }
    Ok(buffer.as_mut().expect("it was just allocated").as_mut_slice())
}

/// Passes attempts to the run's observer, and keeps them for receipts and `--debug`.
pub(super) fn observer<'o>(
    reporter: &'o Reporter<'_>,
    attempts: &'o mut Vec<Attempt>,
) -> impl FnMut(&Variant, Span, Moved) + use<'o> {
    let keeps = reporter.keeps_attempts();
    let observer = reporter.observer;
    move |variant, span, moved| {
        observer.moved(variant, span, moved);
        if keeps {
            Attempt::keep(attempts, variant, span, moved);
        }
    }
}
