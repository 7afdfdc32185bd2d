//! The copiers of one worker, one for each candidate.

use std::io;

use crate::Variant;
use crate::engine::Copier;

/// Copiers by candidate, each started when it is needed first.
#[derive(Default)]
pub(super) struct WorkerCopiers {
    by_candidate: Vec<Option<Box<dyn Copier>>>,
}

impl WorkerCopiers {
    /// The copier of the candidate with this index, whose variant is `variant`.
    ///
    /// # Errors
    /// When its buffers, ring or pipe cannot be had.
    pub(super) fn get(
        &mut self,
        candidate: usize,
        variant: &Variant,
    ) -> io::Result<&mut (dyn Copier + 'static)> {
        if self.by_candidate.len() <= candidate {
            self.by_candidate.resize_with(candidate + 1, || None);
        }
        let copier = &mut self.by_candidate[candidate];
        if copier.is_none() {
            let started = match workers(variant) {
                1 => variant.start()?,
                _ => variant.shared_by(1).start()?,
            };
            *copier = Some(started);
        }
        Ok(copier.as_mut().expect("it was just started").as_mut())
    }
}

/// Workers that share a piece, with a copier each. A variant that needs status flags on the open files, which
/// all workers share, has one copier that sets them and starts its own workers.
pub(super) fn workers(variant: &Variant) -> usize {
    if variant.reads_past_cache() { 1 } else { variant.workers }
}
