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

use crate::lock::lock;
use crate::place::{Place, Shown};
use crate::trail::{Trail, join};

/// A window on a run. Clones look at the same run.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<Room>);

#[derive(Debug, Default)]
struct Room {
    closely: bool,
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    taken: Vec<Arc<Seat>>,
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
    pub passed_bytes: u64,
}

/// A file that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InHand {
    /// The destination.
    pub dst: PathBuf,
    /// How much of the source was gone over.
    pub bytes: u64,
    /// How long the source was when it was opened; 0 where its length says nothing.
    pub bytes_expected: u64,
    /// It is not under its name yet.
    pub staged: bool,
}

impl Activity {
    /// A window for somebody who looks so often that bytes have to move in small pieces, where an
    /// engine would otherwise leave tens of megabytes to one call.
    #[must_use]
    pub fn watched_closely() -> Activity {
        Activity(Arc::new(Room { closely: true, seats: Mutex::default() }))
    }

    /// What was done so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let seats = self.seats();
        seats.taken.iter().fold(seats.before, |sum, seat| sum.plus(seat.progress()))
    }

    /// The files that are being written, the one that was begun first in front.
    #[must_use]
    pub fn in_hand(&self) -> Vec<InHand> {
        let seats = self.seats();
        seats.taken.iter().filter_map(|seat| seat.in_hand()).collect()
    }

    pub(crate) fn is_watched_closely(&self) -> bool {
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
            passed_bytes: self.passed_bytes + other.passed_bytes,
        }
    }
}

/// What one worker shows.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    entries: AtomicU64,
    passed_bytes: AtomicU64,
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
    staged: bool,
    /// The meter when it was begun.
    began_at: u64,
}

#[derive(Debug, Default)]
enum Dir {
    /// The name is the whole path.
    #[default]
    None,
    Trail(Trail),
}

impl Seat {
    fn progress(&self) -> Progress {
        Progress {
            entries: self.entries.load(Ordering::Relaxed),
            bytes: self.meter.get(),
            passed_bytes: self.passed_bytes.load(Ordering::Relaxed),
        }
    }

    fn in_hand(&self) -> Option<InHand> {
        let file = self.file();
        let name = OsStr::from_bytes(&file.name);
        file.busy.then(|| InHand {
            dst: match &file.dir {
                Dir::None => Path::new(name).to_owned(),
                Dir::Trail(trail) => join(&trail.path(), name),
            },
            bytes: self.meter.get().saturating_sub(file.began_at),
            bytes_expected: file.bytes_expected,
            staged: file.staged,
        })
    }

    fn file(&self) -> MutexGuard<'_, File> {
        lock(&self.file)
    }
}

/// A worker's own side of its seat. Without anybody who looks there is none.
#[derive(Debug, Default)]
pub(crate) struct Station {
    seat: Option<(Activity, Arc<Seat>)>,
    /// Bytes that the entry at hand adds to the sum of all, and the meter when it was begun.
    due_bytes: u64,
    began_at: u64,
}

impl Station {
    pub(crate) fn new(activity: Option<&Activity>) -> Station {
        let seat = activity.map(|activity| {
            let seat = Arc::new(Seat::default());
            activity.seats().taken.push(seat.clone());
            (activity.clone(), seat)
        });
        Station { seat, ..Station::default() }
    }

    /// The seat, for as long as a file is at hand.
    pub(crate) fn seat(&self) -> Option<Arc<Seat>> {
        self.seat.as_ref().map(|(_, seat)| seat.clone())
    }

    /// An entry is of so many bytes.
    pub(crate) fn due(&mut self, bytes: u64) {
        self.due_bytes = bytes;
        self.began_at = self.seat.as_ref().map_or(0, |(_, seat)| seat.meter.get());
    }

    /// The entry is done with. What it did not go over, nobody will.
    pub(crate) fn settle(&mut self) {
        let Some((_, seat)) = &self.seat else { return };
        // Only this worker writes there.
        seat.entries.store(seat.entries.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let gone_over = seat.meter.get().saturating_sub(self.began_at);
        let passed = std::mem::take(&mut self.due_bytes).saturating_sub(gone_over);
        if passed > 0 {
            seat.passed_bytes.fetch_add(passed, Ordering::Relaxed);
        }
    }

    /// Shows the destination `dst` as the file at hand until the guard is dropped.
    pub(crate) fn show(&self, dst: &Place<'_>, bytes_expected: u64, staged: bool) -> Option<Shows> {
        let seat = self.seat()?;
        let mut file = seat.file();
        file.busy = true;
        file.bytes_expected = bytes_expected;
        file.staged = staged;
        file.began_at = seat.meter.get();
        file.name.clear();
        match dst.shown {
            Shown::In(trail) => {
                file.name.extend_from_slice(dst.name.to_bytes());
                // Most files are in the directory of the one before.
                if !matches!(&file.dir, Dir::Trail(shown) if shown.is(trail)) {
                    file.dir = Dir::Trail(trail.clone());
                }
            }
            Shown::Operand(path) => {
                file.name.extend_from_slice(path.as_os_str().as_bytes());
                file.dir = Dir::None;
            }
            Shown::Directory(_) => unreachable!("a directory has no data"),
        }
        drop(file);
        Some(Shows(seat))
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        let Some((activity, seat)) = self.seat.take() else { return };
        let mut seats = activity.seats();
        seats.before = seats.before.plus(seat.progress());
        seats.taken.retain(|taken| !Arc::ptr_eq(taken, &seat));
    }
}

/// A file is at hand as long as this lives.
pub(crate) struct Shows(Arc<Seat>);

impl Drop for Shows {
    fn drop(&mut self) {
        self.0.file().busy = false;
    }
}
