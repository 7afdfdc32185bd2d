//! What one worker does before others join.

use std::time::{Duration, Instant};

use super::worker::Worker;
use crate::request::Options;

/// How much one worker does alone before others join.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    entries: u64,
    /// Bytes that were moved: to share them takes an instant.
    bytes: u64,
    /// Where a few entries take longer the medium keeps us waiting: several workers wait at once, and the
    /// user has time to interrupt.
    time: Duration,
}

/// To make the threads and to end them takes half a millisecond, as long as 40 small files do, and a second
/// worker gains that back in a hundred. So whoever copies less is never slower for them.
const USUAL_BOUNDS: Bounds =
    Bounds { entries: 192, bytes: 4 << 20, time: Duration::from_millis(3) };

/// Who asks for a number of workers gets them as soon as there is something to share.
const BOUNDS_IF_ASKED: Bounds =
    Bounds { entries: 32, bytes: 1 << 20, time: Duration::from_millis(2) };

/// Where fewer names than these are known then, they may be the last: it is worth finding out.
const LAST_BOUNDS: Bounds = Bounds { entries: 64, bytes: 1 << 20, time: Duration::from_millis(1) };

/// What one does alone where two may be slower: some hundredths of it are what threads cost, and what
/// it costs to see whether they help.
const LONGER_BOUNDS: Bounds =
    Bounds { entries: 4096, bytes: 4 << 20, time: Duration::from_millis(60) };

/// What one worker does alone.
pub(crate) struct SingleWorkerPhase {
    entries: u64,
    bytes: u64,
    until: Instant,
}

impl SingleWorkerPhase {
    pub(crate) fn from_now(options: &Options, worker: &Worker) -> SingleWorkerPhase {
        let bounds = if options.jobs.is_some() { BOUNDS_IF_ASKED } else { USUAL_BOUNDS };
        SingleWorkerPhase::within(bounds, worker)
    }

    /// The same once that is over, where no more is known to be copied than a few `names`.
    pub(crate) fn for_the_last(
        options: &Options,
        worker: &Worker,
        names: u64,
    ) -> Option<SingleWorkerPhase> {
        let are_few = options.jobs.is_none() && names < LAST_BOUNDS.entries;
        are_few.then(|| SingleWorkerPhase::within(LAST_BOUNDS, worker))
    }

    /// What one worker does alone in earnest, where others may be in its way.
    pub(crate) fn for_longer(worker: &Worker) -> SingleWorkerPhase {
        SingleWorkerPhase::within(LONGER_BOUNDS, worker)
    }

    fn within(Bounds { entries, bytes, time }: Bounds, worker: &Worker) -> SingleWorkerPhase {
        SingleWorkerPhase {
            entries: worker.entries + entries,
            bytes: worker.copy.data.moved_bytes + bytes,
            until: Instant::now() + time,
        }
    }

    /// Whether others would help.
    pub(crate) fn is_over(&self, worker: &Worker) -> bool {
        let few = worker.entries < self.entries && worker.copy.data.moved_bytes < self.bytes;
        !few || Instant::now() >= self.until
    }
}
