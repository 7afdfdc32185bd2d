//! The progress of a run, which other threads can read at any time.
//!
//! Each worker has counters of its own, so that counting is a write to memory that no other thread
//! writes to. The reader computes sums and paths.
//!
//! If the run waits until data is on the medium, data counts when it is there. A worker knows that of
//! whole files and ranges; in between the reader asks the kernel how much is dirty (docs/design/progress.md).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engines::Meter;
use serde::{Deserialize, Serialize};

use crate::fs::dirty_pages::{device_bytes, dirty_bytes};
use crate::fs::{DirPath, DisplayPath, Place, join};
use crate::lock::{OnDrop, lock, lock_soon};
use crate::request::Options;

/// The progress of one run. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ProgressTracker(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    fine_grained: bool,
    workers: Mutex<Workers>,
    seen: Mutex<Seen>,
}

/// What the last reader has seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Bytes of the copy on the medium. What other programs write does not reduce them.
    written: u64,
    /// Bytes that were written to the device.
    device: Option<u64>,
}

#[derive(Debug, Default)]
struct Workers {
    running: Vec<Arc<WorkerCounters>>,
    /// The sums of workers that have ended.
    ended: Counts,
}

/// The sums of a run so far. If the run waits until data is on the medium ([`Options::durable`],
/// [`Options::verify`], [`Options::no_cache`]), entries and bytes count when they are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Finished entries, copied or not, without directories.
    pub entries: u64,
    /// Bytes of regular files and streams that were copied: data moved or shared, and holes. With
    /// [`Options::verify`] a sixth of each counts when it was read back.
    pub bytes: u64,
    /// Bytes of regular files that are not copied: the file was skipped or linked, or has failed.
    pub skipped_bytes: u64,
    /// Bytes that were copied and are not on the medium yet, at most: the kernel counts dirty pages of all
    /// programs together. 0 on a file system whose dirty pages it does not count, unless the run waits.
    pub unwritten_bytes: u64,
}

/// A file that is being copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentFile {
    /// The destination.
    pub dst: PathBuf,
    /// Bytes of the source that were copied.
    pub bytes: u64,
    /// Copied bytes that the run waits for and that are not on the medium yet.
    pub unwritten_bytes: u64,
    /// The length of the source when it was opened; 0 if it is not known.
    pub bytes_expected: u64,
    /// The destination does not have its final name yet.
    pub atomic: bool,
}

impl ProgressTracker {
    /// For a reader that needs updates often: engines copy smaller pieces instead of tens of
    /// megabytes in one call.
    #[must_use]
    pub fn fine_grained() -> ProgressTracker {
        ProgressTracker(Arc::new(Shared { fine_grained: true, ..Shared::default() }))
    }

    /// The sums so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let counts = {
            let workers = lock(&self.0.workers);
            let mut counts = workers.ended;
            workers.running.iter().for_each(|worker| worker.add_to(&mut counts));
            counts
        };
        let device = if counts.unknown_paged > 0 { device_bytes(counts.device) } else { None };
        counts.progress(dirty_bytes, &mut lock(&self.0.seen), device)
    }

    /// The files that are being copied, by the start of their workers.
    #[must_use]
    pub fn current_files(&self) -> Vec<CurrentFile> {
        let written = lock(&self.0.seen).written;
        let workers = lock(&self.0.workers);
        let copied =
            workers.running.iter().fold(workers.ended.copied, |sum, of| sum + of.meter.get());
        let unwritten = copied.saturating_sub(written);
        workers
            .running
            .iter()
            .filter_map(|counters| counters.current_file(&lock(&counters.file), unwritten))
            .collect()
    }

    /// As [`current_files`](ProgressTracker::current_files), for a thread that cannot go on and may
    /// hold a lock of this: it does not wait for one longer than a tenth of a second, and leaves out
    /// what is locked.
    #[must_use]
    pub fn current_files_at_failure(&self) -> Vec<CurrentFile> {
        let Some(workers) = lock_soon(&self.0.workers) else { return Vec::new() };
        let files = workers.running.iter();
        files
            .filter_map(|counters| counters.current_file(&*lock_soon(&counters.file)?, 0))
            .collect()
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
            unwritten_bytes: self.unwritten_bytes + other.unwritten_bytes,
        }
    }
}

