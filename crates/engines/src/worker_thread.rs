//! Threads that share the work of the thread that starts them, each on a processor of its own from the start.
//!
//! Linux starts a thread on an idle processor if it finds one. In a virtual machine it may not: a processor that
//! the host has taken from the guest does not count as idle (`available_idle_cpu()` in the kernel's scheduler),
//! and the host takes one that has halted. The thread then starts on the processor of its parent, and waits there
//! until a timer tick moves one of the two, 4 ms at 250 Hz. docs/design/engine-selection.md has the measurements.

use std::io;
use std::thread::{Builder, Scope};

use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

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
        leave(processor);
        work();
    };
    thread.spawn_scoped(scope, started)?;
    // If the thread waits for this processor, it runs now, and moves to another one.
    std::thread::yield_now();
    Ok(())
}

/// Moves this thread to another of the processors that it may use, if it runs on `processor`. It may return to
/// it later.
fn leave(processor: usize) {
    if sched_getcpu() != processor {
        return;
    }
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut others = allowed;
    others.unset(processor);
    // With one processor there is no other, and the call fails.
    if sched_setaffinity(None, &others).is_ok() {
        // If it failed, the thread would stay on the others, which is correct as well.
        let _ = sched_setaffinity(None, &allowed);
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::CpuSet;

    use super::*;

    #[test]
    fn a_thread_leaves_the_processor_and_may_return() {
        let allowed = sched_getaffinity(None).expect("the affinity");
        if allowed.count() < 2 {
            eprintln!("SKIPPED: there is one processor");
            return;
        }
        // The kernel may move it back before the processor is read again, but not each time.
        let leaves = |_| {
            let before = sched_getcpu();
            leave(before);
            assert_eq!(sched_getaffinity(None), Ok(allowed));
            sched_getcpu() != before
        };
        assert!((0..100).any(leaves));
    }

    #[test]
    fn a_thread_stays_on_its_only_processor() {
        let work = || {
            let mut only = CpuSet::new();
            only.set(sched_getcpu());
            sched_setaffinity(None, &only).expect("a processor that it runs on");
            leave(sched_getcpu());
            assert_eq!(sched_getaffinity(None), Ok(only));
        };
        // The affinity is that of a thread of its own.
        std::thread::scope(|scope| spawn_worker(scope, Builder::new(), work).expect("a thread"));
    }
}
