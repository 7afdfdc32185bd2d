//! What all workers of one tree share, and the entries that it makes of names.

use std::ffi::CString;
use std::time::Instant;

use rustix::fs::FileType;

use super::work_pool::WorkPool;
use super::worker::Worker;
use crate::concurrency::EntryCost;
use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::entry::{Next, copy_entry};
use crate::entry::{Entry, Operand, Prepared};
use crate::fs::{DisplayPath, Place, Trust};

/// What all workers on one tree know.
#[derive(Clone, Copy)]
pub(super) struct TreeWalk<'w> {
    pub(super) cx: &'w CopyContext<'w>,
    pub(super) operand: &'w Operand,
    /// The only file system to enter.
    pub(super) device: Option<u64>,
    pub(super) open_levels: usize,
    /// How many files are made before the first of them is filled.
    pub(super) batch_files: usize,
    /// Where the workers meet, when there are several.
    pub(super) pool: Option<&'w WorkPool>,
}

impl TreeWalk<'_> {
    /// Copies one entry, for which `prepared` has been done before.
    pub(super) fn copy_one(
        &self,
        worker: &mut Worker,
        entry: &Entry<'_>,
        prepared: Option<Prepared>,
    ) -> Next {
        worker.entries += 1;
        let created = prepared.as_ref().is_some_and(|prepared| prepared.created.is_some());
        let moved_before = worker.copy.data.moved_bytes;
        let next = copy_entry(self.cx, &mut worker.copy, entry, prepared);
        if let Some(pool) = self.pool {
            let work = EntryCost { bytes: worker.copy.data.moved_bytes - moved_before, created };
            worker.copy.data.permit.record(work, pool.idle_workers() > 0);
        }
        next
    }

    /// The entry `name` of `pair`.
    pub(super) fn child<'s>(
        &'s self,
        pair: &'s DirectoryPair,
        name: &'s CString,
        kind: FileType,
    ) -> Entry<'s> {
        let trust = if pair.new { Trust::Created } else { Trust::PreExisting };
        Entry {
            src: Place {
                dir: pair.src.fd(),
                name,
                shown: DisplayPath::In(&pair.src.dir_path),
                trust: Trust::PreExisting,
            },
            dst: Place {
                dir: pair.dst.fd(),
                name,
                shown: DisplayPath::In(&pair.dst.dir_path),
                trust,
            },
            dst_dir: Some(&pair.dst.dir_path),
            operand: self.operand,
            is_operand: false,
            listed_as: kind,
            src_through_link: self.cx.options.follow.follows(false),
            device: self.device,
            inherits_acl: pair.children_inherit_acl,
            private: pair.private,
            started: self.cx.report.keeps_receipts().then(Instant::now),
        }
    }
}
