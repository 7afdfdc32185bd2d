//! Candidates that are compared across files: each file is copied by one of them.
//!
//! The files of 64 KiB to 16 MiB of a tree are too short for a trial each, and there are many of them. The
//! pieces of the [`selector`](super::selector) are groups of files here. How much is left is not known: as
//! much is expected as has been copied.

use std::time::Instant;

use rustix::io::Errno;

use super::candidate::{self, Candidate};
use super::copiers::WorkerCopiers;
use super::selector::{Piece, Selector};
use super::thresholds::PieceSizes;
use crate::moved::errno_of;
use crate::{Moved, Pair, Span, Stop, Variant};

/// The candidates of one worker for files of one class between one pair of file systems, and their rates so
/// far.
pub struct AcrossFiles {
    candidates: Vec<Candidate>,
    copiers: WorkerCopiers,
    selector: Selector,
    /// The files that make up the current piece.
    group: Option<Group>,
    /// Bytes of all files so far.
    copied: u64,
    /// The candidate of the last span.
    last: usize,
}

/// Files that are copied by one candidate, one after another, and timed together: their lengths differ, and
/// each costs the time of its system calls.
struct Group {
    piece: Piece,
    bytes: u64,
    seconds: f64,
}

impl AcrossFiles {
    /// With these candidates, which each copy with one worker. The first one copies until a trial pays. `seed`
    /// decides the order of the others.
    ///
    /// # Panics
    /// Without a candidate.
    #[must_use]
    pub fn new(variants: Vec<Variant>, seed: u64) -> AcrossFiles {
        let selector = Selector::new(variants.len(), PieceSizes::FILES, seed);
        AcrossFiles {
            candidates: variants.into_iter().map(Candidate::new).collect(),
            copiers: WorkerCopiers::default(),
            selector,
            group: None,
            copied: 0,
            last: 0,
        }
    }

    /// The candidate that copied the last span.
    #[must_use]
    pub fn last(&self) -> &Variant {
        &self.candidates[self.last].variant
    }

    /// Whether another candidate than the first was tried.
    #[must_use]
    pub fn has_compared(&self) -> bool {
        (1..self.candidates.len()).any(|index| self.selector.rate(index).is_some())
    }

    /// All candidates, each with the rate of its last files, in bytes a second; `None` for one that was not
    /// tried or was refused.
    pub fn rates(&self) -> impl Iterator<Item = (Variant, Option<u64>)> {
        candidate::rates(&self.candidates, &self.selector)
    }

    /// Copies `span` of a file of which `bytes_before` bytes were copied before. `observe` is called after each
    /// attempt. Where a candidate is refused, another one continues.
    pub fn copy(
        &mut self,
        pair: Pair<'_>,
        (bytes_before, span): (u64, Span),
        observe: &mut dyn FnMut(&Variant, Span, Moved),
    ) -> Moved {
        if bytes_before == 0 {
            candidate::start_file(&mut self.candidates, &mut self.selector);
        }
        let mut bytes = 0;
        let mut refusal = Errno::NOSYS;
        while let Some(candidate) = self.candidate() {
            let left = span.after(bytes);
            let (moved, seconds) = self.attempt(candidate, pair, left);
            let variant = &self.candidates[candidate].variant;
            observe(variant, left, moved);
            bytes += moved.bytes;
            let refused = variant.engine.facts.refusal(moved.stop, bytes_before + bytes > 0);
            self.record(moved.bytes, seconds);
            let Some(errno) = refused else { return Moved { bytes, stop: moved.stop } };
            refusal = errno;
            self.refuse(candidate, errno);
        }
        Moved { bytes, stop: Stop::Refused(refusal) }
    }

    /// Excludes a candidate, at least for this file.
    fn refuse(&mut self, candidate: usize, errno: Errno) {
        self.candidates[candidate].refused = Some(errno);
        self.selector.refuse(candidate);
        self.group = None;
    }

    /// One call of `candidate`, and how long it took, in seconds.
    fn attempt(&mut self, candidate: usize, pair: Pair<'_>, span: Span) -> (Moved, f64) {
        self.last = candidate;
        match self.copiers.get(&self.candidates[candidate].variant) {
            Err(error) => (Moved::refused(errno_of(&error)), 0.0),
            Ok(copier) => {
                let start = Instant::now();
                let moved = copier.copy(pair, span);
                (moved, start.elapsed().as_secs_f64())
            }
        }
    }

