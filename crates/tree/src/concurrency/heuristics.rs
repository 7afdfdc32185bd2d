//! The constants of the controller. docs/design/concurrency.md has their measurements.

use std::time::Duration;

// How many workers there may be.

/// Workers for each processor, at most, unless `--jobs` gives their number.
pub(super) const WORKERS_PER_PROCESSOR_MAX: usize = 8;

/// Workers at most, unless `--jobs` gives their number.
pub(super) const WORKERS_MAX: usize = 64;

/// Entries after which a worker lets a waiting one run: the change costs as much as an entry.
pub(super) const SLICE_ENTRIES: u32 = 64;

// What counts as work.

/// Units of work of an entry: creating a small file takes about as long as filling it, and may
/// happen long before.
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
