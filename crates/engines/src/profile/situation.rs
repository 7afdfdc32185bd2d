//! The factors, besides the file systems, that determine which variant is the fastest.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::bytes::Bytes;

/// All factors of a choice between two given file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Situation {
    /// The length of the file.
    pub size: SizeClass,
    /// How much of the source is in the page cache.
    pub residency: Residency,
    /// How many files are copied at once.
    pub in_flight: InFlight,
    /// The copy must leave the page cache unchanged.
    pub no_cache: bool,
}

/// The largest length of each class but the last, in bytes. At the start of each class fixed costs
/// have a sixteenth of the weight that they have at the start of the one before.
const LAST_BYTES: [u64; 5] = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20];

/// A copy leaves files up to this length in the page cache, unless the user forbids it.
const CACHED_BYTES_MAX: u64 = 16 << 20;

impl Situation {
    /// Whether a source may be read past the page cache, so that the next reader does not find it
    /// there. A tree of short files is read again sooner than one large file, and the second read
    /// costs a disk more. Short files also profit only on a medium as fast as memory.
    #[must_use]
    pub fn may_read_past_cache(&self) -> bool {
        let is_large = self.size.over_bytes().is_some_and(|bytes| bytes >= CACHED_BYTES_MAX);
        self.no_cache || is_large
    }
}

/// Shorter files are assumed to be in the page cache.
const RESIDENCY_ASKED_OVER_BYTES: u64 = 64 << 10;

/// A range of file lengths with one choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct SizeClass(u8);

impl SizeClass {
    /// All classes, the smallest first.
    pub const ALL: [SizeClass; 6] =
        [SizeClass(0), SizeClass(1), SizeClass(2), SizeClass(3), SizeClass(4), SizeClass(5)];

    /// The class of a file of `bytes`.
    #[must_use]
    pub fn of(bytes: u64) -> SizeClass {
        let index = LAST_BYTES.iter().position(|last| bytes <= *last).unwrap_or(LAST_BYTES.len());
        SizeClass::ALL[index]
    }

    /// Whether the residency of files in this class is determined. The copy of a shorter file takes
    /// hardly longer than the query. If such a file must be read from the medium, all variants take
    /// equally long.
    #[must_use]
    pub fn asks_for_residency(self) -> bool {
        self.over_bytes().is_some_and(|over| over >= RESIDENCY_ASKED_OVER_BYTES)
    }

    /// The index of the class in [`SizeClass::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The length, in bytes, that every file of the class exceeds; `None` for the first class.
    #[must_use]
    pub fn over_bytes(self) -> Option<u64> {
        self.index().checked_sub(1).map(|before| LAST_BYTES[before])
    }

    /// The largest length in it, in bytes; `None` for the last class.
    #[must_use]
    pub fn last_bytes(self) -> Option<u64> {
        LAST_BYTES.get(self.index()).copied()
    }
}

impl fmt::Display for SizeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.over_bytes().map(Bytes), self.last_bytes().map(Bytes)) {
            (None, Some(last)) => write!(f, "up to {last}"),
            (Some(over), Some(last)) => write!(f, "{over} to {last}"),
            (Some(over), None) => write!(f, "over {over}"),
            (None, None) => unreachable!("there is more than one class"),
        }
    }
}

/// A text that is no class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is no class of sizes, expected one of {}", known())]
pub struct NoSuchClass {
    /// The text.
    found: String,
}

fn known() -> String {
    SizeClass::ALL.map(|class| format!("'{class}'")).join(", ")
}

impl FromStr for SizeClass {
    type Err = NoSuchClass;

    fn from_str(text: &str) -> Result<SizeClass, NoSuchClass> {
        let known = SizeClass::ALL.into_iter().find(|class| class.to_string() == text);
        known.ok_or_else(|| NoSuchClass { found: text.to_owned() })
    }
}

impl TryFrom<String> for SizeClass {
    type Error = NoSuchClass;

    fn try_from(text: String) -> Result<SizeClass, NoSuchClass> {
        text.parse()
    }
}

/// How much of a source is in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Residency {
    /// Nearly all of it.
    Resident,
    /// Nearly none of it.
    Absent,
    /// A part of it.
    Mixed,
}

/// A source is resident, or absent, if at most one page in this many is the opposite.
const PAGES_TO_ONE: u64 = 32;

impl Residency {
    /// All values.
    pub const ALL: [Residency; 3] = [Residency::Resident, Residency::Absent, Residency::Mixed];

    /// The residency of a source of which `cached` of `looked_at` pages are in the page cache.
    #[must_use]
    pub fn of(cached: u64, looked_at: u64) -> Residency {
        let few = looked_at / PAGES_TO_ONE;
        if looked_at.saturating_sub(cached) <= few {
            Residency::Resident
        } else if cached <= few {
            Residency::Absent
        } else {
            Residency::Mixed
        }
    }

    /// The name of the residency in the profile.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Residency::Resident => "resident",
            Residency::Absent => "absent",
            Residency::Mixed => "mixed",
        }
    }
}

/// How many files are copied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InFlight {
    /// One file. Idle workers may share it.
    One,
    /// One file in each worker.
    Several,
}

impl InFlight {
    /// All values.
    pub const ALL: [InFlight; 2] = [InFlight::One, InFlight::Several];

    /// The name of the number of copies at once in the profile.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            InFlight::One => "one",
            InFlight::Several => "several",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_a_class_and_every_class_a_name() {
        for (bytes, name) in [
            (0, "up to 4K"),
            (4 << 10, "up to 4K"),
            ((4 << 10) + 1, "4K to 64K"),
            (64 << 10, "4K to 64K"),
            ((64 << 10) + 1, "64K to 1M"),
            (1 << 20, "64K to 1M"),
            ((1 << 20) + 1, "1M to 16M"),
            (16 << 20, "1M to 16M"),
            ((16 << 20) + 1, "16M to 256M"),
            (256 << 20, "16M to 256M"),
            ((256 << 20) + 1, "over 256M"),
            (u64::MAX, "over 256M"),
        ] {
            let class = SizeClass::of(bytes);
            assert_eq!(class.to_string(), name, "{bytes}");
            assert_eq!(name.parse(), Ok(class));
            assert!(class.over_bytes().is_none_or(|over| bytes > over), "{bytes}");
            assert!(class.last_bytes().is_none_or(|last| bytes <= last), "{bytes}");
        }
        let wrong = "16M".parse::<SizeClass>().expect_err("no class");
        let words = "'16M' is no class of sizes, expected one of 'up to 4K', '4K to 64K', ";
        assert!(wrong.to_string().starts_with(words), "{wrong}");
    }

    #[test]
    fn a_single_page_does_not_make_a_file_mixed() {
        for (cached, looked_at, expected) in [
            (0, 0, Residency::Resident),
            (1, 1, Residency::Resident),
            (0, 1, Residency::Absent),
            (1, 2, Residency::Mixed),
            (0, 256, Residency::Absent),
            (8, 256, Residency::Absent),
            (9, 256, Residency::Mixed),
            (247, 256, Residency::Mixed),
            (248, 256, Residency::Resident),
            (300, 256, Residency::Resident),
        ] {
            assert_eq!(Residency::of(cached, looked_at), expected, "{cached} of {looked_at}");
        }
    }
}
