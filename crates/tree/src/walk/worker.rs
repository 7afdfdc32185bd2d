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
    /// The files before were cloned within the time that the lock for it may be held.
    pub(super) clones_at_once: bool,
    /// Entries met so far.
    pub(super) entries: u64,
}

impl Worker {
    /// The first worker of a run, or one that joins it.
    pub(crate) fn new(cx: &CopyContext<'_>) -> Worker {
        Worker {
            copy: CopyWorker::new(cx),
            buffer: Buffer::default(),
            batch_files: 1,
            clones_at_once: false,
            entries: 0,
        }
    }
}
