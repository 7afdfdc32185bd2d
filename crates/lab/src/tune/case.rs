//! The case that stands for a situation: its file size, its number of files, and its place in the
//! order of measuring.

use engines::Variant;
use engines::profile::{InFlight, Residency, Situation, SizeClass};

use crate::page_cache::state::State;
use crate::words;

/// The case that stands for a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The situation.
    pub situation: Situation,
    /// The length that is measured, about the geometric middle of the class.
    pub file_bytes: u64,
    /// Files of one run, one after another: enough that the clock and what lies between files do
    /// not count.
    pub files: u32,
}

/// For each size class, the smallest first: the file size, the files of a run, and the seconds that
/// a search needs on a machine of usual speed.
const STANDS: [(u64, u32, f64); SizeClass::ALL.len()] = [
    (4 << 10, 128, 2.5),
    (16 << 10, 64, 2.5),
    (256 << 10, 32, 3.0),
    (4 << 20, 4, 4.0),
    (64 << 20, 1, 12.0),
    (320 << 20, 1, 18.0),
];

/// Of the files that stand for a class, the share that does when they are absent: to drop a file
/// from the page cache takes as long as to copy many that are in it.
const ABSENT_SHARE: u32 = 4;

/// Shorter files are written out and dropped from the page cache at once, whichever variant copies
/// them.
const NO_CACHE_BYTES_MIN: u64 = 1 << 20;

/// Shorter files are not worth starting other workers for.
const SHARED_BYTES_MIN: u64 = 1 << 20;

/// From here on most of the time of a copy is the moving of bytes.
const LARGE_BYTES: u64 = 64 << 20;

/// A file of the same class that does in its stead where there is little time.
const LARGE_SHORT_BYTES: u64 = 20 << 20;

/// Copies that are kept in a copy slot, the last one among them, and their bytes in all, at most.
const KEPT_MAX: u64 = 8;
const KEPT_BYTES_MAX: u64 = 64 << 20;

impl Case {
    /// Every case there is, the one that most time is spent in first: large files alone, then trees
    /// of small ones, then the rest.
    pub fn all() -> Vec<Case> {
        let mut all = Vec::new();
        for size in SizeClass::ALL {
            for residency in [Residency::Resident, Residency::Absent] {
                for in_flight in InFlight::ALL {
                    for no_cache in [false, true] {
                        all.push(Case::of(Situation { size, residency, in_flight, no_cache }));
                    }
                }
            }
        }
        all.retain(Case::is_worth_measuring);
        all.sort_by_key(Case::rank);
        all
    }

    /// The case with a shorter file in place of a long one, where its class has one: for a
    /// measurement that has little time.
    #[must_use]
    pub fn shortened(self) -> Case {
        let long = self.file_bytes == LARGE_BYTES;
        Case { file_bytes: if long { LARGE_SHORT_BYTES } else { self.file_bytes }, ..self }
    }

    /// What stands for `situation`.
    pub fn of(situation: Situation) -> Case {
        let (file_bytes, files, _) = STANDS[situation.size.index()];
        let files = match situation.residency {
            Residency::Resident => files,
            Residency::Absent | Residency::Mixed => files.div_ceil(ABSENT_SHARE),
        };
        Case { situation, file_bytes, files }
    }

    /// The state of the page cache before each run.
    pub fn state(&self) -> State {
        match self.situation.residency {
            Residency::Resident => State::Warm,
            Residency::Absent | Residency::Mixed => State::Cold,
        }
    }

    /// How many copies are in flight where `at_once` are as many as there ever will be.
    pub fn slots(&self, at_once: usize) -> usize {
        match self.situation.in_flight {
            InFlight::One => 1,
            InFlight::Several => at_once,
        }
    }

    /// Seconds of a measurement that has as much time as it wants, on a machine of the usual speed.
    pub fn seconds(&self) -> f64 {
        let (_, _, seconds) = STANDS[self.situation.size.index()];
        // Where it is not a single file the slow ones are known from that.
        let alone = self.situation.in_flight == InFlight::One && !self.situation.no_cache;
        let seconds = if self.file_bytes == LARGE_SHORT_BYTES { seconds / 2.0 } else { seconds };
        if alone { seconds } else { 0.7 * seconds }
    }

    /// Bytes that one run copies in each copy slot.
    pub fn slot_bytes(&self) -> u64 {
        self.file_bytes * u64::from(self.files)
    }

    /// How many copies there are at a time in each copy slot: the last one, and those before it. A
    /// copy that is removed gives memory back that the next one takes, still in the processor's
    /// caches, the more so the more alike the two ask for it; a tree that is copied finds none of
    /// that.
    pub fn copies_kept(&self) -> usize {
        #[allow(clippy::cast_possible_truncation)] // At most `KEPT_MAX`.
        let kept = (KEPT_BYTES_MAX / self.slot_bytes().max(1)).clamp(1, KEPT_MAX) as usize;
        kept
    }

