//! How many workers get on best.
//!
//! As many as there are processors, as a rule. But where an entry waits for the medium, for a
//! server, or for another machine, a processor has nothing to do meanwhile, and more workers wait
//! at once. And where an entry changes a structure that all files of a file system share, on btrfs
//! the one tree of a subvolume, whoever finds it locked goes to sleep and has to be woken, so that
//! two workers may be twice as fast as one, or slower. Both look alike, processors that idle, and
//! no rule tells one from the other nor says how many workers are right. So where they idle it is
//! measured while the copy goes on (`search.rs`): some entries with more workers, some with fewer.
//! The number that was the fastest works on until the next look. Others that there are wait at a
//! gate between two entries, and take their turn.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::limits::WorkerLimits;
use super::monitor::{ENTRY_UNITS, Monitor, Reading};
use crate::lock::lock;

/// Entries before the first look at whether all processors are too many. They may be in use and yet
/// in each other's way: who waits for a lock that is held for an instant, as that of a directory in
/// which names are made is on xfs, does not sleep.
const FIRST_LOOK_ENTRIES: u64 = 64;

/// Bytes that are as much work as one unit.
const UNIT_BYTES: u64 = 32 << 10;

/// A file over this is most of a window, or of several: nothing can be told from one.
const TELLING_BYTES_MAX: u64 = 32 << 20;

/// Entries after which a worker lets another have its turn: a handing over costs as much as one of
/// them takes.
const TURN_ENTRIES: u32 = 64;

/// What was done for an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntryCost {
    /// Bytes that were moved, not shared.
    pub(crate) bytes: u64,
    /// Its file had been made, and counted, before.
    pub(crate) created: bool,
}

/// The gate, and what is known of how many should go through it. All workers of a walk share it.
#[derive(Debug)]
pub(crate) struct ConcurrencyController {
    limits: WorkerLimits,
    /// How many may be at work at once.
    admitted: AtomicUsize,
    /// How many there are, at first only the one who makes the others.
    spawned: AtomicUsize,
    /// Changes with `admitted`.
    epoch: AtomicU64,
    gate: Mutex<Gate>,
    changed: Condvar,
    /// Entries so far, and their units of work.
    done: AtomicU64,
    units: AtomicU64,
    /// How many entries there will be when something has to be seen to.
    next_check: AtomicU64,
    monitor: Mutex<Monitor>,
}

#[derive(Debug, Default)]
struct Gate {
    /// Workers who have gone through and not yet come back.
    inside: usize,
    waiting: usize,
    /// Of those who wait, how many were given the place of one who came back.
    called: usize,
}

/// A worker's place at the gate.
#[derive(Debug, Default)]
pub(crate) struct Permit {
    controller: Option<Arc<ConcurrencyController>>,
    /// The epoch in which it went through.
    inside: Option<u64>,
    entries_left: u32,
}

/// Opens the gate on every way out: should whoever has this panic, nobody waits for him.
pub(crate) struct OpenOnDrop<'p>(pub(crate) &'p ConcurrencyController);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl ConcurrencyController {
    /// Of as many workers as the crew has at first, who all go on.
    pub(crate) fn new(limits: WorkerLimits) -> ConcurrencyController {
        ConcurrencyController {
            limits,
            admitted: AtomicUsize::new(limits.begin),
            spawned: AtomicUsize::new(1),
            epoch: AtomicU64::new(0),
            gate: Mutex::default(),
            changed: Condvar::new(),
            done: AtomicU64::new(0),
            units: AtomicU64::new(0),
            next_check: AtomicU64::new(FIRST_LOOK_ENTRIES),
            monitor: Mutex::new(Monitor::new(limits)),
        }
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.next_check.store(u64::MAX, Ordering::Relaxed);
        self.admit(self.limits.most);
    }

