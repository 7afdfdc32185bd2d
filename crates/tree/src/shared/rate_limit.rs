//! `--limit-rate`: one rate for all workers.
//!
//! Each moved piece shifts the time at which the next may start by the time that its bytes take at
//! the rate. So workers need not know of each other (docs/design/rate-limit.md).

use std::num::NonZeroU64;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// The time of a piece at the given rate, and the longest sleep without a check for an interrupt.
const SLICE: Duration = Duration::from_millis(1000 / SLICES_PER_SECOND);
const SLICES_PER_SECOND: u64 = 20;

/// A smaller piece is not worth a system call. Pieces are multiples, since direct I/O needs whole
/// blocks.
const PIECE_BYTES_MIN: u64 = 4096;

/// The rate of all workers.
pub(crate) struct RateLimit {
    bytes_per_second: NonZeroU64,
    /// When the bytes so far would have been moved at the given rate.
    next_at: Mutex<Instant>,
}

impl RateLimit {
    pub(crate) fn new(bytes_per_second: NonZeroU64) -> RateLimit {
        RateLimit { bytes_per_second, next_at: Mutex::new(Instant::now()) }
    }

    /// Bytes to move between two waits, at most; whole pages.
    pub(crate) fn piece_bytes(&self) -> u64 {
        let bytes = (self.bytes_per_second.get() / SLICES_PER_SECOND).max(PIECE_BYTES_MIN);
        bytes - bytes % PIECE_BYTES_MIN
    }

    /// Waits until the next piece may start, or `stop` returns true.
    pub(crate) fn wait(&self, stop: impl Fn() -> bool) {
        while !stop() {
            let left = lock(&self.next_at).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    /// Records moved bytes.
    pub(crate) fn charge(&self, bytes: u64) {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second.get());
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut next_at = lock(&self.next_at);
        // A pause is made up for by at most one slice; otherwise a burst would follow it.
        let from = Instant::now().checked_sub(SLICE).map_or(*next_at, |early| next_at.max(early));
        *next_at = from.checked_add(cost).unwrap_or(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_time_that_they_have_at_the_rate() {
        let limit = RateLimit::new(NonZeroU64::new(4 << 20).expect("a rate"));
        let (before, due) = (Instant::now(), Duration::from_secs(60));
        (0..15).for_each(|_| limit.charge(16 << 20));
        let next_at = *lock(&limit.next_at);
        assert!(next_at + SLICE >= before + due && next_at <= Instant::now() + due);
    }
}
