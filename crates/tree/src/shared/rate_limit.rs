//! `--limit-rate`: one budget of bytes for all workers.
//!
//! Whoever has moved a piece pays for it afterwards, with the bytes that it really had, and whoever
//! is about to move one waits until all before it is paid off. So no worker needs to know how many
//! there are, and a file that ends early costs what it has.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// The longest that anybody sleeps without a look at whether to stop, and what a piece takes at the
/// rate asked for.
const SLICE: Duration = Duration::from_millis(1000 / SLICES_PER_SECOND);
const SLICES_PER_SECOND: u64 = 20;

/// Less is not worth a system call. A piece is a multiple, since direct I/O needs whole blocks.
const PIECE_BYTES_MIN: u64 = 4096;

/// Keeps the rate of all workers together.
pub(crate) struct RateLimit {
    bytes_per_second: NonZeroU64,
    /// When all that was moved is paid off.
    paid_at: Mutex<Instant>,
}

impl RateLimit {
    pub(crate) fn new(bytes_per_second: NonZeroU64) -> RateLimit {
        RateLimit { bytes_per_second, paid_at: Mutex::new(Instant::now()) }
    }

    /// The most bytes to move between two waits, whole pages.
    pub(crate) fn piece_bytes(&self) -> u64 {
        let bytes = (self.bytes_per_second.get() / SLICES_PER_SECOND).max(PIECE_BYTES_MIN);
        bytes - bytes % PIECE_BYTES_MIN
    }

    /// Waits until more may be moved, or `stop` says that nothing is to be.
    pub(crate) fn wait(&self, stop: impl Fn() -> bool) {
        while !stop() {
            let left = self.paid_at().saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    /// So many bytes were moved.
    pub(crate) fn charge(&self, bytes: u64) {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second.get());
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut paid_at = self.paid_at();
        // Time that nobody used is made up for by no more than a slice: otherwise a burst would
        // follow each pause.
        let from = Instant::now().checked_sub(SLICE).map_or(*paid_at, |early| paid_at.max(early));
        *paid_at = from.checked_add(cost).unwrap_or(from);
    }

    fn paid_at(&self) -> MutexGuard<'_, Instant> {
        lock(&self.paid_at)
    }
}
