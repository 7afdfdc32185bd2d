//! A span that several workers copy, stripe by stripe.
//!
//! Stripes become shorter towards the end of the span (guided self-scheduling: Polychronopoulos, Kuck, "Guided
//! Self-Scheduling: A Practical Scheduling Scheme for Parallel Supercomputers", IEEE Transactions on Computers
//! C-36, 1987), so that the workers end together: a worker that finds no stripe waits for what the others have
//! left of theirs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::contract::Copier;
use crate::{Moved, Pair, Span, Stop};

/// The shortest stripe, in bytes: 50 µs of a fast copy, several times the cost of its calls and locks.
const STRIPE_BYTES_MIN: u64 = 256 << 10;

/// The longest stripe, in bytes. Workers stay close to one another, which suits readahead and the block
/// allocator.
const STRIPE_BYTES_MAX: u64 = 8 << 20;

/// A stripe is this part of what is left for each worker. With 1, the first stripes of all workers would be
/// the whole span, and the slowest worker would end it alone.
const PART_OF_LEFT: u64 = 2;

/// The stripes of a span. Each worker takes the next one when it has copied one, so a faster worker
/// takes more of them.
pub(crate) struct Stripes {
    span: Span,
    workers: u64,
    /// Bytes of the span that were taken.
    taken: AtomicU64,
    stopped: AtomicBool,
    /// The first stripe, by its offset in the span, that was not copied completely.
    shortest: Mutex<Option<(u64, Moved)>>,
}

impl Stripes {
    /// For that many workers, at least one.
    pub(crate) fn new(span: Span, workers: usize) -> Stripes {
        Stripes {
            span,
            workers: workers.max(1) as u64,
            taken: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            shortest: Mutex::new(None),
        }
    }

    /// Copies stripes until none is left, or one was not copied completely.
    pub(crate) fn work(&self, pair: Pair<'_>, copier: &mut dyn Copier) {
        while !self.stopped.load(Ordering::Relaxed) {
            let Some((start, len)) = self.take() else { return };
            let moved = copier.copy(pair, Span { len, ..self.span.after(start) });
            if moved.stop != Stop::Done {
                // No worker takes another stripe.
                self.stopped.store(true, Ordering::Relaxed);
                let mut shortest = self.shortest.lock().unwrap_or_else(PoisonError::into_inner);
                if shortest.is_none_or(|(earlier, _)| start < earlier) {
                    *shortest = Some((start, moved));
                }
            }
        }
    }

    /// The next stripe, by its offset in the span and its length; `None` when all were taken.
    fn take(&self) -> Option<(u64, u64)> {
        let (len, workers) = (self.span.len, self.workers);
        let after = |taken| (taken < len).then(|| taken + stripe_bytes(len - taken, workers));
        let start = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()?;
        Some((start, stripe_bytes(len - start, workers)))
    }

    /// The unbroken prefix that was copied: the first stripe that fell short ends it. Each stripe
    /// before it was taken before it, and so was copied completely. To be called when all workers
    /// have returned.
    pub(crate) fn outcome(&self) -> Moved {
        match *self.shortest.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Moved { bytes: self.span.len, stop: Stop::Done },
            Some((start, moved)) => Moved { bytes: start + moved.bytes, stop: moved.stop },
        }
    }
}

/// The length of the next stripe of a span of which `left` bytes were not taken.
fn stripe_bytes(left: u64, workers: u64) -> u64 {
    let part = (left / (workers * PART_OF_LEFT)) & !(STRIPE_BYTES_MIN - 1);
    part.clamp(STRIPE_BYTES_MIN, STRIPE_BYTES_MAX).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_follow_each_other_and_become_shorter() {
        for (len, workers) in [(1, 2), (64 << 20, 2), ((64 << 20) + 17, 3), (300 << 20, 8)] {
            let stripes = Stripes::new(Span::whole(len), workers);
            let mut end = 0;
            let mut last = STRIPE_BYTES_MAX;
            while let Some((start, bytes)) = stripes.take() {
                assert_eq!(start, end);
                assert!(bytes > 0 && bytes <= last, "{bytes} after {last}");
                (end, last) = (start + bytes, bytes);
            }
            assert_eq!(end, len);
            assert!(last <= STRIPE_BYTES_MIN, "{last} bytes are left to one worker");
            assert!(stripes.take().is_none());
        }
    }
}