/// What workers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    entries: u64,
    /// Entries whose data is not known to be on the medium.
    held_entries: u64,
    copied: u64,
    skipped: u64,
    /// Bytes of data that were written to pages that the kernel counts while they are dirty.
    paged: u64,
    /// Of `copied`, what is not known to be on the medium.
    unknown: u64,
    /// Of `unknown`, what is in such pages as long as it is not there.
    unknown_paged: u64,
    /// Of `copied`, what was read back.
    verified: u64,
    /// As of a worker.
    device: u64,
    waits: bool,
    verifies: bool,
}

/// Reading a byte back counts for one part in so many of the work of copying it. Media write several times
/// slower than they read, or as fast; before the first byte is read back, nobody knows.
const VERIFY_SHARE: u64 = 6;

impl Counts {
    /// What `dirty`, the bytes of the whole system that are not on a medium, and `device`, the bytes that were
    /// written to the device, make of the counts.
    fn progress(
        self,
        dirty: impl FnOnce() -> Option<u64>,
        seen: &mut Seen,
        device: Option<u64>,
    ) -> Progress {
        let paged = if self.waits { self.unknown_paged } else { self.paged };
        let dirty = if paged > 0 { dirty() } else { None };
        if !self.waits {
            let unwritten_bytes = dirty.map_or(0, |dirty| dirty.min(paged));
            let Counts { entries, copied: bytes, skipped: skipped_bytes, .. } = self;
            return Progress { entries, bytes, skipped_bytes, unwritten_bytes };
        }
        let at_least = self.copied.saturating_sub(dirty.map_or(paged, |dirty| dirty.min(paged)));
        // Pages may stay dirty after their data was written: for seconds, until ext4 has committed its journal.
        let more = device.zip(seen.device).map_or(0, |(now, before)| now.saturating_sub(before));
        let written = (seen.written + more).clamp(at_least, self.copied);
        *seen = Seen { written, device };
        let unwritten = self.copied - written;
        // At least one entry, as long as one is not known to be there.
        let held = u128::from(self.held_entries) * u128::from(unwritten) / u128::from(paged.max(1));
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        Progress {
            entries: self.entries - held.max(self.held_entries.min(1)),
            bytes: match self.verifies {
                true => written - written / VERIFY_SHARE + self.verified / VERIFY_SHARE,
                false => written,
            },
            skipped_bytes: self.skipped,
            unwritten_bytes: unwritten + self.unknown.saturating_sub(paged),
        }
    }
}

/// The counters of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    entries: AtomicU64,
    held_entries: AtomicU64,
    skipped_bytes: AtomicU64,
    pub(crate) meter: Meter,
    paged: AtomicU64,
    /// Of the meter, what is known to be on the medium.
    written: AtomicU64,
    verified: AtomicU64,
    /// The device number of the last destination, if the kernel counts its dirty pages; else 0.
    device: AtomicU64,
    waits: bool,
    verifies: bool,
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
    /// What was known to be on the medium at its start.
    written_at_start: u64,
}