    /// The candidate for the next span; `None` when every one was refused.
    fn candidate(&mut self) -> Option<usize> {
        if self.group.is_none() {
            let piece = self.selector.next(self.copied + PieceSizes::FILES.first_bytes)?;
            self.group = Some(Group { piece, bytes: 0, seconds: 0.0 });
        }
        self.group.as_ref().map(|group| group.piece.candidate)
    }

    /// Records a span of the current group, and the group when it is complete.
    fn record(&mut self, bytes: u64, seconds: f64) {
        self.copied += bytes;
        let Some(group) = &mut self.group else { return };
        group.bytes += bytes;
        group.seconds += seconds;
        if group.bytes >= group.piece.bytes {
            self.selector.record(group.piece.candidate, group.bytes, group.seconds);
            self.group = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CandidateSet;
    use crate::read_write::READ_WRITE;

    const MIB: u64 = 1 << 20;

    /// The time of a worker that copies files of `lengths` up to `total` bytes, relative to that of the best
    /// candidate for all of them. A file takes the candidate's seconds for a GiB and 4 µs for its calls, with
    /// a spread of 25 %.
    fn ratio(seconds_per_gib: [f64; 4], lengths: (u64, u64), total: u64, seed: u64) -> f64 {
        let variants = CandidateSet::across_files(Variant::plain(&READ_WRITE), true);
        assert_eq!(variants.len(), seconds_per_gib.len());
        let mut files = AcrossFiles::new(variants, seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut elapsed, mut copied, mut fixed) = (0.0, 0, [0.0; 4]);
        while copied < total {
            let bytes = random.u64(lengths.0..lengths.1);
            let noise = 0.75 + 0.5 * random.f64();
            let seconds = |at: usize| {
                noise * (4e-6 + seconds_per_gib[at] * bytes as f64 / (1024 * MIB) as f64)
            };
            let candidate = files.candidate().expect("nothing is refused");
            files.record(bytes, seconds(candidate));
            elapsed += seconds(candidate);
            (0..4).for_each(|at| fixed[at] += seconds(at));
            copied += bytes;
        }
        elapsed / fixed.into_iter().fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn files_are_copied_by_the_fastest_candidate() {
        let documents = (50 << 10, 200 << 10);
        let photos = (MIB, 6 * MIB);
        for (seconds, lengths, total, bound) in [
            // The first is the fastest, or all are equal.
            ([0.3, 0.36, 0.4, 0.5], documents, 180 * MIB, 1.06),
            ([0.3, 0.36, 0.4, 0.5], photos, 350 * MIB, 1.06),
            ([0.3; 4], documents, 180 * MIB, 1.01),
            // Another is faster.
            ([0.4, 0.5, 0.3, 0.4], documents, 180 * MIB, 1.2),
            ([0.4, 0.5, 0.3, 0.4], photos, 350 * MIB, 1.15),
            ([0.4, 0.5, 0.3, 0.4], documents, 4096 * MIB, 1.03),
            ([0.6, 0.5, 0.4, 0.2], documents, 1024 * MIB, 1.2),
        ] {
            let ratios = (0..40).map(|seed| ratio(seconds, lengths, total, seed));
            let mean = ratios.sum::<f64>() / 40.0;
            assert!(mean <= bound, "{seconds:?}, {lengths:?}: {mean:.3} of the best, not {bound}");
        }
    }

    #[test]
    fn a_few_files_are_copied_by_the_first_candidate() {
        let variants = CandidateSet::across_files(Variant::plain(&READ_WRITE), true);
        let mut files = AcrossFiles::new(variants, 0);
        for _ in 0..300 {
            assert_eq!(files.candidate(), Some(0));
            files.record(100 << 10, 20e-6);
        }
        assert!(!files.has_compared());
    }

    #[test]
    fn a_refused_candidate_leaves_its_group() {
        let variants = CandidateSet::across_files(Variant::plain(&READ_WRITE), false);
        let mut files = AcrossFiles::new(variants, 0);
        assert_eq!(files.candidate(), Some(0));
        files.refuse(0, Errno::NOMEM);
        let next = files.candidate().expect("others remain");
        assert_ne!(next, 0);
        (1..3).for_each(|other| files.refuse(other, Errno::INVAL));
        assert_eq!(files.candidate(), None);
        // The next file: memory may be there again.
        candidate::start_file(&mut files.candidates, &mut files.selector);
        assert_eq!(files.candidate(), Some(0));
    }
}