    /// Whether workers may share a file.
    pub fn may_share(&self) -> bool {
        self.situation.in_flight == InFlight::One && self.file_bytes >= SHARED_BYTES_MIN
    }

    /// Whether `variant` is worth trying. A copy that leaves nothing in the page cache does best
    /// with engines that bypass it, with `read_write`, or with a copy on the server. Other copies
    /// do not bypass it, so that the next reader finds the file there.
    pub fn may_try(&self, variant: &Variant) -> bool {
        let past = variant.reads_past_cache();
        let around =
            past || ["dontcache", "read_write", "copy_file_range"].contains(&variant.engine.name);
        let shared = variant.workers > 1;
        (around || !self.situation.no_cache)
            && (!past || self.situation.may_read_past_cache())
            && (self.may_share() || !shared)
    }

    /// As `16 MiB to 256 MiB, resident, alone`.
    pub fn words(&self) -> String {
        let Situation { size, residency, in_flight, no_cache } = self.situation;
        let in_flight = match in_flight {
            InFlight::One => "alone",
            InFlight::Several => "several",
        };
        let no_cache = if no_cache { ", --no-cache" } else { "" };
        let lengths = words::lengths(size.over_bytes(), size.last_bytes());
        format!("{lengths}, {}, {in_flight}{no_cache}", residency.name())
    }

    /// Not worth measuring are several huge files at once, which wait for the medium with every
    /// variant, `--no-cache` with small files, and the residency of small files, which no copy
    /// checks.
    fn is_worth_measuring(&self) -> bool {
        let huge = self.situation.size.last_bytes().is_none();
        let several = self.situation.in_flight == InFlight::Several;
        let leaves_nothing = !several && self.file_bytes > NO_CACHE_BYTES_MIN;
        let asked = self.situation.residency == Residency::Resident
            || self.situation.size.asks_for_residency();
        asked && !(huge && several) && (!self.situation.no_cache || leaves_nothing)
    }

    fn rank(&self) -> (u8, usize) {
        let large = self.file_bytes >= LARGE_SHORT_BYTES;
        let huge = self.situation.size.last_bytes().is_none();
        let small = self.file_bytes < SHARED_BYTES_MIN;
        let group = match (self.situation.in_flight, self.situation.no_cache) {
            (_, true) => 5,
            (InFlight::One, _) if large && !huge => 0,
            (InFlight::Several, _) if small => 1,
            (InFlight::One, _) if !small && !huge => 2,
            (InFlight::One, _) if small => 3,
            _ => 4,
        };
        (group, self.situation.size.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_stood_for_by_one_of_its_lengths() {
        for case in Case::all() {
            for case in [case, case.shortened()] {
                assert_eq!(SizeClass::of(case.file_bytes), case.situation.size, "{}", case.words());
            }
        }
    }

    #[test]
    fn every_case_comes_once_and_large_files_come_first() {
        let mut words: Vec<String> = Case::all().iter().map(Case::words).collect();
        assert_eq!(words[0], "16 MiB to 256 MiB, resident, alone");
        assert_eq!(words[1], "16 MiB to 256 MiB, absent, alone");
        assert_eq!(words[2], "up to 4 KiB, resident, several");
        // One file alone of each class, warm, and cold but for the two shortest; several but of the
        // largest; --no-cache from a MiB on.
        let count = (6 + 4) + (5 + 3) + 6;
        assert_eq!(words.len(), count);
        words.sort();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn only_what_can_help_is_tried() {
        let variant = |text: &str| text.parse::<Variant>().expect(text);
        let of = |file_bytes: u64, in_flight, no_cache| {
            let size = SizeClass::of(file_bytes);
            Case::of(Situation { size, residency: Residency::Resident, in_flight, no_cache })
        };
        for (case, text, expected) in [
            (of(64 << 20, InFlight::One, false), "read_write:256K@2", true),
            (of(64 << 20, InFlight::Several, false), "read_write:256K@2", false),
            (of(4096, InFlight::One, false), "read_write:256K@2", false),
            (of(64 << 20, InFlight::One, false), "splice", true),
            (of(64 << 20, InFlight::One, true), "splice", false),
            (of(64 << 20, InFlight::One, true), "copy_file_range", true),
            (of(64 << 20, InFlight::One, true), "io_uring:1M,depth=8,direct", true),
            (of(64 << 20, InFlight::One, true), "dontcache@2", true),
            (of(64 << 20, InFlight::One, false), "direct_read", true),
            (of(16 << 20, InFlight::One, false), "direct_read", false),
            (of(16 << 20, InFlight::One, false), "direct", false),
            (of(16 << 20, InFlight::One, false), "io_uring:1M,direct", false),
            (of(16 << 20, InFlight::One, false), "io_uring:1M", true),
            (of(16 << 20, InFlight::One, true), "direct_read", true),
        ] {
            assert_eq!(case.may_try(&variant(text)), expected, "{}: {text}", case.words());
        }
    }
}
