//! The progress of a copy, as its callback gets it.

use std::time::Duration;

use tree::{CurrentFile, ProgressTracker, Totals};

/// The progress of a copy.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Finished entries, copied or not, without directories. If the copy waits until data is on the medium
    /// (`durable`, `verify`, `no_cache`), entries and bytes count when they are there.
    pub entries: u64,
    /// Bytes of regular files and streams that were copied: data moved or shared, and holes.
    pub bytes: u64,
    /// Bytes of regular files that are not copied: the file was skipped or linked, or has failed.
    pub skipped_bytes: u64,
    /// Bytes that were copied and are not on the medium yet, at most: the kernel counts dirty pages of all
    /// programs together.
    pub unwritten_bytes: u64,
    /// How much there is to copy, as far as it is counted by now. `None` without
    /// [`Copy::count_first`](crate::Copy::count_first), and if a filter leaves out entries.
    pub total: Option<Totals>,
    /// The time since the start.
    pub elapsed: Duration,
    tracker: ProgressTracker,
}

impl Progress {
    pub(crate) fn of(
        tracker: &ProgressTracker,
        total: Option<Totals>,
        elapsed: Duration,
    ) -> Progress {
        let tree::Progress { entries, bytes, skipped_bytes, unwritten_bytes } = tracker.progress();
        let tracker = tracker.clone();
        Progress { entries, bytes, skipped_bytes, unwritten_bytes, total, elapsed, tracker }
    }

    /// The files that are being copied now.
    #[must_use]
    pub fn current_files(&self) -> Vec<CurrentFile> {
        self.tracker.current_files()
    }
}
