//! The constants of races: how long elimination rounds are, which candidates they drop, and when
//! the final ends. Others are in [`admission`](crate::search::admission) and
//! [`winner`](crate::search::winner).

use crate::search::candidate::LONG_BYTES;

// Elimination rounds.

/// The lengths tried, each only by the candidates that were fast enough on the one before: a byte
/// at a time takes a second for a MiB.
pub(super) const LENGTHS_BYTES: [u64; 4] = [128 << 10, 1 << 20, LONG_BYTES, PIECE_BYTES];

/// The length of a full elimination round. It exceeds the last cache of most processors, and two
/// workers find enough in it to share.
pub(super) const PIECE_BYTES: u64 = 64 << 20;

/// A variant that is slower than the best by this factor in its first runs is dropped at any
/// length. The race would otherwise wait for it.
pub(super) const FAR_SLOWER: f64 = 20.0;

/// Full elimination rounds that the faster candidates run, the first one included.
pub(crate) const ELIMINATION_ROUNDS: u32 = 3;

/// Slower than the best by this factor after two full elimination rounds, a variant runs no more of
/// them.
pub(super) const NOT_CLOSE: f64 = 2.0;

/// The share of the time after which no elimination round is repeated.
pub(super) const ELIMINATION_SHARE: f64 = 0.3;

/// No elimination round may end after this share of the time: short elimination rounds and several
/// final rounds tell more than long elimination rounds alone.
pub(super) const ELIMINATION_SHARE_MAX: f64 = 0.5;

/// The part of the time, one in so many, that a floor may take.
pub(super) const FLOORS_SHARE: u32 = 20;

// A search for a profile.

/// The share of the bytes that the last resort may have moved in place of the variant. It covers
/// the end of a file that is no whole block.
pub(super) const LAST_RESORT_SHARE_MAX: f64 = 0.05;

/// A default or another copier may be dropped after this many rounds: enough for an interval.
pub(super) const BASELINE_ROUNDS: usize = 7;

/// The final rounds of a visit. Rounds that copy the same file at about the same time repeat each
/// other. Later rounds tell more, when the file lies elsewhere in memory and on the medium.
pub(super) const ROUNDS_A_VISIT: u32 = 40;

// How much of the source is copied.

/// The least part of a source that stands for the whole of it: several times the last cache of most
/// processors, and enough for workers to share.
pub(super) const PART_BYTES_MIN: u64 = 256 << 20;

/// As many files stand for all of them, however small they are.
pub(super) const PART_FILES_MIN: usize = 256;

// The final.

/// Rounds that floors run. They do not compete, so they need not be known as precisely.
pub(super) const FLOOR_ROUNDS: u32 = 3;

/// The first rounds, without which there is no verdict, may exceed the time by this share.
pub(super) const OVERTIME: f64 = 0.25;

// The report.

/// A candidate that was slower by no more than this factor in the elimination rounds counts as
/// equally fast there: the rounds are few and short.
pub(super) const AS_WELL: f64 = 1.1;
