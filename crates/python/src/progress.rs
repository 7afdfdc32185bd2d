//! The progress of a copy as a Python object.

use std::time::Duration;

use haulage::events::{self, CurrentFile, ProgressTracker, Totals};
use pyo3::prelude::*;

/// The progress of a copy.
#[pyclass(frozen, get_all, module = "haulage")]
pub(crate) struct Progress {
    /// Finished entries, copied or not, without directories.
    entries: u64,
    /// Bytes of regular files and streams that were copied: data moved or shared, and holes.
    bytes: u64,
    /// Bytes of regular files that are not copied.
    skipped_bytes: u64,
    /// Bytes that were copied and are not on the medium yet, at most.
    unwritten_bytes: u64,
    /// Entries to copy; `None` until all are counted.
    total_entries: Option<u64>,
    /// Bytes to copy; `None` until all are counted.
    total_bytes: Option<u64>,
    /// Seconds since the start.
    elapsed: f64,
    /// The destinations of the files that are being copied now.
    current: Vec<std::path::PathBuf>,
}

impl Progress {
    pub(crate) fn of(
        tracker: &ProgressTracker,
        total: Option<Totals>,
        elapsed: Duration,
    ) -> Progress {
        let events::Progress { entries, bytes, skipped_bytes, unwritten_bytes } =
            tracker.progress();
        let total = total.filter(|total| total.all);
        let current = tracker.current_files();
        Progress {
            entries,
            bytes,
            skipped_bytes,
            unwritten_bytes,
            total_entries: total.map(|total| total.entries),
            total_bytes: total.map(|total| total.bytes),
            elapsed: elapsed.as_secs_f64(),
            current: current.into_iter().map(|CurrentFile { dst, .. }| dst).collect(),
        }
    }
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        let Progress { entries, bytes, elapsed, .. } = self;
        format!("<haulage.Progress entries={entries} bytes={bytes} elapsed={elapsed:.3}>")
    }
}
