//! What all workers of one tree share, and how a name in a directory becomes an entry.

use std::ffi::CString;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Stat, fstat};

use super::opened_places::OpenedPlaces;
use super::stack::Frame;
use super::work_pool::WorkPool;
use crate::copy::context::CopyWorker;
use crate::copy::directory::Next;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::entry::copy_entry;
use crate::copy::regular::create_prepared;
use crate::destination::context::CopyContext;
use crate::entry::{ListedEntry, Prepared};
use crate::fs::{DisplayPath, Place, Trust, file_bytes};
use crate::request::{Make, Options};
use crate::shared::lock_creation;

/// A file with as much data is given to another worker, which may have to be started for it.
pub(super) const LARGE_FILE_BYTES: u64 = 8 << 20;

/// The walk through the tree of one operand.
#[derive(Clone, Copy)]
pub(super) struct TreeWalk<'w> {
    pub(super) cx: &'w CopyContext<'w>,
    /// How many levels of the tree each worker keeps open.
    pub(super) open_levels: usize,
    /// How many files a worker creates before it fills the first.
    pub(super) batch_files: usize,
    /// Whether a worker with other names gives large files to others.
    pub(super) gives_files: bool,
    /// `None` as long as there is one worker.
    pub(super) pool: Option<&'w WorkPool>,
    /// What is open for partners.
    pub(super) places: &'w OpenedPlaces,
}

impl TreeWalk<'_> {
    /// Copies one entry; `prepared` is what the batch has done for it already.
    pub(super) fn copy_one(
        &self,
        worker: &mut CopyWorker,
        entry: &ListedEntry<'_>,
        prepared: Option<Prepared>,
    ) -> Next {
        worker.entries += 1;
        let moved_before = worker.data.moved_bytes;
        let next = copy_entry(self.cx, worker, entry, prepared);
        if let Some(pool) = self.pool
            && !matches!(next, Next::Give(..))
        {
            let bytes = worker.data.moved_bytes - moved_before;
            worker.data.permit.record(bytes, pool.idle_workers() > 0);
        }
        next
    }

    /// The entry `name` of the directory of `frame`, unless it is a large file that another worker
    /// may copy.
    pub(super) fn child_to_copy<'s>(
        &'s self,
        frame: &'s Frame<'_>,
        name: &'s CString,
        listed_as: FileType,
    ) -> ListedEntry<'s> {
        let gives = self.gives_files && !frame.is_large_file;
        let give_from_bytes = if gives { LARGE_FILE_BYTES } else { u64::MAX };
        ListedEntry { give_from_bytes, ..self.child(&frame.pair, name, listed_as) }
    }

    /// The entry `name` of `pair`.
    pub(super) fn child<'s>(
        &'s self,
        pair: &'s DirectoryPair,
        name: &'s CString,
        listed_as: FileType,
    ) -> ListedEntry<'s> {
        let (src_shown, dst_shown) =
            (DisplayPath::In(&pair.src.dir_path), DisplayPath::In(&pair.dst.dir_path));
        let trust = if pair.facts.new { Trust::Created } else { Trust::PreExisting };
        ListedEntry {
            src: Place::new(pair.src.fd(), name, src_shown, Trust::PreExisting),
            dst: Place::new(pair.dst.fd(), name, dst_shown, trust),
            dst_dir: Some(&pair.dst.dir_path),
            operand: &pair.operand,
            is_operand: false,
            listed_as,
            src_through_link: self.cx.options.follow.follows(false),
            device: self.cx.options.one_file_system.then_some(pair.src.id().dev),
            inherits_acl: pair.facts.children_inherit_acl,
            private: pair.facts.private,
            give_from_bytes: u64::MAX,
            range_place: None,
            started: self.cx.report.keeps_receipts().then(Instant::now),
        }
    }
}

// Small files that are created some at a time and then filled one by one.
//
// The kernel creates names in a directory one at a time, under a lock; some file systems lock a
// larger part. Workers that create and fill one file after the other wait for that lock at each
// file, and sleeping and waking takes longer than a small file does. So one worker creates several
// files in a row while the others fill theirs. The file system also changes the same metadata for
// each new name, and still has it in its caches (docs/design/small-files.md).

// Bounds of a batch. docs/design/small-files.md has the measurements.

/// Files in a batch. Each takes two descriptors. A killed worker leaves up to as many empty files.
pub(crate) const BATCH_FILES: usize = 8;

/// A longer file is not created ahead: those after it would stay empty while it is copied.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of all files of a batch but the last.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// After this time a source is looked at again before it is copied.
const STAT_AGE_MAX: Duration = Duration::from_micros(200);

/// A regular file as listed, and what has been done for it.
struct BatchItem {
    name: CString,
    listed_as: FileType,
    prepared: Option<Prepared>,
}

