//! What a worker keeps from file to file for copying data.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Stat, fstat, fstatfs};
use rustix::io::fcntl_dupfd_cloexec;
use sys::Buffer;

use super::context::DataContext;
use super::engine_choice::chains::VariantChains;
use super::engine_choice::rule::Between;
use super::page_cache::PendingDrops;
use super::sync::{
    BacklogLimit, LocalFs, PendingSyncs, RANGE_BYTES_MAX, Written, close_with_times,
};
use crate::concurrency::{ConcurrencyController, Permit, ProcessorUse};
use crate::fs::{
    BTRFS, Endpoints, FileId, FsTypes, Place, file_bytes, is_regular, is_reliable, is_served,
    process,
};
use crate::report::{
    Action, DataReport, Diagnostic, Method, Receipt, Result, WorkerProgress, failed,
};
use crate::request::Options;

/// The data of a file whose copy failed, for its receipt.
#[derive(Debug)]
pub(super) struct FailedData {
    pub(super) data: DataReport,
    pub(super) diagnostic: Diagnostic,
}

/// The state for one pair of file systems.
pub(super) struct FsPair {
    pub(super) chains: VariantChains,
    pub(super) clone_over: CloneOverPolicy,
}

/// Descriptors that engines keep from file to file: the pipe of `splice`, and the ring of `io_uring`.
/// Parts of a large file have more of them, while other workers have nothing to do.
pub(crate) const ENGINE_DESCRIPTORS: usize = 3;

/// What a worker keeps for copying data.
#[derive(Default)]
pub(crate) struct DataWorker {
    /// By the device numbers of source and destination: a handful at most.
    pub(super) pairs: Vec<(FileId, FsPair)>,
    /// Whether engines are closed after each file, because there are few descriptors.
    closes_engines: bool,
    pub(crate) fs_types: FsTypes,
    /// Allocated when it is first used. Most copies need no buffer.
    pub(super) buffer: Option<Buffer>,
    /// What the workers of the run leave for a large file.
    pub(crate) processors: ProcessorUse,
    pub(crate) permit: Permit,
    pending_syncs: PendingSyncs,
    /// Bytes of files among them, and how many may be.
    unsynced_bytes: u64,
    unsynced_limit: BacklogLimit,
    pub(super) pending_drops: PendingDrops,
    /// Bytes of data that were moved so far, not shared.
    pub(crate) moved_bytes: u64,
    /// Of the current file, if its data failed and receipts are kept: what was copied and why it
    /// ended.
    pub(super) failed_data: Option<FailedData>,
    pub(crate) progress: WorkerProgress,
}

impl DataWorker {
    pub(crate) fn new(cx: &DataContext<'_>) -> DataWorker {
        DataWorker { closes_engines: process::descriptors_are_few(), ..DataWorker::of_one_file(cx) }
    }

    /// A worker that is dropped after one file, and its engines with it.
    pub(crate) fn of_one_file(cx: &DataContext<'_>) -> DataWorker {
        let progress = WorkerProgress::new(cx.report.observer.progress(), cx.options);
        DataWorker { progress, ..DataWorker::default() }
    }

    /// Copies with other workers from now on.
    pub(crate) fn start_sharing(&mut self, controller: &Arc<ConcurrencyController>) {
        (self.permit, self.processors) = (Permit::new(controller), controller.processors.clone());
    }

    /// Copies alone from now on.
    pub(crate) fn end_sharing(&mut self) {
        (self.permit, self.processors) = <_>::default();
    }

    /// The data of a file is copied. Engines give their descriptors back, if there are few.
    pub(super) fn end_data(&mut self) {
        if self.closes_engines {
            self.pairs.clear();
        }
    }

