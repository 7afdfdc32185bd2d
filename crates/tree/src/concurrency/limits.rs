//! The bounds within which the controller works.

/// Workers for each processor, at most, unless their number is the user's.
const WORKERS_EACH_MAX: usize = 8;

/// Workers at most, unless their number is the user's.
const WORKERS_MAX: usize = 64;

/// How many workers there are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerLimits {
    /// As a rule.
    pub(crate) workers: usize,
    /// At first.
    pub(super) begin: usize,
    pub(super) processors: usize,
    /// Where more of them help.
    pub(crate) most: usize,
    /// Others join one only while that one waits.
    pub(super) only_for_waiting: bool,
}

impl WorkerLimits {
    /// For so many processors; exactly `wanted`, or fewer where they are in each other's way, if
    /// that is given.
    pub(crate) fn new(processors: usize, wanted: Option<usize>) -> WorkerLimits {
        let most = (processors * WORKERS_EACH_MAX).min(WORKERS_MAX).max(processors);
        let workers = wanted.unwrap_or(processors);
        WorkerLimits {
            workers,
            begin: workers,
            processors,
            most: wanted.unwrap_or(most),
            only_for_waiting: false,
        }
    }

    /// The same where there can be no more than `workers`.
    pub(crate) fn within(self, workers: usize) -> WorkerLimits {
        let [workers, begin, most] =
            [self.workers, self.begin, self.most].map(|number| number.min(workers));
        WorkerLimits { workers, begin, most, ..self }
    }

    /// The same where others join only once it is seen that they help.
    pub(crate) fn one_at_first(self) -> WorkerLimits {
        WorkerLimits { begin: 1, ..self }
    }

    /// The same where no window of the copy shows what others cost: they join only while the one
    /// waits for a medium or a server.
    pub(crate) fn one_unless_waiting(self) -> WorkerLimits {
        WorkerLimits { only_for_waiting: true, ..self.one_at_first() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A crew of so many at first, on as many processors.
    pub(in crate::concurrency) fn limits(workers: usize, most: usize) -> WorkerLimits {
        WorkerLimits { workers, begin: workers, processors: workers, most, only_for_waiting: false }
    }

    #[test]
    fn crews_have_their_bounds() {
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
        assert_eq!(four.within(1), WorkerLimits { workers: 1, begin: 1, most: 1, ..four });
    }
}
