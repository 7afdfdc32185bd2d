//! When a second worker starts: how much one worker does before others join.

use std::time::{Duration, Instant};

use crate::copy::context::CopyWorker;
use crate::request::Options;

/// The first worker copies alone until one of these is exceeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
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

/// Before threads are started on btrfs, where two workers may be slower than one. The threads, and
/// measuring whether they help, cost a few hundredths of this time (docs/design/concurrency.md).
pub(super) const CONTENDED: Bounds =
    Bounds { entries: 4096, bytes: 4 << 20, time: Duration::from_millis(60) };

/// The bounds of the first worker, until others may join.
pub(super) fn first_bounds(options: &Options) -> Bounds {
    if options.jobs.is_some() { WITH_JOBS } else { DEFAULT }
}

/// Whether `worker`, which copies alone from now on, is to go on alone.
pub(super) fn alone_within(
    Bounds { entries, bytes, time }: Bounds,
    worker: &CopyWorker,
) -> impl Fn(&CopyWorker) -> bool + use<> {
    let (entries_end, bytes_end) = (worker.entries + entries, worker.data.moved_bytes + bytes);
    let deadline = Instant::now() + time;
    move |worker| {
        let few = worker.entries < entries_end && worker.data.moved_bytes < bytes_end;
        few && Instant::now() < deadline
    }
}
