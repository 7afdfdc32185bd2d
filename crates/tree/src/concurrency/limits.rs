//! The bounds within which the controller works.

use super::heuristics::{WORKERS_MAX, WORKERS_PER_PROCESSOR_MAX};

/// How many workers a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerLimits {
    /// The default number: one for each processor, or `--jobs`.
    pub(crate) workers: usize,
    /// The number at the start.
    pub(super) initial: usize,
    pub(super) processors: usize,
    /// The number where more are faster.
    pub(crate) most: usize,
    /// More than one worker runs only while the one waits.
    pub(super) only_while_waiting: bool,
}

impl WorkerLimits {
    /// For a number of processors; with `wanted`, exactly as many, or fewer if those are faster.
    pub(crate) fn new(processors: usize, wanted: Option<usize>) -> WorkerLimits {
        let most = (processors * WORKERS_PER_PROCESSOR_MAX).min(WORKERS_MAX).max(processors);
        let workers = wanted.unwrap_or(processors);
        WorkerLimits {
            workers,
            initial: workers,
            processors,
            most: wanted.unwrap_or(most),
            only_while_waiting: false,
        }
    }

    /// At most `workers`.
    pub(crate) fn within(self, workers: usize) -> WorkerLimits {
        let [workers, initial, most] =
            [self.workers, self.initial, self.most].map(|number| number.min(workers));
        WorkerLimits { workers, initial, most, ..self }
    }

    /// One worker at the start; others run once they are measured to help.
    pub(crate) fn one_at_first(self) -> WorkerLimits {
        WorkerLimits { initial: 1, ..self }
    }

    /// One worker, unless it waits for a medium or a server: where no window of the copy shows what
    /// a second one costs.
    pub(crate) fn one_unless_waiting(self) -> WorkerLimits {
        WorkerLimits { only_while_waiting: true, ..self.one_at_first() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `workers` at the start, on as many processors.
    pub(in crate::concurrency) fn limits(workers: usize, most: usize) -> WorkerLimits {
        WorkerLimits {
            workers,
            initial: workers,
            processors: workers,
            most,
            only_while_waiting: false,
        }
    }

    #[test]
    fn workers_are_bounded_by_processors_and_jobs() {
        for (processors, wanted, workers, most) in [
            (1, None, 1, 8),
            (2, None, 2, 16),
            (16, None, 16, 64),
            (128, None, 128, 128),
            (2, Some(1), 1, 1),
            (2, Some(12), 12, 12),
        ] {
            let limits = WorkerLimits::new(processors, wanted);
            assert_eq!((limits.workers, limits.most), (workers, most), "{processors} {wanted:?}");
        }
        let four = WorkerLimits::new(4, None);
        assert_eq!(four.within(7), WorkerLimits { most: 7, ..four });
        assert_eq!(four.within(1), WorkerLimits { workers: 1, initial: 1, most: 1, ..four });
    }
}
