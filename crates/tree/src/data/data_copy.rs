//! The state of one file while its data is copied, and what follows from its attributes.

use std::cell::OnceCell;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use engines::profile::Residency;
use engines::sys::Buffer;
use engines::{Meter, Moved, Pair, Span, Variant};
use rustix::fs::Stat;
use rustix::io::Errno;

use super::clone::CloneOverPolicy;
use super::engine_choice::chains::{ChainId, VariantChains};
use super::engine_choice::profiles::EngineContext;
use super::journal::{Journal, RangeRecords};
use super::page_cache::{Footprint, residency};
use super::sync::Syncer;
use super::worker::{DataWorker, FsPair, Parts};
use super::writeback::Backlog;
use crate::concurrency::{Helpers, Permit};
use crate::fs::dirty_pages::has_dirty_pages;
use crate::fs::{
    BTRFS, EXT4, Endpoint, FileId, Place, TMPFS, XFS, data_bytes, file_bytes, is_pseudo,
    is_regular, is_reliable,
};
use crate::report::{Attempt, DataReport, Diagnostic, ProgressTracker, Reporter, WorkerCounters};
use crate::request::{Options, Sparse};
use crate::shared::{RateLimit, SharedFile};

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
/// | the order of the steps | `copy.rs` |
/// | clone of the whole file | `clone.rs` |
/// | clone or write over old contents | `overwrite.rs` |
/// | ranges of a file that several processes copy | `ranges.rs` |
/// | transfer of extents, nonzero blocks, streams | `transfer.rs` |
/// | check for a source that changed | `completion.rs` |
/// | facts of the file, such as its bytes to move | this file |
pub(super) struct DataCopy<'c, 'r, 'f> {
    pub(super) cx: &'c DataContext<'r>,
    pub(super) files: &'c Files<'f>,
    pub(super) old_contents: OldContents,
    pub(super) chains: &'c mut VariantChains,
    pub(super) clone_over: &'c mut CloneOverPolicy,
    /// Source and destination.
    pub(super) endpoints: (Endpoint<'f>, Endpoint<'f>),
    /// The chain of a profile line, once it was looked up.
    pub(super) by_line: Option<Option<ChainId>>,
    /// Whether nothing of the source is in the page cache, once that was looked at.
    pub(super) is_absent: OnceCell<bool>,
    /// Allocated when it is first used.
    pub(super) buffer: &'c mut Option<Buffer>,
    pub(super) permit: &'c mut Permit,
    /// The source's file system is reliable, see [`crate::fs::fs_type`].
    pub(super) reliable: bool,
    /// One of the file systems may block, such as a network file system.
    pub(super) may_block: bool,
    /// Other workers of this file.
    pub(super) helpers: Helpers,
    /// With `--no-cache`.
    pub(super) footprint: Option<Footprint<'f>>,
    /// If the copy waits for the medium.
    pub(super) backlog: Option<Backlog<'f>>,
    /// Of the worker.
    pub(super) counters: Option<&'c WorkerCounters>,
    /// Shows the progress to other threads, and its value before this file.
    pub(super) meter: Option<&'c Meter>,
    pub(super) metered_before: u64,
    /// Progress is displayed often, so that no call may take long.
    pub(super) fine_grained: bool,
    /// Up to this offset the copy is complete.
    pub(super) at: u64,
    /// Records the offset for `--resume`.
    pub(super) journal: Option<&'c mut Journal>,
    /// Records what is copied of a range of a file that several processes copy, for `--resume`.
    pub(super) range_records: Option<RangeRecords>,
    /// Bytes of data and of holes that partners have copied. The report has them as well.
    pub(super) by_others: u64,
    pub(super) report: DataReport,
}

impl<'c, 'r, 'f> DataCopy<'c, 'r, 'f> {
    /// The state for a file of which nothing is copied yet, whose old contents were truncated.
    pub(super) fn start(
        cx: &'c DataContext<'r>,
        worker: &'c mut DataWorker,
        files: &'c Files<'f>,
        counters: Option<&'c WorkerCounters>,
    ) -> Self {
        let (src_dev, dst_dev) = (FileId::of(files.src_stat).dev, FileId::of(files.dst_stat).dev);
        let src = worker.endpoint(files.src, src_dev);
        let dst = worker.endpoint(files.dst, dst_dev);
        let has_dirty_pages = dst.fs_type.is_some_and(|of| has_dirty_pages(of, dst_dev));
        counters
            .iter()
            .for_each(|counters| counters.start_data(has_dirty_pages.then_some(dst_dev)));
        let meter = counters.map(|counters| &counters.meter);
        let waits = cx.options.no_cache || has_dirty_pages && cx.options.waits_for_medium();
        let regular_dst = is_regular(files.dst_stat).then_some(files.dst);
        let reliable = src.fs_type.is_some_and(is_reliable);
        let helpers = worker.processors.helpers();
        let Parts { pair, buffer, permit } = worker.parts(cx.options, src, dst);
        let FsPair { chains, clone_over } = pair;
        DataCopy {
            cx,
            files,
            old_contents: OldContents::Gone,
            chains,
            clone_over,
            endpoints: (src, dst),
            by_line: None,
            is_absent: OnceCell::new(),
            buffer,
            permit,
            reliable,
            may_block: !reliable || !dst.fs_type.is_some_and(is_reliable),
            helpers,
            footprint: cx.options.no_cache.then(|| Footprint::of(files)),
            backlog: waits.then(|| Backlog::new(regular_dst)),
            counters,
            meter,
            metered_before: meter.map_or(0, Meter::get),
            fine_grained: cx
                .report
                .observer
                .progress()
                .is_some_and(ProgressTracker::is_fine_grained),
            at: 0,
            journal: None,
            range_records: None,
            by_others: 0,
            report: DataReport::new(),
        }
    }
}

