//! What a run is doing at the moment, for whoever looks on from another thread.
//!
//! Each worker has a seat of its own, so that telling costs it no more than writing to memory that
//! nobody else writes to. Sums and paths are made by the one who looks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use engines::Meter;

use crate::fs::{DirPath, DisplayPath, Place, join};
use crate::lock::lock;

/// A window on a run. Clones look at the same run.
#[derive(Clone, Debug, Default)]
pub struct ProgressTracker(Arc<Room>);

#[derive(Debug, Default)]
struct Room {
    closely: bool,
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    taken: Vec<Arc<WorkerCounters>>,
    /// What those did who have left.
    before: Progress,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries done with, whatever came of them; directories not counted.
    pub entries: u64,
    /// Bytes of regular files and streams that were gone over: data moved or shared, and holes.
    pub bytes: u64,
    /// Bytes of regular files that need not be gone over any more: they were skipped, linked, or
    /// the file has failed.
    pub skipped_bytes: u64,
}

/// A file that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentFile {
    /// The destination.
    pub dst: PathBuf,
    /// How much of the source was gone over.
    pub bytes: u64,
    /// How long the source was when it was opened; 0 where its length says nothing.
    pub bytes_expected: u64,
    /// It is not under its name yet.
    pub atomic: bool,
}

impl ProgressTracker {
    /// A window for somebody who looks so often that bytes have to move in small pieces, where an
    /// engine would otherwise leave tens of megabytes to one call.
    #[must_use]
    pub fn fine_grained() -> ProgressTracker {
        ProgressTracker(Arc::new(Room { closely: true, seats: Mutex::default() }))
    }

    /// What was done so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let seats = self.seats();
        seats.taken.iter().fold(seats.before, |sum, counters| sum.plus(counters.progress()))
    }

    /// The files that are being written, the one that was begun first in front.
    #[must_use]
    pub fn current_files(&self) -> Vec<CurrentFile> {
        let seats = self.seats();
        seats.taken.iter().filter_map(|counters| counters.current_file()).collect()
    }

    pub(crate) fn is_fine_grained(&self) -> bool {
        self.0.closely
    }

    /// Whoever panics here leaves sums that are right but for its own.
    fn seats(&self) -> MutexGuard<'_, Seats> {
        lock(&self.0.seats)
    }
}

impl Progress {
    fn plus(self, other: Progress) -> Progress {
        Progress {
            entries: self.entries + other.entries,
            bytes: self.bytes + other.bytes,
            skipped_bytes: self.skipped_bytes + other.skipped_bytes,
        }
    }
}

/// What one worker shows.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    entries: AtomicU64,
    skipped_bytes: AtomicU64,
    pub(crate) meter: Meter,
    file: Mutex<File>,
}

/// The file at hand, as far as a path can be made of it when somebody wants one.
#[derive(Debug, Default)]
struct File {
    busy: bool,
    dir: Dir,
    /// Kept from file to file, for its memory.
    name: Vec<u8>,
    bytes_expected: u64,
    atomic: bool,
    /// The meter when it was begun.
    began_at: u64,
}

#[derive(Debug, Default)]
enum Dir {
    /// The name is the whole path.
    #[default]
    None,
    DirPath(DirPath),
}

impl WorkerCounters {
    fn progress(&self) -> Progress {
        Progress {
            entries: self.entries.load(Ordering::Relaxed),
            bytes: self.meter.get(),
            skipped_bytes: self.skipped_bytes.load(Ordering::Relaxed),
        }
    }

    fn current_file(&self) -> Option<CurrentFile> {
        let file = self.file();
        let name = OsStr::from_bytes(&file.name);
        file.busy.then(|| CurrentFile {
            dst: match &file.dir {
                Dir::None => Path::new(name).to_owned(),
                Dir::DirPath(dir_path) => join(&dir_path.path(), name),
            },
            bytes: self.meter.get().saturating_sub(file.began_at),
            bytes_expected: file.bytes_expected,
            atomic: file.atomic,
        })
    }

    fn file(&self) -> MutexGuard<'_, File> {
        lock(&self.file)
    }
}

/// A worker's own side of its seat. Without anybody who looks there is none.
#[derive(Debug, Default)]
pub(crate) struct WorkerProgress {
    counters: Option<(ProgressTracker, Arc<WorkerCounters>)>,
    /// Bytes that the entry at hand adds to the sum of all, and the meter when it was begun.
    due_bytes: u64,
    began_at: u64,
}

impl WorkerProgress {
    pub(crate) fn new(activity: Option<&ProgressTracker>) -> WorkerProgress {
        let counters = activity.map(|activity| {
            let counters = Arc::new(WorkerCounters::default());
            activity.seats().taken.push(counters.clone());
            (activity.clone(), counters)
        });
        WorkerProgress { counters, ..WorkerProgress::default() }
    }

    /// The seat, for as long as a file is at hand.
    pub(crate) fn counters(&self) -> Option<Arc<WorkerCounters>> {
        self.counters.as_ref().map(|(_, counters)| counters.clone())
    }

    /// An entry is of so many bytes.
    pub(crate) fn due(&mut self, bytes: u64) {
        self.due_bytes = bytes;
        self.began_at = self.counters.as_ref().map_or(0, |(_, counters)| counters.meter.get());
    }

    /// The entry is done with. What it did not go over, nobody will.
    pub(crate) fn settle(&mut self) {
        let Some((_, counters)) = &self.counters else { return };
        // Only this worker writes there.
        counters.entries.store(counters.entries.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let gone_over = counters.meter.get().saturating_sub(self.began_at);
        let passed = std::mem::take(&mut self.due_bytes).saturating_sub(gone_over);
        if passed > 0 {
            counters.skipped_bytes.fetch_add(passed, Ordering::Relaxed);
        }
    }

    /// Shows the destination `dst` as the file at hand until the guard is dropped.
    pub(crate) fn show(
        &self,
        dst: &Place<'_>,
        bytes_expected: u64,
        atomic: bool,
    ) -> Option<CurrentFileGuard> {
        let counters = self.counters()?;
        let mut file = counters.file();
        file.busy = true;
        file.bytes_expected = bytes_expected;
        file.atomic = atomic;
        file.began_at = counters.meter.get();
        file.name.clear();
        match dst.shown {
            DisplayPath::In(dir_path) => {
                file.name.extend_from_slice(dst.name.to_bytes());
                // Most files are in the directory of the one before.
                if !matches!(&file.dir, Dir::DirPath(shown) if shown.is(dir_path)) {
                    file.dir = Dir::DirPath(dir_path.clone());
                }
            }
            DisplayPath::Operand(path) => {
                file.name.extend_from_slice(path.as_os_str().as_bytes());
                file.dir = Dir::None;
            }
            DisplayPath::Directory(_) => unreachable!("a directory has no data"),
        }
        drop(file);
        Some(CurrentFileGuard(counters))
    }
}

impl Drop for WorkerProgress {
    fn drop(&mut self) {
        let Some((activity, counters)) = self.counters.take() else { return };
        let mut seats = activity.seats();
        seats.before = seats.before.plus(counters.progress());
        seats.taken.retain(|taken| !Arc::ptr_eq(taken, &counters));
    }
}

/// A file is at hand as long as this lives.
pub(crate) struct CurrentFileGuard(Arc<WorkerCounters>);

impl Drop for CurrentFileGuard {
    fn drop(&mut self) {
        self.0.file().busy = false;
    }
}