    /// Closes a complete destination; with `--durable` after it was synced. Then it gets the times of `times_of`, if
    /// any.
    pub(crate) fn close(
        &mut self,
        cx: &DataContext<'_>,
        (fd, place): (OwnedFd, &Place<'_>),
        times_of: Option<&Stat>,
    ) -> Result<()> {
        if !cx.options.durable {
            let [closed, timed] = close_with_times(fd, times_of);
            if let Err(errno) = timed {
                cx.report.report(failed(Action::Times, place)(errno));
            }
            return closed.map_err(failed(Action::Close, place));
        }
        let stat = fstat(&fd).map_err(failed(Action::Fstat, place))?;
        let path = place.path();
        let dev = FileId::of(&stat).dev;
        // The contents of a device are not those of the file system that it is on.
        let is_file = is_regular(&stat);
        let local =
            is_file.then(|| self.local_fs(cx, (fd.as_fd(), dev), || path.clone())).flatten();
        let times_of = times_of.copied();
        self.pending_syncs.add(cx.report, Written { times_of, ..Written::new(fd, path, local) });
        // The rest of a large file is on the medium.
        self.unsynced_bytes += file_bytes(&stat).min(2 * RANGE_BYTES_MAX);
        self.progress.hold();
        Ok(())
    }

    /// Passes the receipt of a directory to the observer; with `--durable` after the directory was
    /// synced.
    pub(crate) fn finish_directory(
        &mut self,
        cx: &DataContext<'_>,
        (dir, dev): (BorrowedFd<'_>, u64),
        path: impl Fn() -> PathBuf,
        receipt: Option<Receipt>,
    ) {
        let mut failures = Vec::new();
        if cx.options.durable {
            let local = self.local_fs(cx, (dir, dev), &path);
            if cx.options.preserve.timestamps && local.is_some_and(|fs| fs.fs_type == BTRFS) {
                // After a loss of power Linux 5.10 gives a directory the time at which it adds names from the log.
                // A commit empties the log.
                cx.syncer.note_file_system(dir, &path);
            }
            if local.is_some()
                && let Ok(fd) = fcntl_dupfd_cloexec(dir, 0)
            {
                let written =
                    Written { is_directory: true, receipt, ..Written::new(fd, path(), local) };
                self.pending_syncs.add(cx.report, written);
                return self.sync_if_many(cx);
            }
            failures.extend(cx.syncer.try_sync_directory(dir, path).err());
        }
        failures.iter().for_each(|diagnostic| cx.report.report(diagnostic.clone()));
        if let Some(receipt) = receipt {
            cx.report.observer.finished(receipt.failed_by(failures));
        }
    }

    /// The file system of `fd`, if syncfs(2) can be relied on there. Another one that is not served is synced
    /// as a whole at the end as well: fsync(2) of nilfs2 leaves out changes of attributes.
    fn local_fs(
        &mut self,
        cx: &DataContext<'_>,
        (fd, dev): (BorrowedFd<'_>, u64),
        path: impl FnOnce() -> PathBuf,
    ) -> Option<LocalFs> {
        let fs_type = self.fs_types.of(fd, dev)?;
        if is_reliable(fs_type) {
            return Some(LocalFs { dev, fs_type });
        }
        if !is_served(fs_type) {
            cx.syncer.note_file_system(fd, path);
        }
        None
    }

    /// Passes a receipt to the observer; with `--durable` after the file was synced.
    pub(crate) fn finish(&mut self, cx: &DataContext<'_>, receipt: Receipt) {
        self.pending_syncs.finish(cx.report, receipt);
    }

    /// Syncs the files that this worker has written, if they are many or have many bytes.
    pub(crate) fn sync_if_many(&mut self, cx: &DataContext<'_>) {
        let is_long = self.unsynced_bytes >= self.unsynced_limit.bytes;
        if is_long || self.pending_syncs.are_many(cx.options) {
            self.sync(cx);
        }
    }

    /// Syncs all files that this worker has written.
    pub(crate) fn sync(&mut self, cx: &DataContext<'_>) {
        if !cx.options.durable {
            return;
        }
        let started = Instant::now();
        self.pending_syncs.sync(cx.report);
        if self.unsynced_bytes >= self.unsynced_limit.bytes {
            self.unsynced_limit.adapt(started.elapsed());
        }
        self.unsynced_bytes = 0;
        self.progress.release_held();
    }

    /// Drops the pages of all copies that wait for it (`--no-cache`).
    pub(crate) fn drop_pages(&mut self, cx: &DataContext<'_>) {
        self.pending_drops.drop_all(cx.report);
        if cx.options.no_cache && !cx.options.durable {
            self.progress.release_held();
        }
    }

    /// Makes `receipt` that of the current entry, which has failed, with what was copied before: `copy_data` returns
    /// only the error.
    pub(crate) fn add_failure(&mut self, receipt: &mut Receipt, diagnostic: &Diagnostic) {
        receipt.method = Method::Failed;
        if let Some(FailedData { data, diagnostic: first }) = self.failed_data.take() {
            receipt.add_data(data);
            // An incomplete file has the error that was reported before as its reason.
            receipt.failures.extend((first != *diagnostic).then_some(first));
        }
        receipt.failures.push(diagnostic.clone());
    }

    /// The current entry is finished.
    pub(crate) fn finish_entry(&mut self) {
        self.progress.finish_entry(self.pending_drops.bytes);
    }

    /// Drops pages and syncs, at the end of the worker.
    pub(crate) fn release(&mut self, cx: &DataContext<'_>) {
        self.drop_pages(cx);
        self.sync(cx);
    }

    /// The index of the state for the pair of file systems.
    pub(super) fn pair(&mut self, options: &Options, ends: Endpoints<'_>) -> usize {
        let Endpoints { src, dst } = ends;
        // Any two numbers that belong together.
        let key = FileId { dev: src.dev, ino: dst.dev };
        let known = self.pairs.iter().position(|(known, _)| *known == key);
        known.unwrap_or_else(|| {
            let chains = VariantChains::new(Between::new(options, src.fs_type, dst.fs_type));
            self.pairs.push((key, FsPair { chains, clone_over: CloneOverPolicy::default() }));
            self.pairs.len() - 1
        })
    }
}

// Whether cloning over the old contents of a destination is fast (docs/design/old-contents.md).

/// Cloning over existing blocks takes less, unless dirty pages of those are written first.
const CLONE_OVER_TIME_MAX: Duration = Duration::from_micros(100);

/// Files that are truncated, at most, before cloning over is tried again.
const TRUNCATED_MAX: u32 = 1024;

/// The experience with cloning over old contents on one pair of file systems.
#[derive(Debug, Default)]
pub(crate) struct CloneOverPolicy {
    /// Bytes of a block of the destination's file system, once they were read.
    block_bytes: Option<u64>,
    /// For files of one block, whether it is fast.
    pub(super) one_block: Backoff,
    /// For longer ones, whether they share their blocks already.
    pub(super) shared: Backoff,
}

/// Tries an optimisation as long as it succeeds, and rarely after failures.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Files that are truncated before it is tried again, and how many of them are left.
    truncated: u32,
    left: u32,
}

impl Backoff {
    /// Whether to try it with the next file.
    pub(super) fn should_try(&mut self) -> bool {
        let tries = self.left == 0;
        self.left = self.left.saturating_sub(1);
        tries
    }

    pub(super) fn record(&mut self, success: bool) {
        self.truncated = if success { 0 } else { (4 * self.truncated).clamp(4, TRUNCATED_MAX) };
        self.left = self.truncated;
    }
}

impl CloneOverPolicy {
    pub(super) fn block_bytes(&mut self, dst: BorrowedFd<'_>) -> u64 {
        let asked = || fstatfs(dst).ok().and_then(|statfs| u64::try_from(statfs.f_bsize).ok());
        *self.block_bytes.get_or_insert_with(|| asked().unwrap_or(0))
    }

    /// Records the time for a file of `bytes`.
    pub(super) fn record(&mut self, bytes: u64, elapsed: Duration) {
        let is_one_block = self.block_bytes.is_some_and(|block_bytes| bytes <= block_bytes);
        let backoff = if is_one_block { &mut self.one_block } else { &mut self.shared };
        backoff.record(elapsed < CLONE_OVER_TIME_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_failures_it_is_rarely_tried() {
        let mut backoff = Backoff::default();
        let mut tries_of_1000 = |success: bool| {
            let mut tries = 0;
            for _ in 0..1000 {
                if backoff.should_try() {
                    tries += 1;
                    backoff.record(success);
                }
            }
            tries
        };
        assert_eq!(tries_of_1000(true), 1000);
        assert!((3..=6).contains(&tries_of_1000(false)));
        assert!(tries_of_1000(true) > 500, "soon after it succeeds again");
    }

    #[test]
    fn long_files_do_not_affect_short_ones() {
        let mut over = CloneOverPolicy { block_bytes: Some(4096), ..CloneOverPolicy::default() };
        over.record(5000, Duration::from_millis(5));
        assert!(over.one_block.should_try() && !over.shared.should_try());
        over.record(4096, Duration::from_millis(5));
        assert!(!over.one_block.should_try());
    }
}
