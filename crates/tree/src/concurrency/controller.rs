//! Limits how many workers run at once, and finds the number that is the fastest.
//!
//! The default is one worker for each processor. Where entries wait for a medium or a server, more
//! workers are faster, because more entries wait at once. Where entries change a structure that all
//! files of a file system share, such as the one tree of a btrfs subvolume, workers wait for its
//! lock, and fewer may be faster. Both look alike, as processors that idle. So the controller
//! measures some entries with more workers and some with fewer ([`super::search`]), and the fastest
//! number runs until the next trial. Workers over that number wait between two entries
//! (docs/design/concurrency.md).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::limits::{
    ENTRY_UNITS, FIRST_CHECK_ENTRIES, SLICE_ENTRIES, UNIT_BYTES, WINDOW_FILE_BYTES_MAX,
    WorkerLimits,
};
use super::monitor::{Monitor, Reading};
use super::processor_use::ProcessorUse;
use crate::lock::lock;

/// The stack of a worker. The walk of a tree does not recurse. The default of 2 MiB would let fewer
/// workers run where address space is limited.
const STACK_BYTES: usize = 512 << 10;

/// Admits workers and measures them. All workers of a walk share it.
#[derive(Debug)]
pub(crate) struct ConcurrencyController {
    limits: WorkerLimits,
    pub(crate) processors: ProcessorUse,
    /// How many may run at once.
    admitted: AtomicUsize,
    /// How many exist, including the first one.
    spawned: AtomicUsize,
    /// Changes with `admitted`.
    epoch: AtomicU64,
    admission: Mutex<Admission>,
    changed: Condvar,
    /// Entries so far, and their units of work.
    done: AtomicU64,
    units: AtomicU64,
    /// The number of entries at which the monitor takes its next step; `u64::MAX` once
    /// [`open`](ConcurrencyController::open) was called.
    next_check: AtomicU64,
    monitor: Mutex<Monitor>,
}

#[derive(Debug, Default)]
struct Admission {
    running: usize,
    waiting: usize,
    /// How many of the waiting were given the place of one that stopped.
    granted: usize,
}

/// A worker's permit to run.
#[derive(Debug, Default)]
pub(crate) struct Permit {
    controller: Option<Arc<ConcurrencyController>>,
    /// The epoch in which the worker was admitted.
    admitted_in: Option<u64>,
    entries_left: u32,
}

impl ConcurrencyController {
    pub(crate) fn new(limits: WorkerLimits) -> ConcurrencyController {
        ConcurrencyController {
            limits,
            processors: ProcessorUse::counted(),
            admitted: AtomicUsize::new(limits.initial),
            spawned: AtomicUsize::new(1),
            epoch: AtomicU64::new(0),
            admission: Mutex::default(),
            changed: Condvar::new(),
            done: AtomicU64::new(0),
            units: AtomicU64::new(0),
            next_check: AtomicU64::new(FIRST_CHECK_ENTRIES),
            monitor: Mutex::new(Monitor::new(limits)),
        }
    }

    /// Admits all workers from now on, and starts no more.
    pub(crate) fn open(&self) {
        self.next_check.store(u64::MAX, Ordering::Relaxed);
        self.admit(self.limits.most);
    }

