//! The constants of a search: how its time is divided, which candidates each stage keeps, and when
//! a situation is settled. Those that races share are in [`admission`](crate::search::admission).

use std::time::Duration;

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

/// A situation may exceed its time by this share for the rounds without which it has no answer.
pub(super) const GRACE: f64 = 0.5;

/// The share of the remaining time that a situation with long runs may use.
pub(super) const MOST: f64 = 0.5;

/// The share of all time that is kept for later visits of each situation.
pub(super) const LATER: f64 = 0.4;

/// No situation is visited again with less time than this, in seconds.
pub(super) const SECONDS_MIN: f64 = 1.0;

// Copy slots.

/// The share of the remaining time that making copy slots again may take.
pub(super) const RENEWING: f64 = 0.05;

// One run.

/// The start of a source, in bytes; only much longer sources have one.
pub(super) const SHORT_BYTES: u64 = 1 << 20;
pub(super) const LONG_BYTES: u64 = 4 << 20;

/// The share of the bytes that the last resort may have moved in place of the variant. It covers
/// the end of a file that is no whole block.
pub(super) const LAST_RESORT_SHARE_MAX: f64 = 0.05;

// Elimination rounds.

/// The shares of a situation's time after which copies of the start of a source end, the
/// elimination rounds, and the search around the best.
pub(super) const SHORT_SHARE: f64 = 0.2;
pub(super) const ELIMINATION_SHARE: f64 = 0.45;
pub(super) const SEARCH_SHARE: f64 = 0.6;

/// Runs that a search takes: less time than for so many is extended if it can be.
pub(super) const RUNS_WANTED: u32 = 40;

/// Elimination rounds of all candidates.
pub(super) const ELIMINATION_ROUNDS: usize = 3;

/// How often each runs in an elimination round, where there is time.
pub(super) const REPEATS: usize = 3;

/// How often the search goes on around a new best.
pub(super) const STEPS: usize = 4;

// Which candidates are kept.

/// After each elimination round, candidates slower than the best by the factor are dropped, and
/// then the slowest until no more than the number are left. The last row holds for all later
/// rounds.
pub(super) const KEPT_AFTER: [(f64, usize); 3] = [(3.0, 16), (1.6, 8), (1.25, 5)];

/// How close to the best a candidate of the final has to be, and how many reach the final at most.
pub(super) const FINALISTS: (f64, usize) = (1.2, 4);

/// The neighbours of the best variant of another engine are tried too if it is within this factor
/// of the best.
pub(super) const NEARLY: f64 = 1.3;

/// A baseline may be dropped after this many rounds: enough for an interval.
pub(super) const BASELINE_ROUNDS: usize = 7;

/// An estimated loss up to this share counts as noise if its interval contains zero. A larger one
/// is more likely real than not.
pub(super) const DOUBTFUL: f64 = 0.05;

// The final.

/// With fewer there is nothing to compare.
pub(super) const RUNS_MIN: u32 = 12;

/// The final rounds of a visit. Rounds that copy the same file at about the same time repeat each
/// other. Later rounds tell more, when the file lies elsewhere in memory and on the medium.
pub(super) const ROUNDS_A_VISIT: u32 = 10;

/// A visit with short rounds has more: up to this many within this time.
pub(super) const SHORT_ROUNDS_A_VISIT: u32 = 40;
pub(super) const SHORT_VISIT: Duration = Duration::from_secs(1);

/// Nothing is settled before this many visits.
pub(super) const VISITS_TO_SETTLE: u32 = 3;

/// A candidate that is slower by more than this is dropped in the first visit already.
pub(super) const MARGIN_AT_FIRST: f64 = 0.2;

/// The most final rounds. More would not help at any noise within the time that a user waits.
pub(super) const ROUNDS_MAX: u32 = 200;

/// After this many runs that missed the page cache state, it counts as out of reach.
pub(super) const MISSES_MAX: u32 = 3;
