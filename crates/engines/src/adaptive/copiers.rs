//! The copiers of one worker, for all candidates.

use std::io;

use crate::Variant;
use crate::engine::Copier;

/// Copiers by variant, each started when it is needed first. Candidates that differ only in the number of
/// workers have one copier: the pages of its buffer are allocated once.
#[derive(Default)]
pub(super) struct WorkerCopiers {
    by_variant: Vec<(Variant, Box<dyn Copier>)>,
}

impl WorkerCopiers {
    /// The copier of this worker for the candidate `variant`.
    ///
    /// # Errors
    /// When its buffers, ring or pipe cannot be had.
    pub(super) fn get(&mut self, variant: &Variant) -> io::Result<&mut (dyn Copier + 'static)> {
        let own_workers = if workers(variant) > 1 { 1 } else { variant.workers };
        let is_own = |(known, _): &(Variant, _)| {
            known.workers == own_workers && known.has_parameters_of(variant)
        };
        let at = match self.by_variant.iter().position(is_own) {
            Some(at) => at,
            None => {
                let own = variant.shared_by(own_workers);
                let copier = own.start()?;
                self.by_variant.push((own, copier));
                self.by_variant.len() - 1
            }
        };
        Ok(self.by_variant[at].1.as_mut())
    }
}

/// Workers that share a piece, with a copier each. A variant that needs status flags on the open files, which
/// all workers share, has one copier that sets them and starts its own workers.
pub(super) fn workers(variant: &Variant) -> usize {
    if variant.reads_past_cache() { 1 } else { variant.workers }
}
