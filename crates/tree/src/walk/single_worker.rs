//! When a second worker starts: how much one worker does before others join.

use std::time::{Duration, Instant};

use crate::copy::context::CopyWorker;
use crate::request::Options;

/// The first worker copies alone until one of these is exceeded.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    entries: u64,
    /// Bytes that were moved. Shared blocks do not count: sharing takes microseconds.
    bytes: u64,
    /// If few entries take longer, the worker waits for the medium, and several can wait at once.
    time: Duration,
}

/// Starting and joining the threads takes half a millisecond, as long as 40 small files. A second
/// worker gains that back within about a hundred files (docs/design/work-sharing.md).
const DEFAULT: Bounds = Bounds { entries: 192, bytes: 4 << 20, time: Duration::from_millis(3) };

/// With `--jobs` the workers start as soon as there is something to share.
const WITH_JOBS: Bounds = Bounds { entries: 32, bytes: 1 << 20, time: Duration::from_millis(2) };

/// If fewer names than these are known then, the tree may end soon: one worker goes on for these.
const LAST_NAMES: Bounds = Bounds { entries: 64, bytes: 1 << 20, time: Duration::from_millis(1) };

/// Before threads are started on btrfs, where two workers may be slower than one. The threads, and
/// measuring whether they help, cost a few hundredths of this time (docs/design/concurrency.md).
const CONTENDED: Bounds = Bounds { entries: 4096, bytes: 4 << 20, time: Duration::from_millis(60) };

/// The part of a copy that one worker does alone.
pub(crate) struct SingleWorkerPhase {
    entries_end: u64,
    bytes_end: u64,
    deadline: Instant,
}

impl SingleWorkerPhase {
    pub(crate) fn first(options: &Options, worker: &CopyWorker) -> SingleWorkerPhase {
        SingleWorkerPhase::new(if options.jobs.is_some() { WITH_JOBS } else { DEFAULT }, worker)
    }

    /// The phase after the first one, if only a few `names` are known to be left.
    pub(crate) fn for_last_names(
        options: &Options,
        worker: &CopyWorker,
        names: u64,
    ) -> Option<SingleWorkerPhase> {
        let are_few = options.jobs.is_none() && names < LAST_NAMES.entries;
        are_few.then(|| SingleWorkerPhase::new(LAST_NAMES, worker))
    }

    /// The phase where workers contend for a lock of the file system.
    pub(crate) fn contended(worker: &CopyWorker) -> SingleWorkerPhase {
        SingleWorkerPhase::new(CONTENDED, worker)
    }

    fn new(Bounds { entries, bytes, time }: Bounds, worker: &CopyWorker) -> SingleWorkerPhase {
        SingleWorkerPhase {
            entries_end: worker.entries + entries,
            bytes_end: worker.data.moved_bytes + bytes,
            deadline: Instant::now() + time,
        }
    }

    /// Whether other workers should join.
    pub(crate) fn is_over(&self, worker: &CopyWorker) -> bool {
        let few = worker.entries < self.entries_end && worker.data.moved_bytes < self.bytes_end;
        !few || Instant::now() >= self.deadline
    }
}
