//! The progress of a run, which other threads can read at any time.
//!
//! Each worker has counters of its own, so that counting is a write to memory that no other thread
//! writes to. The reader computes sums and paths.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engines::Meter;

use crate::fs::{DirPath, DisplayPath, Place, join};
use crate::lock::{lock, lock_soon};

/// The progress of one run. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ProgressTracker(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    fine_grained: bool,
    workers: Mutex<Workers>,
}

#[derive(Debug, Default)]
struct Workers {
    running: Vec<Arc<WorkerCounters>>,
    /// The sums of workers that have ended.
    ended: Progress,
}

/// The sums of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Finished entries, copied or not, without directories.
    pub entries: u64,
    /// Bytes of regular files and streams that were copied: data moved or shared, and holes.
    pub bytes: u64,
    /// Bytes of regular files that are not copied: the file was skipped or linked, or has failed.
    pub skipped_bytes: u64,
}

/// A file that is being copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentFile {
    /// The destination.
    pub dst: PathBuf,
    /// Bytes of the source that were copied.
    pub bytes: u64,
    /// The length of the source when it was opened; 0 if it is not known.
    pub bytes_expected: u64,
    /// It does not have its final name yet.
    pub atomic: bool,
}

impl ProgressTracker {
    /// For a reader that needs updates often: engines copy smaller pieces instead of tens of
    /// megabytes in one call.
    #[must_use]
    pub fn fine_grained() -> ProgressTracker {
        ProgressTracker(Arc::new(Shared { fine_grained: true, workers: Mutex::default() }))
    }

    /// The sums so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let workers = lock(&self.0.workers);
        workers.running.iter().fold(workers.ended, |sum, counters| sum.plus(counters.progress()))
    }

    /// The files that are being copied, by the start of their workers.
    #[must_use]
    pub fn current_files(&self) -> Vec<CurrentFile> {
        let workers = lock(&self.0.workers);
        workers
            .running
            .iter()
            .filter_map(|counters| counters.current_file(&lock(&counters.file)))
            .collect()
    }

    /// As [`current_files`](ProgressTracker::current_files), for a thread that cannot go on and may
    /// hold a lock of this: it does not wait for one longer than a tenth of a second, and leaves out
    /// what is locked.
    #[must_use]
    pub fn current_files_at_failure(&self) -> Vec<CurrentFile> {
        let Some(workers) = lock_soon(&self.0.workers) else { return Vec::new() };
        let files = workers.running.iter();
        files.filter_map(|counters| counters.current_file(&*lock_soon(&counters.file)?)).collect()
    }

    pub(crate) fn is_fine_grained(&self) -> bool {
        self.0.fine_grained
    }
}

impl Progress {
    /// The sums of two runs, or of two parts of one.
    #[must_use]
    pub fn plus(self, other: Progress) -> Progress {
        Progress {
            entries: self.entries + other.entries,
            bytes: self.bytes + other.bytes,
            skipped_bytes: self.skipped_bytes + other.skipped_bytes,
        }
    }
}

/// The counters of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    entries: AtomicU64,
    skipped_bytes: AtomicU64,
    pub(crate) meter: Meter,
    file: Mutex<File>,
}

/// The current file. Its path is put together when it is read.
#[derive(Debug, Default)]
struct File {
    busy: bool,
    /// `None` if `name` is the whole path.
    dir: Option<DirPath>,
    /// Reused from file to file.
    name: Vec<u8>,
    bytes_expected: u64,
    atomic: bool,
    /// The meter at its start.
    started_at: u64,
}

impl WorkerCounters {
    fn progress(&self) -> Progress {
        Progress {
            entries: self.entries.load(Ordering::Relaxed),
            bytes: self.meter.get(),
            skipped_bytes: self.skipped_bytes.load(Ordering::Relaxed),
        }
    }

    fn current_file(&self, file: &File) -> Option<CurrentFile> {
        let name = OsStr::from_bytes(&file.name);
        file.busy.then(|| CurrentFile {
            dst: match &file.dir {
                None => Path::new(name).to_owned(),
                Some(dir_path) => join(&dir_path.path(), name),
            },
            bytes: self.meter.get().saturating_sub(file.started_at),
            bytes_expected: file.bytes_expected,
            atomic: file.atomic,
        })
    }
}

/// The counters of a worker; `None` if the run shows no progress.
#[derive(Debug, Default)]
pub(crate) struct WorkerProgress {
    counters: Option<(ProgressTracker, Arc<WorkerCounters>)>,
    /// Bytes of the current entry, and the meter at its start.
    due_bytes: u64,
    started_at: u64,
}