    /// Has as many workers join, in threads of `scope`, as there are to be. Each of them does
    /// `work`.
    pub(crate) fn spawn_workers<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        work: impl Fn() + Copy + Send + 'scope,
    ) {
        while self.claims_spawn() {
            // A thread that cannot be had is one worker fewer.
            let name = String::from("copy");
            let _ = thread::Builder::new().name(name).spawn_scoped(scope, work);
        }
    }

    /// Whether one worker more has to be made. Whoever is told so makes it.
    fn claims_spawn(&self) -> bool {
        // Who is not admitted yet is at hand when a trial or a large file lets him in.
        let wanted = self.admitted.load(Ordering::Relaxed).max(self.limits.workers);
        if self.spawned.load(Ordering::Relaxed) >= wanted || self.is_open() {
            return false;
        }
        let more = |spawned| (spawned < wanted).then_some(spawned + 1);
        self.spawned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Whether the work is coming to its end, so that nobody is kept and nobody joins.
    fn is_open(&self) -> bool {
        self.next_check.load(Ordering::Relaxed) == u64::MAX
    }

    fn admits_all(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) >= self.spawned.load(Ordering::Relaxed)
    }

    /// Whether workers are in each other's way.
    fn is_below_default(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) < self.limits.workers
    }

    fn admit(&self, number: usize) {
        // Under the lock, lest somebody go to sleep between looking and waiting.
        let _gate = lock(&self.gate);
        if self.admitted.swap(number, Ordering::Relaxed) != number {
            self.epoch.fetch_add(1, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    fn enter(&self) {
        let mut gate = lock(&self.gate);
        if gate.waiting == 0 && gate.inside < self.admitted.load(Ordering::Relaxed) {
            gate.inside += 1;
            return;
        }
        gate.waiting += 1;
        loop {
            if gate.called > 0 {
                gate.called -= 1;
                break;
            }
            if gate.inside < self.admitted.load(Ordering::Relaxed) {
                gate.inside += 1;
                break;
            }
            gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        gate.waiting -= 1;
    }

    fn leave(&self) {
        let mut gate = lock(&self.gate);
        let too_many = gate.inside > self.admitted.load(Ordering::Relaxed);
        if gate.waiting > gate.called && !too_many {
            gate.called += 1;
            self.changed.notify_all();
        } else {
            gate.inside -= 1;
        }
    }

    fn is_waited_for(&self) -> bool {
        lock(&self.gate).waiting > 0
    }

    /// Counts an entry; `starved` when some worker had nothing to do, so that no
    /// number of them can be told from another.
    fn record(&self, EntryCost { bytes, created }: EntryCost, starved: bool) {
        let done_now = ENTRY_UNITS - u64::from(created) + bytes / UNIT_BYTES;
        let units = self.units.fetch_add(done_now, Ordering::Relaxed) + done_now;
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let is_telling = bytes <= TELLING_BYTES_MAX;
        if is_telling && done < self.next_check.load(Ordering::Relaxed) {
            return;
        }
        // Whoever is at it sees to it.
        let Ok(mut monitor) = self.monitor.try_lock() else { return };
        if self.is_open() {
            return;
        }
        let reading = Reading::now(units);
        let (number, entries) = match is_telling {
            true if done < self.next_check.load(Ordering::Relaxed) => return,
            true => monitor.go_on(starved, reading),
            false => monitor.begin_anew(reading),
        };
        self.admit(number);
        // Those who were under way meanwhile have counted too.
        let next_check = self.done.load(Ordering::Relaxed) + entries;
        let unless_open = |old| (old != u64::MAX).then_some(next_check);
        let _ = self.next_check.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unless_open);
    }
}

impl Permit {
    /// A worker's place at the gate of `controller`.
    pub(crate) fn at(controller: &Arc<ConcurrencyController>) -> Permit {
        Permit { controller: Some(controller.clone()), ..Permit::default() }
    }

    /// Waits until it is this worker's turn, if not all may go on.
    pub(crate) fn acquire(&mut self) {
        let Some(controller) = &self.controller else { return };
        if controller.admits_all() && self.inside.is_none() {
            return;
        }
        let controller = controller.clone();
        self.entries_left = self.entries_left.saturating_sub(1);
        let epoch = controller.epoch.load(Ordering::Relaxed);
        if self.inside == Some(epoch) && (self.entries_left > 0 || !controller.is_waited_for()) {
            return;
        }
        self.release();
        if !controller.admits_all() {
            controller.enter();
            self.inside = Some(epoch);
            self.entries_left = TURN_ENTRIES;
        }
    }

    /// Counts entries that are copied in the same turn as the one before.
    pub(crate) fn charge(&mut self, entries: usize) {
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        self.entries_left = self.entries_left.saturating_sub(entries);
    }

    /// Lets others go on: this worker waits for something, or does what is in nobody's way.
    pub(crate) fn release(&mut self) {
        if self.inside.take().is_some()
            && let Some(controller) = &self.controller
        {
            controller.leave();
        }
    }

    /// The same, where workers are in each other's way.
    pub(crate) fn release_if_limited(&mut self) {
        if self.controller.as_ref().is_some_and(|controller| controller.is_below_default()) {
            self.release();
        }
    }

    /// Counts an entry; `starved` when some worker had nothing to do.
    pub(crate) fn record(&self, work: EntryCost, starved: bool) {
        if let Some(controller) = &self.controller {
            controller.record(work, starved);
        }
    }

    /// Counts files that were made and are to be filled later, one unit each.
    pub(crate) fn record_created(&self, files: u64) {
        if let Some(controller) = &self.controller {
            controller.units.fetch_add(files, Ordering::Relaxed);
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
    use crate::concurrency::limits::tests::limits;
    use crate::concurrency::monitor::CHECK_EVERY_ENTRIES;

    #[test]
    fn only_so_many_are_inside_and_all_come_to_their_turn() {
        for admitted in [1, 2] {
            let controller = Arc::new(ConcurrencyController::new(limits(4, 4)));
            while controller.claims_spawn() {}
            controller.next_check.store(u64::MAX, Ordering::Relaxed);
            controller.admit(admitted);
            let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let mut permit = Permit::at(&controller);
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
            assert_eq!(lock(&controller.gate).inside, 0);
        }
    }

    #[test]
    fn an_open_gate_keeps_nobody() {
        let controller = Arc::new(ConcurrencyController::new(limits(2, 8)));
        while controller.claims_spawn() {}
        controller.admit(1);
        let mut first = Permit::at(&controller);
        first.acquire();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| Permit::at(&controller).acquire());
            while !controller.is_waited_for() {
                std::thread::yield_now();
            }
            controller.open();
            waits.join().expect("it was let through");
        });
        assert!(!controller.claims_spawn(), "there is nothing left to do");
        first.acquire();
        assert!(first.inside.is_none());
        assert_eq!(lock(&controller.gate).inside, 0);
    }

    #[test]
    fn who_begins_alone_has_others_at_hand() {
        let controller = Arc::new(ConcurrencyController::new(limits(3, 12).one_at_first()));
        let (mut one, mut two) = (Permit::at(&controller), Permit::at(&controller));
        assert!(
            controller.claims_spawn() && controller.claims_spawn() && !controller.claims_spawn()
        );
        one.acquire();
        assert_eq!(lock(&controller.gate).inside, 1);
        std::thread::scope(|scope| {
            let other = scope.spawn(move || two.acquire());
            while !controller.is_waited_for() {
                std::thread::yield_now();
            }
            // Whoever has much to move is in nobody's way.
            one.release_if_limited();
            other.join().expect("it was let through");
        });
        assert_eq!(lock(&controller.gate).inside, 0);
    }

    #[test]
    fn looks_change_who_waits_while_workers_work() {
        let controller = Arc::new(ConcurrencyController::new(limits(3, 12)));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut permit = Permit::at(&controller);
                    for _ in 0..20_000 {
                        permit.acquire();
                        permit.record(EntryCost::default(), false);
                    }
                });
            }
        });
        assert_eq!(controller.done.load(Ordering::Relaxed), 60_000);
        assert_eq!(lock(&controller.gate).inside, 0);
        assert!(controller.next_check.load(Ordering::Relaxed) > CHECK_EVERY_ENTRIES);
    }
}