impl WorkerCounters {
    fn add_to(&self, sum: &mut Counts) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let copied = self.meter.get();
        let unknown = if self.waits { copied.saturating_sub(get(&self.written)) } else { 0 };
        let device = get(&self.device);
        // Read last: a worker first counts an entry, then that it is held.
        let held_entries = get(&self.held_entries);
        sum.held_entries += held_entries;
        sum.entries += get(&self.entries).max(held_entries);
        sum.copied += copied;
        sum.skipped += get(&self.skipped_bytes);
        sum.paged += get(&self.paged);
        sum.unknown += unknown;
        sum.unknown_paged += if device != 0 { unknown } else { 0 };
        sum.verified += if self.verifies { get(&self.verified) } else { 0 };
        sum.device = sum.device.max(device);
        sum.waits |= self.waits;
        sum.verifies |= self.verifies;
    }

    /// The data of a file goes to a file system with this device number; `None` if the kernel does not count
    /// its dirty pages.
    pub(crate) fn start_data(&self, device: Option<u64>) {
        self.device.store(device.unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts data that was moved.
    pub(crate) fn moved(&self, bytes: u64) {
        if self.device.load(Ordering::Relaxed) != 0 {
            self.paged.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// So many bytes more are known to be on the medium.
    pub(crate) fn wrote(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes more were read back.
    pub(crate) fn verified(&self, bytes: u64) {
        self.verified.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The current file, if not more than `unwritten` bytes of all files are not on the medium.
    fn current_file(&self, file: &File, unwritten: u64) -> Option<CurrentFile> {
        let name = OsStr::from_bytes(&file.name);
        file.busy.then(|| CurrentFile {
            dst: match &file.dir {
                None => Path::new(name).to_owned(),
                Some(dir_path) => join(&dir_path.path(), name),
            },
            bytes: self.meter.get().saturating_sub(file.started_at),
            unwritten_bytes: self.unknown_of(file).min(unwritten),
            bytes_expected: file.bytes_expected,
            atomic: file.atomic,
        })
    }

    /// Bytes of the current file that the run waits for and that are not known to be on the medium.
    fn unknown_of(&self, file: &File) -> u64 {
        if !self.waits || self.device.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let written = self.written.load(Ordering::Relaxed).saturating_sub(file.written_at_start);
        let copied = self.meter.get().saturating_sub(file.started_at);
        copied.saturating_sub(written)
    }
}

/// The counters of a worker; `None` if the run shows no progress.
#[derive(Debug, Default)]
pub(crate) struct WorkerProgress {
    counters: Option<(ProgressTracker, Arc<WorkerCounters>)>,
    /// Bytes of the current entry, and the meter at its start.
    due_bytes: u64,
    started_at: u64,
    /// The current entry is held: its data is not known to be on the medium when it is finished.
    holds: bool,
    /// Bytes of finished entries that are held.
    held_bytes: u64,
}

impl WorkerProgress {
    pub(crate) fn new(tracker: Option<&ProgressTracker>, options: &Options) -> WorkerProgress {
        let counters = tracker.map(|tracker| {
            let counters = Arc::new(WorkerCounters {
                waits: options.waits_for_medium(),
                verifies: options.verify,
                ..WorkerCounters::default()
            });
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

    /// Partners have copied so many bytes of the entry, and count them.
    pub(crate) fn leave_to_others(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_sub(bytes);
    }

    /// Holds the entry back until [`release_held`](WorkerProgress::release_held): it will be synced.
    pub(crate) fn hold(&mut self) {
        self.holds = true;
    }

    /// All entries so far were synced, and their data is on the medium.
    pub(crate) fn release_held(&mut self) {
        (self.holds, self.held_bytes) = (false, 0);
        if let Some((_, counters)) = &self.counters {
            counters.held_entries.store(0, Ordering::Relaxed);
            counters.written.store(counters.meter.get(), Ordering::Relaxed);
        }
    }

    /// Finishes the entry. Bytes that were not copied count as skipped. The last `dropping_bytes` of the
    /// worker are being written (`--no-cache`).
    pub(crate) fn finish_entry(&mut self, dropping_bytes: u64) {
        let holds = std::mem::take(&mut self.holds);
        let Some((_, counters)) = &self.counters else { return };
        // Only this worker writes the counters.
        let add =
            |count: &AtomicU64| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        add(&counters.entries);
        let metered = counters.meter.get();
        if holds {
            add(&counters.held_entries);
            self.held_bytes = metered.saturating_sub(counters.written.load(Ordering::Relaxed));
        } else {
            let unwritten = self.held_bytes.max(dropping_bytes);
            counters.written.store(metered.saturating_sub(unwritten), Ordering::Relaxed);
        }
        counters.verified.store(metered, Ordering::Relaxed);
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
    ) -> Option<OnDrop<impl FnMut() + use<>>> {
        let counters = self.counters()?;
        let mut file = lock(&counters.file);
        file.busy = true;
        file.bytes_expected = bytes_expected;
        file.atomic = atomic;
        file.started_at = counters.meter.get();
        file.written_at_start = counters.written.load(Ordering::Relaxed);
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
        Some(OnDrop(move || lock(&counters.file).busy = false))
    }
}

impl Drop for WorkerProgress {
    fn drop(&mut self) {
        let Some((tracker, counters)) = self.counters.take() else { return };
        let mut workers = lock(&tracker.0.workers);
        counters.add_to(&mut workers.ended);
        workers.running.retain(|running| !Arc::ptr_eq(running, &counters));
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
        let options = Options::default();
        let workers = [(); 2].map(|()| WorkerProgress::new(Some(&tracker), &options));
        let dir = std::fs::File::open("/").expect("opened");
        let path = Path::new("copy");
        let (shown, trust) = (DisplayPath::Operand(path), Trust::Operand);
        let dst = Place { dir: dir.as_fd(), name: c"copy", shown, trust };
        let _shown = [&workers[0], &workers[1]].map(|worker| worker.show(&dst, 9, false));
        let file = CurrentFile {
            dst: path.to_owned(),
            bytes: 0,
            unwritten_bytes: 0,
            bytes_expected: 9,
            atomic: false,
        };
        assert_eq!(tracker.current_files_at_failure(), [file.clone(), file.clone()]);
        let counters = workers[0].counters().expect("it has some");
        let failed_here = lock(&counters.file);
        assert_eq!(tracker.current_files_at_failure(), [file]);
        drop(failed_here);
        let _failed_here = lock(&tracker.0.workers);
        assert_eq!(tracker.current_files_at_failure(), []);
    }

    const MIB: u64 = 1 << 20;

    /// 60 MiB of 100 were copied, in 30 files.
    fn counts(waits: bool, unknown_paged: u64) -> Counts {
        Counts {
            entries: 30,
            held_entries: 10,
            copied: 60 * MIB,
            paged: 50 * MIB,
            unknown: 20 * MIB,
            unknown_paged,
            waits,
            ..Counts::default()
        }
    }

    #[test]
    fn what_is_dirty_is_not_done_if_the_run_waits_for_it() {
        for (waits, unknown_paged, dirty, expected) in [
            // It does not wait.
            (false, 0, Some(80), (30, 60, 50)),
            (false, 0, Some(8), (30, 60, 8)),
            (false, 0, None, (30, 60, 0)),
            // Other programs have more that is dirty.
            (true, 20, Some(80), (20, 40, 20)),
            (true, 20, Some(10), (25, 50, 10)),
            // All is written, and the sync has not ended.
            (true, 20, Some(0), (29, 60, 0)),
            // Nobody tells.
            (true, 20, None, (20, 40, 20)),
            (true, 0, Some(80), (29, 60, 20)),
        ] {
            let counts = counts(waits, unknown_paged * MIB);
            let Progress { entries, bytes, unwritten_bytes, .. } =
                counts.progress(|| dirty.map(|dirty| dirty * MIB), &mut Seen::default(), None);
            let shown = (entries, bytes / MIB, unwritten_bytes / MIB);
            assert_eq!(shown, expected, "{waits} {unknown_paged} {dirty:?}");
        }
    }

    /// What the device has written counts while pages stay dirty, and what was shown is not taken back.
    #[test]
    fn the_device_tells_what_it_has_written() {
        let mut seen = Seen::default();
        for (dirty, device, expected) in [
            (20, Some(1000), 40),
            (20, Some(1003), 43),
            (20, Some(1005), 45),
            (12, Some(1006), 48),
            (20, None, 48),
            (20, Some(1090), 48),
            (20, Some(1190), 60),
        ] {
            let device = device.map(|device| device * MIB);
            let progress = counts(true, 20 * MIB).progress(|| Some(dirty * MIB), &mut seen, device);
            assert_eq!(progress.bytes / MIB, expected, "{dirty} {device:?}");
            assert_eq!(progress.unwritten_bytes, 60 * MIB - progress.bytes);
        }
    }

    #[test]
    fn a_byte_is_done_when_it_was_read_back() {
        for (verified, expected) in [(0, 50), (30, 55), (60, 60)] {
            let counts = Counts {
                copied: 60 * MIB,
                verified: verified * MIB,
                waits: true,
                verifies: true,
                ..Counts::default()
            };
            let progress = counts.progress(|| None, &mut Seen::default(), None);
            assert_eq!(progress.bytes / MIB, expected, "{verified}");
        }
    }

    #[test]
    fn a_held_entry_is_finished_when_it_is_synced() {
        let tracker = ProgressTracker::default();
        let options = Options { durable: true, ..Options::default() };
        let mut worker = WorkerProgress::new(Some(&tracker), &options);
        let counters = worker.counters().expect("it has some");
        // tmpfs has no dirty pages, so that nothing but the sync tells.
        counters.start_data(None);
        for _ in 0..2 {
            worker.start_entry(5);
            counters.meter.add(5);
            worker.hold();
            worker.finish_entry(0);
        }
        let shown =
            |progress: Progress| (progress.entries, progress.bytes, progress.unwritten_bytes);
        assert_eq!(shown(tracker.progress()), (1, 10, 10));
        worker.release_held();
        assert_eq!(shown(tracker.progress()), (2, 10, 0));
        // An entry that needs no sync.
        worker.start_entry(5);
        worker.finish_entry(0);
        assert_eq!(tracker.progress().skipped_bytes, 5);
        assert_eq!(shown(tracker.progress()), (3, 10, 0));
        drop(worker);
        assert_eq!(shown(tracker.progress()), (3, 10, 0));
    }
}