impl WorkerProgress {
    pub(crate) fn new(tracker: Option<&ProgressTracker>) -> WorkerProgress {
        let counters = tracker.map(|tracker| {
            let counters = Arc::new(WorkerCounters::default());
            lock(&tracker.0.workers).running.push(counters.clone());
            (tracker.clone(), counters)
        });
        WorkerProgress { counters, ..WorkerProgress::default() }
    }

    pub(crate) fn counters(&self) -> Option<Arc<WorkerCounters>> {
        self.counters.as_ref().map(|(_, counters)| counters.clone())
    }

    /// Starts an entry of `bytes`.
    pub(crate) fn start_entry(&mut self, bytes: u64) {
        self.due_bytes = bytes;
        self.started_at = self.counters.as_ref().map_or(0, |(_, counters)| counters.meter.get());
    }

    /// Other ranks have copied so many bytes of the entry, and count them.
    pub(crate) fn leave_to_others(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_sub(bytes);
    }

    /// Finishes the entry. Bytes that were not copied count as skipped.
    pub(crate) fn finish_entry(&mut self) {
        let Some((_, counters)) = &self.counters else { return };
        // Only this worker writes the counter.
        counters.entries.store(counters.entries.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let copied = counters.meter.get().saturating_sub(self.started_at);
        let skipped = std::mem::take(&mut self.due_bytes).saturating_sub(copied);
        if skipped > 0 {
            counters.skipped_bytes.fetch_add(skipped, Ordering::Relaxed);
        }
    }

    /// Shows `dst` as the current file until the guard is dropped.
    pub(crate) fn show(
        &self,
        dst: &Place<'_>,
        bytes_expected: u64,
        atomic: bool,
    ) -> Option<CurrentFileGuard> {
        let counters = self.counters()?;
        let mut file = lock(&counters.file);
        file.busy = true;
        file.bytes_expected = bytes_expected;
        file.atomic = atomic;
        file.started_at = counters.meter.get();
        file.name.clear();
        match dst.shown {
            DisplayPath::In(dir_path) => {
                file.name.extend_from_slice(dst.name.to_bytes());
                // Most files are in the directory of the previous one.
                if !file.dir.as_ref().is_some_and(|shown| shown.is(dir_path)) {
                    file.dir = Some(dir_path.clone());
                }
            }
            DisplayPath::Operand(path) => {
                file.name.extend_from_slice(path.as_os_str().as_bytes());
                file.dir = None;
            }
            DisplayPath::Directory(_) => unreachable!("a directory has no data"),
        }
        drop(file);
        Some(CurrentFileGuard(counters))
    }
}

impl Drop for WorkerProgress {
    fn drop(&mut self) {
        let Some((tracker, counters)) = self.counters.take() else { return };
        let mut workers = lock(&tracker.0.workers);
        workers.ended = workers.ended.plus(counters.progress());
        workers.running.retain(|running| !Arc::ptr_eq(running, &counters));
    }
}

/// Shows a current file as long as it lives.
pub(crate) struct CurrentFileGuard(Arc<WorkerCounters>);

impl Drop for CurrentFileGuard {
    fn drop(&mut self) {
        lock(&self.0.file).busy = false;
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::fs::Trust;

    #[test]
    fn a_thread_that_failed_names_the_files_whose_locks_are_free() {
        let tracker = ProgressTracker::default();
        let workers = [(); 2].map(|()| WorkerProgress::new(Some(&tracker)));
        let dir = std::fs::File::open("/").expect("the root");
        let path = Path::new("copy");
        let (shown, trust) = (DisplayPath::Operand(path), Trust::Operand);
        let dst = Place { dir: dir.as_fd(), name: c"copy", shown, trust };
        let _shown = [&workers[0], &workers[1]].map(|worker| worker.show(&dst, 9, false));
        let file = CurrentFile { dst: path.to_owned(), bytes: 0, bytes_expected: 9, atomic: false };
        assert_eq!(tracker.current_files_at_failure(), [file.clone(), file.clone()]);
        let counters = workers[0].counters().expect("it has some");
        let failed_here = lock(&counters.file);
        assert_eq!(tracker.current_files_at_failure(), [file]);
        drop(failed_here);
        let _failed_here = lock(&tracker.0.workers);
        assert_eq!(tracker.current_files_at_failure(), []);
    }
}