impl DataCopy<'_, '_, '_> {
    pub(super) fn is_regular(&self) -> bool {
        is_regular(self.files.src_stat) && is_regular(self.files.dst_stat)
    }

    /// Whether the source is a variable of the kernel, as in /proc.
    pub(super) fn is_pseudo(&self) -> bool {
        self.endpoints.0.fs_type.is_some_and(is_pseudo)
    }

    /// Whether it is copied in microseconds.
    pub(super) fn is_small(&self) -> bool {
        self.is_regular() && file_bytes(self.files.src_stat) < SMALL_BYTES
    }

    /// Whether it is copied in milliseconds, without deferred initialisation.
    pub(super) fn is_brief(&self) -> bool {
        let options = self.cx.options;
        let bytes = self.bytes_to_move();
        // Not if an interrupt needs a clean-up or a report, nor if the copy waits for a medium.
        let is_plain = !options.atomic && options.backup.is_none() && self.journal.is_none();
        let waits = self.may_block || options.durable || options.no_cache;
        let is_short = self.is_regular() && bytes <= CACHED_BYTES;
        let is_quiet = is_plain && !waits && !self.cx.report.keeps_receipts();
        let is_early = || self.cx.engines.elapsed() < EARLY_TIME;
        self.is_small()
            || is_quiet && is_short && is_early() && self.residency() == Some(Residency::Resident)
    }

    /// How much of the source is in the page cache.
    pub(super) fn residency(&self) -> Option<Residency> {
        let bytes = file_bytes(self.files.src_stat);
        residency(self.files.src, bytes, self.bytes_to_move() < bytes)
    }

    /// Bytes of the source without holes, where its block count tells of them.
    pub(super) fn bytes_to_move(&self) -> u64 {
        let stat = self.files.src_stat;
        // Other file systems count compressed blocks, or none. btrfs counts uncompressed ones.
        let blocks_tell = matches!(self.endpoints.0.fs_type, Some(EXT4 | XFS | BTRFS | TMPFS));
        let skips_holes = self.cx.options.sparse != Sparse::Never && blocks_tell;
        if skips_holes { data_bytes(stat) } else { file_bytes(stat) }
    }

    /// Whether the attempt to clone it, if there is one, is short.
    pub(super) fn is_clone_short(&self) -> bool {
        let is_tried = self.at == 0 && self.chains.clone.is_some();
        let is_short = self.is_regular() && file_bytes(self.files.src_stat) <= CLONE_BYTES;
        !is_tried || self.is_small() || (!self.may_block && is_short)
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

/// Both open files, with their attributes when they were opened.
pub(crate) struct Files<'f> {
    pub(crate) src: BorrowedFd<'f>,
    pub(crate) src_stat: &'f Stat,
    pub(crate) src_place: &'f Place<'f>,
    pub(crate) dst: BorrowedFd<'f>,
    pub(crate) dst_stat: &'f Stat,
    pub(crate) dst_place: &'f Place<'f>,
    /// This run created the destination.
    pub(crate) new: bool,
    /// The destination has no final name yet, and is removed if the copy fails (`--atomic`).
    pub(crate) atomic: bool,
    /// This run opened the destination, which it never does with O_APPEND.
    pub(crate) opened_here: bool,
    /// Partners copy parts of the file as well.
    pub(crate) shared: Option<Shared<'f>>,
}

/// What a process has to know of a file that others copy as well.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'f> {
    /// The account of the owner; `None` in a process that helps.
    pub(crate) owned: Option<&'f SharedFile>,
    /// Called before each piece: tells partners that wait of the file.
    pub(crate) look: &'f dyn Fn(),
}

impl Files<'_> {
    /// Both descriptors, for an engine.
    pub(super) fn pair(&self) -> Pair<'_> {
        let pair = Pair::new(self.src, self.dst);
        if self.opened_here { pair.without_append() } else { pair }
    }

    /// The error of a clone.
    pub(super) fn clone_error(&self, errno: Errno) -> Diagnostic {
        Diagnostic::Clone { src: self.src_place.path(), dst: self.dst_place.path(), errno }
    }

    /// The run was interrupted while the copy was verified.
    pub(super) fn interrupted_unverified(&self) -> Diagnostic {
        let dst = self.dst_place.path();
        match self.atomic {
            true => Diagnostic::InterruptedBefore { dst },
            false => Diagnostic::InterruptedUnverified { dst },
        }
    }
}

/// Shared by reference among all workers.
pub(crate) struct DataContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(super) engines: EngineContext<'r>,
    pub(crate) syncer: Syncer<'r>,
    pub(super) rate_limit: Option<RateLimit>,
}

impl<'r> DataContext<'r> {
    /// For a run that starts now.
    pub(crate) fn new(options: &'r Options, report: &'r Reporter<'r>) -> DataContext<'r> {
        DataContext {
            options,
            report,
            engines: EngineContext::new(options, report),
            syncer: Syncer::new(options.durable, report),
            rate_limit: options.limit_rate.map(RateLimit::new),
        }
    }
}
