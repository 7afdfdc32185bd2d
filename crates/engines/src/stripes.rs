//! A span that several workers copy, stripe by stripe.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::engine::Copier;
use crate::{Moved, Pair, Span, Stop};

/// The stripes of a span. Each worker takes the next one when it has copied one, so a faster worker
/// takes more of them.
pub(crate) struct Stripes {
    span: Span,
    stripe_bytes: u64,
    next: AtomicU64,
    stopped: AtomicBool,
    /// The first stripe, by its offset in the span, that was not copied completely.
    shortest: Mutex<Option<(u64, Moved)>>,
}

impl Stripes {
    pub(crate) fn new(span: Span, stripe_bytes: u64) -> Stripes {
        Stripes {
            span,
            stripe_bytes,
            next: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            shortest: Mutex::new(None),
        }
    }

    /// Copies stripes until none is left, or one was not copied completely.
    pub(crate) fn work(&self, pair: Pair<'_>, copier: &mut dyn Copier) {
        while !self.stopped.load(Ordering::Relaxed) {
            let start = self.next.fetch_add(1, Ordering::Relaxed) * self.stripe_bytes;
            if start >= self.span.len {
                return;
            }
            let len = self.stripe_bytes.min(self.span.len - start);
            let moved = copier.copy(pair, Span { len, ..self.span.after(start) });
            if moved.stop != Stop::Done {
                self.stop();
                let mut shortest = self.shortest.lock().unwrap_or_else(PoisonError::into_inner);
                if shortest.is_none_or(|(earlier, _)| start < earlier) {
                    *shortest = Some((start, moved));
                }
            }
        }
    }

    /// Lets no worker take another stripe.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
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
