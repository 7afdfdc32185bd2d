//! On which processors worker threads run: on different ones, as far as there are enough.
//!
//! Linux starts or wakes a thread on an idle processor if it finds one. In a virtual machine it may not: a
//! processor that the host has taken from the guest does not count as idle (`available_idle_cpu()` in the
//! kernel's scheduler), and the host takes one that has halted. The thread then shares a processor with the one
//! that woke it, until a timer tick moves one of the two, up to 4 ms later at 250 Hz. So workers move themselves.
//! docs/design/placement.md has the measurements, and what a move costs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, Scope};

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Workers of a run that have a place. There are no more on one file, and fewer in a tree.
const PLACES_MAX: usize = 256;

/// Starts `thread` in `scope`, which calls `work`. If it starts on the processor of the caller, it moves to
/// another one that the caller may use.
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
/// none, or the system forbids to move, it stays. Returns whether it has moved.
fn leave(taken: impl Iterator<Item = usize>) -> bool {
    let Ok(allowed) = sched_getaffinity(None) else { return false };
    let mut others = allowed;
    taken.filter(|&processor| processor < CpuSet::MAX_CPU).for_each(|it| others.unset(it));
    // Without a processor the call fails.
    let has_moved = sched_setaffinity(None, &others).is_ok();
    if has_moved {
        // If this fails, the worker keeps to the others until it ends.
        let _ = sched_setaffinity(None, &allowed);
    }
    has_moved
}

/// Where the workers of one run were seen last. They share it.
#[derive(Debug)]
pub struct Placement {
    /// The thread that made it, which is never moved: it may be one of the caller of the library, and a thread
    /// that has set its affinity once does not get processors that are added to its cpuset later. It is known
    /// by its number: `std::thread::current()` allocates in a thread that Rust has not started.
    maker: Pid,
    /// The processor of each worker plus one; zero for one that waits or has ended.
    seen: [AtomicUsize; PLACES_MAX],
    /// Workers that have joined so far.
    joined: AtomicUsize,
}

/// The place of one worker. Dropped, its processor is free for others.
#[derive(Debug)]
pub struct Place {
    placement: Arc<Placement>,
    index: usize,
    /// The worker is never moved.
    stays: bool,
    /// The processor on which the worker was seen last.
    processor: Option<usize>,
    /// Checks to leave out.
    rest: u32,
}

/// Checks that a worker leaves out when it has found no processor without another worker.
const REST_CHECKS: u32 = 1024;

impl Default for Placement {
    fn default() -> Placement {
        Placement {
            maker: gettid(),
            seen: std::array::from_fn(|_| AtomicUsize::new(0)),
            joined: AtomicUsize::new(0),
        }
    }
}

impl Placement {
    /// The place of the calling thread; `None` if 256 have joined before.
    #[must_use]
    pub fn join(self: &Arc<Placement>) -> Option<Place> {
        let index = self.joined.fetch_add(1, Ordering::Relaxed);
        let stays = self.maker == gettid();
        let place = || Place { placement: self.clone(), index, stays, processor: None, rest: 0 };
        (index < PLACES_MAX).then(place)
    }

    /// The processors on which workers other than `index` were seen last.
    fn others(&self, index: usize) -> impl Iterator<Item = usize> {
        let joined = self.joined.load(Ordering::Relaxed);
        let others = self.seen.iter().take(joined).enumerate();
        let others = others.filter(move |(other, _)| *other != index);
        others.filter_map(|(_, seen)| seen.load(Ordering::Relaxed).checked_sub(1))
    }
}

impl Place {
    /// Moves the worker to a processor without another worker, if it shares one and there is one. To be called
    /// now and then, and after a wait. It reads a number for each worker.
    pub fn keep_apart(&mut self) {
        let processor = sched_getcpu();
        self.see(processor);
        if self.rest > 0 {
            self.rest -= 1;
        } else if !self.stays && self.others().any(|other| other == processor) {
            match leave(self.others()) {
                true => self.see(sched_getcpu()),
                false => self.rest = REST_CHECKS,
            }
        }
    }

