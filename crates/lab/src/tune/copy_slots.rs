//! All copy slots. They are made when needed, and made again when their files were dropped from the
//! page cache or have been used for long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use engines::profile::{Residency, SizeClass};

use super::case::Case;
use super::copy_slot::CopySlot;
use super::heuristics::RENEWING;
use crate::error::Error;
use crate::scratch::Scratch;

/// All copy slots there are.
pub(super) struct CopySlots<'l> {
    scratches: (&'l Scratch, &'l Scratch),
    seed: u64,
    made: BTreeMap<Files, Made>,
    /// How often all were made again.
    renewed: u32,
}

/// What the copy slots of a case hold: files of a class, and how many.
type Files = (SizeClass, u32);

#[derive(Default)]
struct Made {
    slots: Vec<CopySlot>,
    /// The time that making them took.
    took: Duration,
    /// The files of the slots were dropped from the page cache meanwhile, and read again as it
    /// came.
    dropped: bool,
}

impl<'l> CopySlots<'l> {
    /// None so far: sources are to be made in the first directory, copies in the second.
    pub(super) fn new(scratches: (&'l Scratch, &'l Scratch), seed: u64) -> CopySlots<'l> {
        CopySlots { scratches, seed, made: BTreeMap::new(), renewed: 0 }
    }

    /// The copy slots for `case`, `number` of them, in a search with so much time left.
    ///
    /// # Errors
    /// When files cannot be made or removed.
    pub(super) fn of(
        &mut self,
        case: &Case,
        number: usize,
        left: Duration,
    ) -> Result<&[CopySlot], Error> {
        let files = (case.situation.size, case.files);
        let wants_dropped = case.situation.residency != Residency::Resident;
        let renew =
            |made: &Made| made.dropped && !wants_dropped && made.took <= left.mul_f64(RENEWING);
        if self.made.get(&files).is_some_and(renew) {
            self.remove(files)?;
        }
        let seed = self.seed ^ u64::from(self.renewed) << 32;
        let made = self.made.entry(files).or_default();
        let started = Instant::now();
        while made.slots.len() < number {
            made.slots.push(CopySlot::make(case, made.slots.len(), self.scratches, seed)?);
        }
        made.took += started.elapsed();
        made.dropped |= wants_dropped;
        Ok(&made.slots[..number])
    }

    /// Makes all files again when they are next needed, if that takes little of the remaining time.
    /// Where a file lies in memory and on the medium matters more than the noise of many runs.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub(super) fn renew(&mut self, left: Duration) -> Result<(), Error> {
        if self.made.values().map(|made| made.took).sum::<Duration>() > left.mul_f64(RENEWING) {
            return Ok(());
        }
        self.renewed += 1;
        let all: BTreeSet<Files> = self.made.keys().copied().collect();
        all.into_iter().try_for_each(|files| self.remove(files))
    }

    fn remove(&mut self, files: Files) -> Result<(), Error> {
        let slots = self.made.remove(&files).map_or_else(Vec::new, |made| made.slots);
        slots.into_iter().try_for_each(CopySlot::remove)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use engines::profile::{InFlight, Situation};

    use super::*;

    #[test]
    fn what_was_dropped_is_made_anew_where_there_is_time() {
        let home = tempfile::tempdir().expect("created");
        let scratch = || Scratch::create(home.path(), "tune").expect("created");
        let (src, dst) = (scratch(), scratch());
        let mut slots = CopySlots::new((&src, &dst), 1);
        let mut file_of = |residency, left_secs| {
            let (in_flight, no_cache) = (InFlight::One, false);
            let situation =
                Situation { size: SizeClass::of(20 << 20), residency, in_flight, no_cache };
            let case = Case::of(situation).shortened();
            let left = Duration::from_secs(left_secs);
            assert_eq!(slots.of(&case, 1, left).expect("copy slots").len(), 1);
            let file = src.path().join(format!("{}-1-0/0000", case.file_bytes));
            let stat = std::fs::metadata(file).expect("looked at");
            (stat.ino(), stat.ctime(), stat.ctime_nsec())
        };
        let first = file_of(Residency::Resident, 1000);
        assert_eq!(file_of(Residency::Resident, 1000), first);
        assert_eq!(file_of(Residency::Absent, 1000), first);
        assert_eq!(file_of(Residency::Resident, 0), first, "there is no time for it");
        let second = file_of(Residency::Resident, 1000);
        assert_ne!(second, first);
        assert_eq!(file_of(Residency::Resident, 1000), second);
        slots.renew(Duration::ZERO).expect("nothing to do");
        assert_eq!(std::fs::read_dir(src.path()).expect("listed").count(), 1);
        slots.renew(Duration::from_secs(1000)).expect("removed");
        assert_eq!(std::fs::read_dir(src.path()).expect("listed").count(), 0);
    }
}
