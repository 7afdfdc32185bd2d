//! The state of one file whose data is copied, and what follows from its attributes alone.

use std::time::Duration;

use engines::profile::Residency;
use engines::sys::Buffer;
use engines::{Meter, Moved, Span, Variant};
use rustix::fs::Stat;

use super::clone_over::CloneOverPolicy;
use super::context::DataContext;
use super::engine_choice::chains::{ChainId, VariantChains};
use super::engine_choice::endpoint::Endpoint;
use super::files::Files;
use super::journal::Journal;
use super::page_cache::{Footprint, residency};
use crate::concurrency::Permit;
use crate::fs::{BTRFS, EXT4, TMPFS, XFS, data_bytes, file_bytes, is_pseudo, is_regular};
use crate::report::{Attempt, DataReport, Reporter};
use crate::request::Sparse;

/// Bytes of a worker's buffer.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

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

/// One file while its data is copied.
pub(super) struct FileCopy<'c, 'r, 'f> {
    pub(super) cx: &'c DataContext<'r>,
    pub(super) files: &'c Files<'f>,
    /// The destination has its old contents still.
    pub(super) old_data_remains: bool,
    pub(super) chains: &'c mut VariantChains,
    pub(super) clone_over: &'c mut CloneOverPolicy,
    /// Source and destination.
    pub(super) endpoints: (Endpoint<'f>, Endpoint<'f>),
    /// The chain that was measured to be the fastest, once that was looked up.
    pub(super) measured: Option<Option<ChainId>>,
    /// None until it is needed.
    pub(super) buffer: &'c mut Option<Buffer>,
    pub(super) permit: &'c mut Permit,
    /// Whether the source's file system is known to tell the truth about lengths and holes.
    pub(super) reliable: bool,
    /// One of the file systems is of no kind that is known to be quick.
    pub(super) may_block: bool,
    /// All other workers have something to do.
    pub(super) others_busy: bool,
    /// Kept where the page cache is to be left as it was.
    pub(super) footprint: Option<Footprint<'f>>,
    /// Where others see how far it is, and what it showed before.
    pub(super) meter: Option<&'c Meter>,
    pub(super) metered_before: u64,
    /// Somebody looks so often that no call is to take long.
    pub(super) fine_grained: bool,
    /// How far the copy is right: offset in bytes.
    pub(super) at: u64,
    /// Where that is noted for a later run.
    pub(super) journal: Option<&'c mut Journal>,
    pub(super) report: DataReport,
}

impl FileCopy<'_, '_, '_> {
    pub(super) fn is_regular(&self) -> bool {
        is_regular(self.files.src_stat) && is_regular(self.files.dst_stat)
    }

    /// Whether the source is one of the kernel's own variables.
    pub(super) fn is_pseudo(&self) -> bool {
        self.endpoints.0.fs_type.is_some_and(is_pseudo)
    }

    /// Whether it is read and written in an instant.
    pub(super) fn is_small(&self) -> bool {
        self.is_regular() && file_bytes(self.files.src_stat) < SMALL_BYTES
    }

    /// Whether it is read and written in little more than that.
    pub(super) fn is_brief(&self) -> bool {
        let options = self.cx.options;
        let bytes = self.bytes_to_move();
        // What has to be tidied up or told after an interrupt is not left to luck, nor what waits for a
        // medium.
        let is_plain = !options.atomic && options.backup.is_none() && self.journal.is_none();
        let waits = self.may_block || options.durable || options.no_cache;
        let is_short = self.is_regular() && bytes <= BRIEF_BYTES;
        let is_quiet = is_plain && !waits && !self.cx.report.keeps_receipts();
        let is_early = || self.cx.engines.elapsed() < BRIEF_TIME;
        self.is_small()
            || is_quiet && is_short && is_early() && self.residency() == Some(Residency::Resident)
    }

    /// How much of the source is in the page cache.
    pub(super) fn residency(&self) -> Option<Residency> {
        let bytes = file_bytes(self.files.src_stat);
        residency(self.files.src, bytes, self.bytes_to_move() < bytes)
    }

    /// Bytes of the source, but for holes where its blocks tell of those.
    pub(super) fn bytes_to_move(&self) -> u64 {
        let stat = self.files.src_stat;
        // Elsewhere data may be counted as it is compressed, or not at all; btrfs counts it as it was.
        let blocks_tell = matches!(self.endpoints.0.fs_type, Some(EXT4 | XFS | BTRFS | TMPFS));
        let skips_holes = self.cx.options.sparse != Sparse::Never && blocks_tell;
        if skips_holes { data_bytes(stat) } else { file_bytes(stat) }
    }

    /// Whether the attempt to share its blocks, if one is made, takes an instant.
    pub(super) fn is_cloned_at_once(&self) -> bool {
        let is_tried = self.at == 0 && self.chains.clone.is_some();
        let at_once = self.is_regular() && file_bytes(self.files.src_stat) <= SHARED_AT_ONCE_BYTES;
        !is_tried || self.is_small() || (!self.may_block && at_once)
    }
}

/// Fewer blocks than the length fills: there may be holes. What is shorter than a block has none
/// that would be worth the question, and may be kept in the inode.
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

/// Passes attempts on to the run's observer, and keeps them where somebody wants to know.
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
