//! On which processor a worker thread starts: on another one than its parent's, if there is one.
//!
//! Linux starts or wakes a thread on an idle processor if it finds one. In a virtual machine it may not: a
//! processor that the host has taken from the guest does not count as idle (`available_idle_cpu()` in the
//! kernel's scheduler), and the host takes one that has halted. The thread then shares a processor with the one
//! that woke it, until a timer tick moves one of the two, up to 4 ms later at 250 Hz. So a new worker moves itself.
//! docs/design/placement.md has the measurements, and what a move costs.

use std::io;
use std::thread::{Builder, Scope};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

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
            leave(processor);
        }
        work();
    };
    thread.spawn_scoped(scope, started)?;
    // If the thread waits for this processor, it runs now, and moves to another one.
    std::thread::yield_now();
    Ok(())
}

/// Moves this thread from `processor` to another one that it may use. The thread may return later. If there is none,
/// or the system forbids to move, the thread stays.
fn leave(processor: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut others = allowed;
    if processor < CpuSet::MAX_CPU {
        others.unset(processor);
    }
    // Without a processor the call fails.
    if sched_setaffinity(None, &others).is_ok() {
        // If this fails, the worker keeps to the others until it ends.
        let _ = sched_setaffinity(None, &allowed);
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
                leave(processor);
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
            leave(sched_getcpu());
            leave(usize::MAX);
            assert_eq!(allowed(), only);
        });
    }
}
