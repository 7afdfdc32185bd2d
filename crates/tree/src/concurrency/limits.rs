//! The bounds within which the controller works.

use std::time::Duration;

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

// How many workers there may be.

/// Workers for each processor, at most, unless `--jobs` gives their number.
pub(super) const WORKERS_PER_PROCESSOR_MAX: usize = 8;

/// Workers at most, unless `--jobs` gives their number.
pub(super) const WORKERS_MAX: usize = 64;

/// Entries after which a worker lets a waiting one run: the change costs as much as an entry.
pub(super) const SLICE_ENTRIES: u32 = 64;

// What counts as work.

/// Units of work of an entry: creating a small file, and filling it, which takes about as long.
pub(super) const ENTRY_UNITS: u64 = 2;

/// Bytes moved that count as one unit.
pub(super) const UNIT_BYTES: u64 = 32 << 10;

/// A longer file takes most of a window, or several, which then says nothing about the workers.
pub(super) const WINDOW_FILE_BYTES_MAX: u64 = 32 << 20;

// When a trial starts.

/// Entries before the first check whether fewer workers are faster. Processors can be busy and
/// still contend: a thread that waits for a lock that is held briefly spins, such as for that of a
/// directory of XFS in which names are created.
pub(super) const FIRST_CHECK_ENTRIES: u64 = 64;

/// Entries between two checks whether the processors idle, and the time, at least: every worker
/// idles for a moment.
pub(super) const CHECK_EVERY_ENTRIES: u64 = 128;
pub(super) const CHECK_EVERY_TIME: Duration = Duration::from_millis(5);

/// Processors that are in use for less than this share of the time idle. Cached trees on ext4, xfs
/// and tmpfs use them for 0.7 to 0.95 of it, clones on btrfs for 0.6, and files read from the
/// medium for 0.4 to 0.6.
pub(super) const IN_USE_MIN: f64 = 0.65;

/// Checks in a row that must find them idle.
pub(super) const IDLE_CHECKS: u32 = 2;

/// Entries from one trial to the next, and the time, at least. A trial that changes nothing costs a
/// few hundredths of that.
pub(super) const TRIAL_EVERY_ENTRIES: u64 = 8192;
pub(super) const TRIAL_EVERY_UNITS: u64 = TRIAL_EVERY_ENTRIES * ENTRY_UNITS;
pub(super) const TRIAL_EVERY_TIME: Duration = Duration::from_secs(1);

/// A number below the default is checked for the first time after a fraction of that, of which this
/// is the denominator.
pub(super) const CONFIRM_SOONER: u32 = 8;

// How a trial measures.

/// Entries of a window, at least, and for each worker.
pub(super) const WINDOW_ENTRIES: u64 = 64;
pub(super) const WINDOW_ENTRIES_PER_WORKER: u64 = 8;

/// Length of a window, at least: in a millisecond one interruption is much.
pub(super) const WINDOW_TIME: Duration = Duration::from_millis(3);

/// Entries for each worker before a window starts, in which workers over the new number stop.
pub(super) const SETTLING_ENTRIES_PER_WORKER: u64 = 2;

/// Windows for each number of workers. The median counts.
pub(super) const ROUNDS: usize = 3;

/// How much faster one number of workers must be than another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    /// The share of the other number's time that it may take at most.
    pub(super) takes_at_most: f64,
    /// If every window so far took more than this share, no further one is measured.
    pub(super) gives_up_from: f64,
}

/// For more workers. A few percent are noise, and a worker costs memory and descriptors.
pub(super) const MORE: Threshold = Threshold { takes_at_most: 0.93, gives_up_from: 1.4 };

/// For more workers where fewer than processors were faster, or are likely to be. Kernel threads
/// that find no processor during the window do their work later. Each window in which workers
/// contend is time lost.
pub(super) const MORE_UNDER_CONTENTION: Threshold =
    Threshold { takes_at_most: 0.85, gives_up_from: 1.05 };

/// For more workers where fewer than the default number run, and wait. How long a medium takes is
/// too uneven to give up after one window.
pub(super) const MORE_WHILE_WAITING: Threshold =
    Threshold { gives_up_from: MORE.gives_up_from, ..MORE_UNDER_CONTENTION };

/// For fewer workers than the default number. That may be wrong a moment later.
pub(super) const FEWER: Threshold = Threshold { takes_at_most: 0.97, gives_up_from: 1.4 };

/// For fewer workers where there are more than the default number, which are not needed any more.
pub(super) const FEWER_THAN_EXTRA: Threshold =
    Threshold { takes_at_most: 1.03, gives_up_from: 1.4 };

/// If more workers take less than this share, they wait for the medium, and fewer are not tried.
pub(super) const CLEARLY_FASTER: f64 = 0.8;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `workers` at the start, on as many processors.
    pub(in crate::concurrency) fn limits(workers: usize, most: usize) -> WorkerLimits {
        WorkerLimits { most, ..WorkerLimits::new(workers, None) }
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