    /// Starts the workers that are wanted and do not exist, in threads of `scope` that call `work`.
    pub(crate) fn spawn_workers<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        work: impl Fn() + Copy + Send + 'scope,
    ) {
        while self.claims_spawn() {
            // If a thread cannot be created, the copy has one worker fewer.
            let name = String::from("copy");
            let thread = thread::Builder::new().name(name).stack_size(STACK_BYTES);
            let _ = engines::spawn_worker(scope, thread, work);
        }
    }

    /// Whether the caller has to start one more worker.
    fn claims_spawn(&self) -> bool {
        // A worker that is not admitted yet is there when a trial or a large file admits it.
        let wanted = self.admitted.load(Ordering::Relaxed).max(self.limits.workers);
        if self.spawned.load(Ordering::Relaxed) >= wanted || self.is_open() {
            return false;
        }
        let more = |spawned| (spawned < wanted).then_some(spawned + 1);
        self.spawned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Whether all workers are admitted because the work ends.
    fn is_open(&self) -> bool {
        self.next_check.load(Ordering::Relaxed) == u64::MAX
    }

    fn admits_all(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) >= self.spawned.load(Ordering::Relaxed)
    }

    fn admit(&self, number: usize) {
        // Under the lock, so that no worker starts to wait between the check and the wake-up.
        let _admission = lock(&self.admission);
        if self.admitted.swap(number, Ordering::Relaxed) != number {
            self.epoch.fetch_add(1, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    fn enter(&self) {
        let mut admission = lock(&self.admission);
        if admission.waiting == 0 && admission.running < self.admitted.load(Ordering::Relaxed) {
            admission.running += 1;
            return;
        }
        admission.waiting += 1;
        loop {
            if admission.granted > 0 {
                admission.granted -= 1;
                break;
            }
            if admission.running < self.admitted.load(Ordering::Relaxed) {
                admission.running += 1;
                break;
            }
            admission = self.changed.wait(admission).unwrap_or_else(PoisonError::into_inner);
        }
        admission.waiting -= 1;
    }

    fn leave(&self) {
        let mut admission = lock(&self.admission);
        let too_many = admission.running > self.admitted.load(Ordering::Relaxed);
        if admission.waiting > admission.granted && !too_many {
            admission.granted += 1;
            self.changed.notify_all();
        } else {
            admission.running -= 1;
        }
    }

    fn has_waiters(&self) -> bool {
        lock(&self.admission).waiting > 0
    }

    /// As [`Permit::record`]. If some worker had nothing to do, numbers of workers cannot be compared.
    fn record(&self, bytes: u64, starved: bool) {
        let done_now = ENTRY_UNITS + bytes / UNIT_BYTES;
        let units = self.units.fetch_add(done_now, Ordering::Relaxed) + done_now;
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let is_comparable = bytes <= WINDOW_FILE_BYTES_MAX;
        if is_comparable && done < self.next_check.load(Ordering::Relaxed) {
            return;
        }
        // Another worker takes the step.
        let Ok(mut monitor) = self.monitor.try_lock() else { return };
        if self.is_open() {
            return;
        }
        let reading = Reading::now(units);
        let (number, entries) = match is_comparable {
            true if done < self.next_check.load(Ordering::Relaxed) => return,
            true => monitor.step(starved, reading),
            false => monitor.restart(reading),
        };
        self.admit(number);
        // Other workers have counted entries meanwhile.
        let next_check = self.done.load(Ordering::Relaxed) + entries;
        let unless_open = |old| (old != u64::MAX).then_some(next_check);
        let _ = self.next_check.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unless_open);
    }
}

impl Permit {
    pub(crate) fn new(controller: &Arc<ConcurrencyController>) -> Permit {
        Permit { controller: Some(controller.clone()), ..Permit::default() }
    }

    /// Waits until the worker is admitted, unless all are.
    pub(crate) fn acquire(&mut self) {
        let Some(controller) = &self.controller else { return };
        if controller.admits_all() && self.admitted_in.is_none() {
            return;
        }
        let controller = controller.clone();
        self.entries_left = self.entries_left.saturating_sub(1);
        let epoch = controller.epoch.load(Ordering::Relaxed);
        if self.admitted_in == Some(epoch) && (self.entries_left > 0 || !controller.has_waiters()) {
            return;
        }
        self.release();
        if !controller.admits_all() {
            controller.enter();
            self.admitted_in = Some(epoch);
            self.entries_left = SLICE_ENTRIES;
        }
    }

    /// Counts further entries of the same batch.
    pub(crate) fn charge(&mut self, entries: usize) {
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        self.entries_left = self.entries_left.saturating_sub(entries);
    }

    /// Admits another worker: this one waits, or does work that does not contend.
    pub(crate) fn release(&mut self) {
        if self.admitted_in.take().is_some()
            && let Some(controller) = &self.controller
        {
            controller.leave();
        }
    }

    /// Admits another worker, if fewer workers than the default run, because they contend.
    pub(crate) fn release_if_limited(&mut self) {
        if let Some(controller) = &self.controller
            && controller.admitted.load(Ordering::Relaxed) < controller.limits.workers
        {
            self.release();
        }
    }

    /// Counts an entry of which `bytes` were moved, not shared; `starved` when some worker had nothing to do.
    pub(crate) fn record(&self, bytes: u64, starved: bool) {
        if let Some(controller) = &self.controller {
            controller.record(bytes, starved);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::limits::CHECK_EVERY_ENTRIES;
    use crate::concurrency::limits::tests::limits;

    #[test]
    fn no_more_than_admitted_run_and_all_are_admitted_in_turn() {
        for admitted in [1, 2] {
            let controller = Arc::new(ConcurrencyController::new(limits(4, 4)));
            while controller.claims_spawn() {}
            controller.next_check.store(u64::MAX, Ordering::Relaxed);
            controller.admit(admitted);
            let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let mut permit = Permit::new(&controller);
                        for entry in 0..1000 {
                            permit.acquire();
                            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            if entry % 10 == 0 {
                                permit.release();
                            }
                        }
                    });
                }
            });
            let most = most.into_inner();
            assert!((1..=admitted).contains(&most), "{most} of {admitted}");
            assert_eq!(lock(&controller.admission).running, 0);
        }
    }

    #[test]
    fn an_open_controller_admits_all() {
        let controller = Arc::new(ConcurrencyController::new(limits(2, 8)));
        while controller.claims_spawn() {}
        controller.admit(1);
        let mut first = Permit::new(&controller);
        first.acquire();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| Permit::new(&controller).acquire());
            while !controller.has_waiters() {
                std::thread::yield_now();
            }
            controller.open();
            waits.join().expect("joined");
        });
        assert!(!controller.claims_spawn(), "there is nothing left to do");
        first.acquire();
        assert!(first.admitted_in.is_none());
        assert_eq!(lock(&controller.admission).running, 0);
    }

    #[test]
    fn others_exist_while_one_is_admitted() {
        let controller = Arc::new(ConcurrencyController::new(limits(3, 12).one_at_first()));
        let (mut one, mut two) = (Permit::new(&controller), Permit::new(&controller));
        assert!(
            controller.claims_spawn() && controller.claims_spawn() && !controller.claims_spawn()
        );
        one.acquire();
        assert_eq!(lock(&controller.admission).running, 1);
        std::thread::scope(|scope| {
            let other = scope.spawn(move || two.acquire());
            while !controller.has_waiters() {
                std::thread::yield_now();
            }
            // A worker with a large file does not contend.
            one.release_if_limited();
            other.join().expect("joined");
        });
        assert_eq!(lock(&controller.admission).running, 0);
    }

    #[test]
    fn trials_run_while_workers_copy() {
        let controller = Arc::new(ConcurrencyController::new(limits(3, 12)));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut permit = Permit::new(&controller);
                    for _ in 0..20_000 {
                        permit.acquire();
                        permit.record(0, false);
                    }
                });
            }
        });
        assert_eq!(controller.done.load(Ordering::Relaxed), 60_000);
        assert_eq!(lock(&controller.admission).running, 0);
        assert!(controller.next_check.load(Ordering::Relaxed) > CHECK_EVERY_ENTRIES);
    }
}