    /// The worker waits, and needs no processor until it calls [`keep_apart`](Place::keep_apart) again.
    pub fn vacate(&mut self) {
        self.processor = None;
        self.placement.seen[self.index].store(0, Ordering::Relaxed);
    }

    fn see(&mut self, processor: usize) {
        // A store takes the line from the caches of the others.
        if self.processor != Some(processor) {
            self.processor = Some(processor);
            self.placement.seen[self.index].store(processor.wrapping_add(1), Ordering::Relaxed);
        }
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        self.placement.others(self.index)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.vacate();
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

    /// A test that needs two processors is skipped where there is one.
    fn has_two_processors() -> bool {
        let has_two = allowed().count() >= 2;
        if !has_two {
            testfs::skip(&testfs::test_name(), "there is one processor");
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
            // The kernel may move it back before the processor is read again, but not often.
            let leaves = |_: &i32| {
                let processor = sched_getcpu();
                assert!(leave([processor].into_iter()));
                assert_eq!(allowed(), before);
                sched_getcpu() != processor
            };
            assert!((0..100).filter(leaves).count() >= 50);
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

    /// How often of 100 times `own` moves if another worker is where it is.
    fn moves(placement: &Arc<Placement>, own: &mut Place, other: &Place) -> usize {
        let moves = |_: &i32| {
            let processor = sched_getcpu();
            placement.seen[other.index].store(processor + 1, Ordering::Relaxed);
            own.keep_apart();
            own.processor != Some(processor)
        };
        (0..100).filter(moves).count()
    }

    #[test]
    fn a_worker_moves_away_from_another() {
        if !has_two_processors() {
            return;
        }
        let placement = Arc::new(Placement::default());
        let mut other = placement.join().expect("a place");
        in_thread(|| {
            let mut own = placement.join().expect("a place");
            assert!(moves(&placement, &mut own, &other) >= 50);
            assert_eq!(own.others().count(), 1);
            other.vacate();
            assert_eq!(own.others().count(), 0, "a worker that waits has no processor");
            other.keep_apart();
            assert_eq!(own.others().count(), 1);
            drop(other);
            assert_eq!(own.others().count(), 0, "its place is free");
        });
    }

    #[test]
    fn the_thread_that_starts_the_workers_is_not_moved() {
        in_thread(|| {
            let placement = Arc::new(Placement::default());
            let mut own = placement.join().expect("a place");
            let other = placement.join().expect("a place");
            let mut only = CpuSet::new();
            only.set(sched_getcpu());
            sched_setaffinity(None, &only).expect("a processor that it runs on");
            assert_eq!(moves(&placement, &mut own, &other), 0);
            assert_eq!((own.rest, allowed()), (0, only), "it did not try");
        });
    }

    #[test]
    fn a_worker_without_a_processor_to_go_to_stays_and_rests() {
        let placement = Arc::new(Placement::default());
        let others: Vec<Place> = (1..PLACES_MAX).filter_map(|_| placement.join()).collect();
        in_thread(|| {
            let mut own = placement.join().expect("a place");
            assert!(placement.join().is_none(), "there are no more places");
            // At most as many processors as places: the others are on all of them.
            let mut all = CpuSet::new();
            let mine = (0..CpuSet::MAX_CPU).filter(|&it| allowed().is_set(it));
            for (processor, other) in mine.zip(&others) {
                placement.seen[other.index].store(processor + 1, Ordering::Relaxed);
                all.set(processor);
            }
            sched_setaffinity(None, &all).expect("processors that it may use");
            own.keep_apart();
            assert_eq!((own.rest, allowed()), (REST_CHECKS, all));
            own.keep_apart();
            assert_eq!(own.rest, REST_CHECKS - 1);
        });
    }
}
