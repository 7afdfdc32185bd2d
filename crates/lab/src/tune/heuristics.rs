//! The constants of a search: how its time is divided, how far it goes around the best, and when a
//! situation is settled. Those of each race are in [`race`](crate::race).

// The plan.

/// A case with less than this share of its usual seconds finds no answer. It is left out, so that
/// others have enough time.
pub(super) const SHARE_MIN: f64 = 0.4;

/// With less time, shorter files stand for the long ones.
pub(super) const SECONDS_FOR_LONG_FILES: f64 = 90.0;

/// A source and its copies stay in the page cache up to this share of the memory.
pub(super) const MEMORY_SHARE: f64 = 0.4;

/// The bytes that are left free.
pub(super) const SPARE_BYTES: u64 = 32 << 20;

// The time of a situation, and of later visits.

/// The share of the remaining time that a situation with long runs may use.
pub(super) const MOST: f64 = 0.5;

/// The share of all time that is kept for later visits of each situation.
pub(super) const LATER: f64 = 0.4;

/// No situation is visited again with less time than this, in seconds.
pub(super) const SECONDS_MIN: f64 = 1.0;

/// Runs that a final takes: less time than for so many is extended if it can be.
pub(super) const RUNS_WANTED: u32 = 40;

/// With fewer there is nothing to compare.
pub(super) const RUNS_MIN: u32 = 12;

// Copy slots.

/// The share of the remaining time that making copy slots again may take.
pub(super) const RENEWING: f64 = 0.05;

// The search around the best.

/// The share of a visit's time after which the search around the best ends.
pub(super) const SEARCH_SHARE: f64 = 0.6;

/// How often the search goes on around a new best.
pub(super) const STEPS: u32 = 4;

/// The neighbours of the best variant of another engine are tried too if it is within this factor
/// of the best.
pub(super) const NEARLY: f64 = 1.3;

// The choice.

/// An estimated loss up to this share counts as noise if its interval contains zero. A larger one
/// is more likely real than not.
pub(super) const DOUBTFUL: f64 = 0.05;

/// Nothing is settled before this many visits.
pub(super) const VISITS_TO_SETTLE: u32 = 3;

/// A candidate that is slower by more than this is dropped in the first visit already.
pub(super) const MARGIN_AT_FIRST: f64 = 0.2;

/// The most final rounds. More would not help at any noise within the time that a user waits.
pub(super) const ROUNDS_MAX: u32 = 200;
