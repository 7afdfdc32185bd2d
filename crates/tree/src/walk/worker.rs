//! What a worker keeps from entry to entry.

use crate::copy::context::{CopyContext, CopyWorker};
use crate::fs::Buffer;

/// One worker of a run.
pub(crate) struct Worker {
    pub(crate) copy: CopyWorker,
    /// For reading directories.
    pub(super) buffer: Buffer,
    /// How many small files it creates before it copies data to the first.
    pub(super) batch_files: usize,
    /// The files of the last batch were cloned fast enough to hold the sharing lock for each clone.
    pub(super) clones_fast: bool,
    /// Entries copied so far.
    pub(super) entries: u64,
}

impl Worker {
    pub(crate) fn new(cx: &CopyContext<'_>) -> Worker {
        Worker {
            copy: CopyWorker::new(cx),
            buffer: Buffer::default(),
            batch_files: 1,
            clones_fast: false,
            entries: 0,
        }
    }
}
