//! What all workers of one tree share, and how a name in a directory becomes an entry.

use std::ffi::CString;
use std::time::Instant;

use rustix::fs::FileType;

use super::contexts::Worker;
use super::opened_places::OpenedPlaces;
use super::stack::Frame;
use super::work_pool::WorkPool;
use crate::concurrency::EntryCost;
use crate::copy::context::CopyContext;
use crate::copy::directory::Next;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::entry::copy_entry;
use crate::entry::{ListedEntry, Prepared};
use crate::fs::{DisplayPath, Place, Trust};

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
        worker: &mut Worker,
        entry: &ListedEntry<'_>,
        prepared: Option<Prepared>,
    ) -> Next {
        worker.entries += 1;
        let created = prepared.as_ref().is_some_and(|prepared| prepared.created.is_some());
        let moved_before = worker.copy.data.moved_bytes;
        let next = copy_entry(self.cx, &mut worker.copy, entry, prepared);
        if let Some(pool) = self.pool
            && !matches!(next, Next::Give(..))
        {
            let cost = EntryCost { bytes: worker.copy.data.moved_bytes - moved_before, created };
            worker.copy.data.permit.record(cost, pool.idle_workers() > 0);
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
        let trust = if pair.new { Trust::Created } else { Trust::PreExisting };
        ListedEntry {
            src: Place::new(pair.src.fd(), name, src_shown, Trust::PreExisting),
            dst: Place::new(pair.dst.fd(), name, dst_shown, trust),
            dst_dir: Some(&pair.dst.dir_path),
            dst_dev: Some(pair.dst.id.dev),
            operand: &pair.operand,
            is_operand: false,
            listed_as,
            src_through_link: self.cx.options.follow.follows(false),
            device: pair.device,
            inherits_acl: pair.children_inherit_acl,
            private: pair.private,
            give_from_bytes: u64::MAX,
            range_place: None,
            started: self.cx.report.keeps_receipts().then(Instant::now),
        }
    }
}
