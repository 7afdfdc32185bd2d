//! The processors on which worker threads run: each on one of its own, where there are as many.
//!
//! Linux starts or wakes a thread on an idle processor if it finds one. In a virtual machine it may not: a
//! processor that the host has taken from the guest does not count as idle (`available_idle_cpu()` in the
//! kernel's scheduler), and the host takes one that has halted. The thread then shares a processor with the one
//! that woke it, until a timer tick moves one of the two, 4 ms at 250 Hz. So workers move themselves.
//! docs/design/placement.md has the measurements.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, Scope};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::WORKERS_MAX;

/// Starts `thread` in `scope`, which calls `work`. It starts on another processor than the caller's, if the
/// caller may use another one.
///
/// # Errors
/// If the thread cannot be created: EAGAIN.
pub fn spawn_worker<'scope>(
    scope: &'scope Scope<'scope, '_>,
    thread: Builder,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    let processor = sched_getcpu();
    let started = move || {
        if sched_getcpu() == processor {
            leave([processor].into_iter());
        }
        work();
    };
    thread.spawn_scoped(scope, started)?;
    // If the thread waits for this processor, it runs now, and moves to another one.
    std::thread::yield_now();
    Ok(())
}

/// Moves this thread to a processor that it may use and that is not in `taken`. It may return later. If there is
/// none, or the system forbids to move, it stays.
fn leave(taken: impl Iterator<Item = usize>) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut others = allowed;
    taken.filter(|&processor| processor < CpuSet::MAX_CPU).for_each(|it| others.unset(it));
    // Without a processor the call fails.
    if sched_setaffinity(None, &others).is_ok() {
        // If this fails, the thread keeps to the others, which is correct as well.
        let _ = sched_setaffinity(None, &allowed);
    }
}

/// Where the workers of one run were seen last. They share it.
#[derive(Debug)]
pub struct Placement {
    /// The processor of each worker plus one, zero for none.
    seen: [AtomicUsize; WORKERS_MAX],
    /// Workers that have joined so far.
    joined: AtomicUsize,
}

/// The place of one worker. Dropped, it is free.
#[derive(Debug)]
pub struct Place {
    placement: Arc<Placement>,
    index: usize,
    /// The processor on which the worker was seen last.
    processor: usize,
}

impl Default for Placement {
    fn default() -> Placement {
        Placement {
            seen: std::array::from_fn(|_| AtomicUsize::new(0)),
            joined: AtomicUsize::new(0),
        }
    }
}

impl Placement {
    /// The place of the calling thread; `None` if [`WORKERS_MAX`] have joined before.
    #[must_use]
    pub fn join(self: &Arc<Placement>) -> Option<Place> {
        let index = self.joined.fetch_add(1, Ordering::Relaxed);
        let place = || Place { placement: self.clone(), index, processor: usize::MAX };
        (index < WORKERS_MAX).then(place)
    }

    /// The processors on which workers other than `index` were seen last.
    fn others(&self, index: usize) -> impl Iterator<Item = usize> {
        let others = self.seen.iter().enumerate().filter(move |(other, _)| *other != index);
        others.filter_map(|(_, seen)| seen.load(Ordering::Relaxed).checked_sub(1))
    }
}

impl Place {
    /// Moves the worker to a processor of its own, if it shares one with another worker and there is one. To be
    /// called now and then: it costs a few nanoseconds as long as the worker is where it was.
    pub fn keep_apart(&mut self) {
        let processor = sched_getcpu();
        if processor != self.processor {
            self.arrive(processor);
        }
    }

    fn arrive(&mut self, mut processor: usize) {
        if self.placement.others(self.index).any(|other| other == processor) {
            leave(self.placement.others(self.index));
            processor = sched_getcpu();
        }
        self.processor = processor;
        self.placement.seen[self.index].store(processor + 1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.placement.seen[self.index].store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `work` in a thread of its own, whose affinity is not that of the other tests.
    fn in_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| spawn_worker(scope, Builder::new(), work).expect("a thread"));
    }

    fn allowed() -> CpuSet {
        sched_getaffinity(None).expect("the affinity")
    }

    /// Says so where a test needs two processors and there is one.
    fn has_two_processors() -> bool {
        let has_two = allowed().count() >= 2;
        if !has_two {
            eprintln!("SKIPPED: there is one processor");
        }
        has_two
    }

    #[test]
    fn a_thread_leaves_its_processor_and_may_return() {
        if !has_two_processors() {
            return;
        }
        in_thread(|| {
            let before = allowed();
            // The kernel may move it back before the processor is read again, but not each time.
            let leaves = |_| {
                let processor = sched_getcpu();
                leave([processor].into_iter());
                assert_eq!(allowed(), before);
                sched_getcpu() != processor
            };
            assert!((0..100).any(leaves));
        });
    }

    #[test]
    fn a_thread_stays_on_its_only_processor() {
        in_thread(|| {
            let mut only = CpuSet::new();
            only.set(sched_getcpu());
            sched_setaffinity(None, &only).expect("a processor that it runs on");
            leave([sched_getcpu(), usize::MAX].into_iter());
            assert_eq!(allowed(), only);
        });
    }

    #[test]
    fn a_worker_moves_away_from_another() {
        if !has_two_processors() {
            return;
        }
        in_thread(|| {
            let placement = Arc::new(Placement::default());
            let mut own = placement.join().expect("a place");
            let other = placement.join().expect("a place");
            let moves = |_| {
                // The other worker is where this one is.
                let processor = sched_getcpu();
                placement.seen[other.index].store(processor + 1, Ordering::Relaxed);
                own.processor = usize::MAX;
                own.keep_apart();
                own.processor != processor
            };
            assert!((0..100).any(moves));
            assert_eq!(placement.others(own.index).count(), 1);
            drop(other);
            assert_eq!(placement.others(own.index).count(), 0, "its place is free");
        });
    }

    #[test]
    fn more_workers_than_processors_stay_where_they_are() {
        in_thread(|| {
            let placement = Arc::new(Placement::default());
            let all = allowed();
            let others: Vec<Place> =
                (0..WORKERS_MAX - 1).filter_map(|_| placement.join()).collect();
            for (other, processor) in others.iter().zip((0..CpuSet::MAX_CPU).cycle()) {
                placement.seen[other.index].store(processor + 1, Ordering::Relaxed);
            }
            let mut own = placement.join().expect("a place");
            own.keep_apart();
            assert_eq!(allowed(), all);
            assert!(placement.join().is_none(), "there are no more places");
        });
    }
}