impl TreeWalk<'_> {
    /// Whether `entry` may start a batch: it is listed as a regular file, and goes to a directory
    /// that only this run changes. The options must allow that files are created before they are filled.
    pub(super) fn may_batch(&self, worker: &CopyWorker, entry: &ListedEntry<'_>) -> bool {
        let Options { make, atomic, limit_rate, record, .. } = self.cx.options;
        self.batch_files > 1
            && entry.listed_as == FileType::RegularFile
            && entry.private
            && !worker.last_was_linked
            && *make == Make::Copy
            && !self.cx.options.dry_run
            // A receipt has the time of each file.
            && !self.cx.report.keeps_receipts()
            // No name may stand for an incomplete file, nor for an empty one for long.
            && !atomic
            && limit_rate.is_none()
            && record.is_none()
            && !self.cx.options.copies_in_order()
    }

    /// Copies the entry `first` and regular files that are listed after it. Returns what is left to
    /// do: seldom anything, and then most often for the last.
    pub(super) fn copy_batch(
        &self,
        worker: &mut CopyWorker,
        frame: &mut Frame<'_>,
        first: (CString, FileType),
    ) -> Vec<Next> {
        let started = Instant::now();
        let mut items = self.open_sources(worker, frame, first);
        worker.data.permit.charge(items.len() - 1);
        self.create_files(worker, &frame.pair, &mut items);
        let mut left = Vec::new();
        for BatchItem { name, listed_as, mut prepared } in items {
            let entry = self.child_to_copy(frame, &name, listed_as);
            if self.cx.report.interrupted() {
                if let Some(prepared) = prepared {
                    prepared.remove_created(&entry);
                }
                continue;
            }
            if started.elapsed() > STAT_AGE_MAX {
                prepared = prepared.and_then(|prepared| prepared.refreshed(self.cx, &entry));
            }
            match self.copy_one(worker, &entry, prepared) {
                Next::Done => (),
                next => left.push(next),
            }
        }
        left
    }

    /// Creates the files for the copies under the lock of the directory. A file that cannot be
    /// created is tried again, and reported, at its turn.
    fn create_files(&self, worker: &mut CopyWorker, pair: &DirectoryPair, items: &mut [BatchItem]) {
        let _creation_guard = lock_creation(&pair.creation_lock);
        let fs_types = &mut worker.data.fs_types;
        let mut failed = false;
        for BatchItem { name, listed_as, prepared } in items {
            let entry = self.child(pair, name, *listed_as);
            if failed {
                // Perhaps no descriptor is left: this closes the source.
                *prepared = None;
            } else if let Some(Prepared { source, created }) = prepared
                && may_create_ahead(self.cx, &entry, &source.stat)
            {
                *created = create_prepared(self.cx, fs_types, &entry, &source.stat);
                failed = created.is_none();
            }
        }
    }

    /// Opens regular files, the first of which is `first`. Only the last one returned may be
    /// something else that has replaced the listed file, such as a directory.
    fn open_sources(
        &self,
        worker: &mut CopyWorker,
        frame: &mut Frame<'_>,
        first: (CString, FileType),
    ) -> Vec<BatchItem> {
        let buffered = frame.listing.buffered() + 1;
        let shares = self.pool.is_some_and(|pool| pool.idle_workers() > 0);
        let available = if shares { buffered.div_ceil(2) } else { buffered };
        let files_max = self.batch_files.min(available);
        let mut items = Vec::with_capacity(files_max);
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some((name, listed_as)) = next.take() {
            let entry = self.child(&frame.pair, &name, listed_as);
            let source = entry.open_listed(self.cx.options, &mut worker.data.fs_types);
            let file_bytes = source.as_ref().map_or(u64::MAX, |source| file_bytes(&source.stat));
            let prepared = source.map(|source| Prepared { source, created: None });
            items.push(BatchItem { name, listed_as, prepared });
            bytes += file_bytes.min(BATCH_BYTES_MAX);
            let is_room = items.len() < files_max && bytes < BATCH_BYTES_MAX;
            if is_room && file_bytes <= FILE_BYTES_MAX {
                next = self.next_regular(frame);
            }
        }
        items
    }

    /// The next buffered name, if it is listed as a regular file.
    fn next_regular(&self, frame: &mut Frame<'_>) -> Option<(CString, FileType)> {
        let is_regular = |kind| kind == FileType::RegularFile;
        while let Some((name, kind)) = frame.listing.next_buffered(is_regular) {
            let entry = self.child(&frame.pair, &name, kind);
            if !entry.is_left_out(self.cx.options, self.cx.report) {
                return Some((name, kind));
            }
        }
        None
    }
}

impl Prepared {
    /// Removes the file that was created and will not be filled.
    fn remove_created(&self, entry: &ListedEntry<'_>) {
        if self.created.is_some() {
            // The directory is private, so the name is still that of this file.
            let _ = entry.dst.unlink();
        }
    }

    /// Looks at the source again. The created file is removed if it would be created differently
    /// now. `None` if the source cannot be looked at.
    fn refreshed(mut self, cx: &CopyContext<'_>, entry: &ListedEntry<'_>) -> Option<Prepared> {
        let before = self.source.stat;
        let Ok(now) = fstat(&self.source.fd) else {
            self.remove_created(entry);
            return None;
        };
        self.source.stat = now;
        let attributes = |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid);
        if attributes(&now) != attributes(&before) || !may_create_ahead(cx, entry, &now) {
            self.remove_created(entry);
            self.created = None;
        }
        Some(self)
    }
}

/// Whether the file for the copy of `stat` may be created before its turn.
fn may_create_ahead(cx: &CopyContext<'_>, entry: &ListedEntry<'_>, stat: &Stat) -> bool {
    // A source with several names may become a hard link to an earlier copy.
    file_bytes(stat) <= FILE_BYTES_MAX && !entry.may_have_links(cx.options, stat)
}
