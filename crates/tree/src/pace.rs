//! How many workers get on best.
//!
//! As many as there are processors, as a rule. But where an entry waits for the medium, for a
//! server, or for another machine, a processor has nothing to do meanwhile, and more workers wait
//! at once. And where an entry changes a structure that all files of a file system share, on btrfs
//! the one tree of a subvolume, whoever finds it locked goes to sleep and has to be woken, so that
//! two workers may be twice as fast as one, or slower. Both look alike, processors that idle, and
//! no rule tells one from the other nor says how many workers are right. So where they idle it is
//! measured while the copy goes on (`look.rs`): some entries with more workers, some with fewer.
//! The number that was the fastest works on until the next look. Others that there are wait at a
//! gate between two entries, and take their turn.

mod look;
mod trial;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};

use crate::lock::lock;
use trial::{Reading, Trial};

/// Entries before the first look at whether all processors are too many. They may be in use and yet
/// in each other's way: who waits for a lock that is held for an instant, as that of a directory in
/// which names are made is on xfs, does not sleep.
const FIRST_LOOK_ENTRIES: u64 = 64;

/// Units of work of an entry. To make a file takes about as long as to fill it if it is small, and
/// may be done long before.
const ENTRY_UNITS: u64 = 2;

/// Bytes that are as much work as one unit.
const UNIT_BYTES: u64 = 32 << 10;

/// A file over this is most of a window, or of several: nothing can be told from one.
const TELLING_BYTES_MAX: u64 = 32 << 20;

/// Entries after which a worker lets another have its turn: a handing over costs as much as one of
/// them takes.
const TURN_ENTRIES: u32 = 64;

/// Workers for each processor, at most, unless their number is the user's.
const WORKERS_EACH_MAX: usize = 8;

/// Workers at most, unless their number is the user's.
const WORKERS_MAX: usize = 64;

/// How many workers there are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crew {
    /// As a rule.
    pub(crate) workers: usize,
    /// At first.
    begin: usize,
    processors: usize,
    /// Where more of them help.
    pub(crate) most: usize,
    /// Others join one only while that one waits.
    only_for_waiting: bool,
}

impl Crew {
    /// For so many processors; exactly `wanted`, or fewer where they are in each other's way, if
    /// that is given.
    pub(crate) fn new(processors: usize, wanted: Option<usize>) -> Crew {
        let most = (processors * WORKERS_EACH_MAX).min(WORKERS_MAX).max(processors);
        let workers = wanted.unwrap_or(processors);
        Crew {
            workers,
            begin: workers,
            processors,
            most: wanted.unwrap_or(most),
            only_for_waiting: false,
        }
    }

    /// The same where there can be no more than `workers`.
    pub(crate) fn within(self, workers: usize) -> Crew {
        let [workers, begin, most] =
            [self.workers, self.begin, self.most].map(|number| number.min(workers));
        Crew { workers, begin, most, ..self }
    }

    /// The same where others join only once it is seen that they help.
    pub(crate) fn one_at_first(self) -> Crew {
        Crew { begin: 1, ..self }
    }

    /// The same where no window of the copy shows what others cost: they join only while the one
    /// waits for a medium or a server.
    pub(crate) fn one_unless_waiting(self) -> Crew {
        Crew { only_for_waiting: true, ..self.one_at_first() }
    }
}

/// What was done for an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Bytes that were moved, not shared.
    pub(crate) bytes: u64,
    /// Its file had been made, and counted, before.
    pub(crate) made: bool,
}

/// The gate, and what is known of how many should go through it. All workers of a walk share it.
#[derive(Debug)]
pub(crate) struct Pace {
    crew: Crew,
    /// How many may be at work at once.
    admitted: AtomicUsize,
    /// How many there are, at first only the one who makes the others.
    hired: AtomicUsize,
    /// Changes with `admitted`.
    epoch: AtomicU64,
    gate: Mutex<Gate>,
    changed: Condvar,
    /// Entries so far, and their units of work.
    done: AtomicU64,
    units: AtomicU64,
    /// How many entries there will be when something has to be seen to.
    due: AtomicU64,
    trial: Mutex<Trial>,
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
pub(crate) struct Turn {
    pace: Option<Arc<Pace>>,
    /// The epoch in which it went through.
    inside: Option<u64>,
    entries_left: u32,
}

/// Opens the gate on every way out: should whoever has this panic, nobody waits for him.
pub(crate) struct Opening<'p>(pub(crate) &'p Pace);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Pace {
    /// Of as many workers as the crew has at first, who all go on.
    pub(crate) fn new(crew: Crew) -> Pace {
        Pace {
            crew,
            admitted: AtomicUsize::new(crew.begin),
            hired: AtomicUsize::new(1),
            epoch: AtomicU64::new(0),
            gate: Mutex::default(),
            changed: Condvar::new(),
            done: AtomicU64::new(0),
            units: AtomicU64::new(0),
            due: AtomicU64::new(FIRST_LOOK_ENTRIES),
            trial: Mutex::new(Trial::new(crew)),
        }
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.due.store(u64::MAX, Ordering::Relaxed);
        self.admit(self.crew.most);
    }

    /// Has as many workers join, in threads of `scope`, as there are to be. Each of them does
    /// `work`.
    pub(crate) fn hire<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        work: impl Fn() + Copy + Send + 'scope,
    ) {
        while self.hires() {
            // A thread that cannot be had is one worker fewer.
            let name = String::from("copy");
            let _ = thread::Builder::new().name(name).spawn_scoped(scope, work);
        }
    }

    /// Whether one worker more has to be made. Whoever is told so makes it.
    fn hires(&self) -> bool {
        // Who is not admitted yet is at hand when a trial or a large file lets him in.
        let wanted = self.admitted.load(Ordering::Relaxed).max(self.crew.workers);
        if self.hired.load(Ordering::Relaxed) >= wanted || self.is_open() {
            return false;
        }
        let more = |hired| (hired < wanted).then_some(hired + 1);
        self.hired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Whether the work is coming to its end, so that nobody is kept and nobody joins.
    fn is_open(&self) -> bool {
        self.due.load(Ordering::Relaxed) == u64::MAX
    }

    fn admits_all(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) >= self.hired.load(Ordering::Relaxed)
    }

    /// Whether workers are in each other's way.
    fn is_narrow(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) < self.crew.workers
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
    fn count(&self, Work { bytes, made }: Work, starved: bool) {
        let done_now = ENTRY_UNITS - u64::from(made) + bytes / UNIT_BYTES;
        let units = self.units.fetch_add(done_now, Ordering::Relaxed) + done_now;
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let is_telling = bytes <= TELLING_BYTES_MAX;
        if is_telling && done < self.due.load(Ordering::Relaxed) {
            return;
        }
        // Whoever is at it sees to it.
        let Ok(mut trial) = self.trial.try_lock() else { return };
        if self.is_open() {
            return;
        }
        let reading = Reading::now(units);
        let (number, entries) = match is_telling {
            true if done < self.due.load(Ordering::Relaxed) => return,
            true => trial.go_on(starved, reading),
            false => trial.begin_anew(reading),
        };
        self.admit(number);
        // Those who were under way meanwhile have counted too.
        let due = self.done.load(Ordering::Relaxed) + entries;
        let unless_open = |old| (old != u64::MAX).then_some(due);
        let _ = self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unless_open);
    }
}

impl Turn {
    /// A worker's place at the gate of `pace`.
    pub(crate) fn at(pace: &Arc<Pace>) -> Turn {
        Turn { pace: Some(pace.clone()), ..Turn::default() }
    }

    /// Waits until it is this worker's turn, if not all may go on.
    pub(crate) fn take(&mut self) {
        let Some(pace) = &self.pace else { return };
        if pace.admits_all() && self.inside.is_none() {
            return;
        }
        let pace = pace.clone();
        self.entries_left = self.entries_left.saturating_sub(1);
        let epoch = pace.epoch.load(Ordering::Relaxed);
        if self.inside == Some(epoch) && (self.entries_left > 0 || !pace.is_waited_for()) {
            return;
        }
        self.pass();
        if !pace.admits_all() {
            pace.enter();
            self.inside = Some(epoch);
            self.entries_left = TURN_ENTRIES;
        }
    }

    /// Counts entries that are copied in the same turn as the one before.
    pub(crate) fn goes_on(&mut self, entries: usize) {
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        self.entries_left = self.entries_left.saturating_sub(entries);
    }

    /// Lets others go on: this worker waits for something, or does what is in nobody's way.
    pub(crate) fn pass(&mut self) {
        if self.inside.take().is_some()
            && let Some(pace) = &self.pace
        {
            pace.leave();
        }
    }

    /// The same, where workers are in each other's way.
    pub(crate) fn let_by(&mut self) {
        if self.pace.as_ref().is_some_and(|pace| pace.is_narrow()) {
            self.pass();
        }
    }

    /// Counts an entry; `starved` when some worker had nothing to do.
    pub(crate) fn count(&self, work: Work, starved: bool) {
        if let Some(pace) = &self.pace {
            pace.count(work, starved);
        }
    }

    /// Counts files that were made and are to be filled later, one unit each.
    pub(crate) fn count_made(&self, files: u64) {
        if let Some(pace) = &self.pace {
            pace.units.fetch_add(files, Ordering::Relaxed);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.pass();
    }
}

#[cfg(test)]
mod tests {
    use super::trial::CHECK_EVERY_ENTRIES;
    use super::*;

    /// A crew of so many at first, on as many processors.
    pub(super) fn crew(workers: usize, most: usize) -> Crew {
        Crew { workers, begin: workers, processors: workers, most, only_for_waiting: false }
    }

    #[test]
    fn crews_have_their_bounds() {
        for (processors, wanted, workers, most) in [
            (1, None, 1, 8),
            (2, None, 2, 16),
            (16, None, 16, 64),
            (128, None, 128, 128),
            (2, Some(1), 1, 1),
            (2, Some(12), 12, 12),
        ] {
            let crew = Crew::new(processors, wanted);
            assert_eq!((crew.workers, crew.most), (workers, most), "{processors} {wanted:?}");
        }
        let four = Crew::new(4, None);
        assert_eq!(four.within(7), Crew { most: 7, ..four });
        assert_eq!(four.within(1), Crew { workers: 1, begin: 1, most: 1, ..four });
    }

    #[test]
    fn only_so_many_are_inside_and_all_come_to_their_turn() {
        for admitted in [1, 2] {
            let pace = Arc::new(Pace::new(crew(4, 4)));
            while pace.hires() {}
            pace.due.store(u64::MAX, Ordering::Relaxed);
            pace.admit(admitted);
            let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let mut turn = Turn::at(&pace);
                        for entry in 0..1000 {
                            turn.take();
                            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            if entry % 10 == 0 {
                                turn.pass();
                            }
                        }
                    });
                }
            });
            let most = most.into_inner();
            assert!((1..=admitted).contains(&most), "{most} of {admitted}");
            assert_eq!(lock(&pace.gate).inside, 0);
        }
    }

    #[test]
    fn an_open_gate_keeps_nobody() {
        let pace = Arc::new(Pace::new(crew(2, 8)));
        while pace.hires() {}
        pace.admit(1);
        let mut first = Turn::at(&pace);
        first.take();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| Turn::at(&pace).take());
            while !pace.is_waited_for() {
                std::thread::yield_now();
            }
            pace.open();
            waits.join().expect("it was let through");
        });
        assert!(!pace.hires(), "there is nothing left to do");
        first.take();
        assert!(first.inside.is_none());
        assert_eq!(lock(&pace.gate).inside, 0);
    }

    #[test]
    fn who_begins_alone_has_others_at_hand() {
        let pace = Arc::new(Pace::new(crew(3, 12).one_at_first()));
        let (mut one, mut two) = (Turn::at(&pace), Turn::at(&pace));
        assert!(pace.hires() && pace.hires() && !pace.hires());
        one.take();
        assert_eq!(lock(&pace.gate).inside, 1);
        std::thread::scope(|scope| {
            let other = scope.spawn(move || two.take());
            while !pace.is_waited_for() {
                std::thread::yield_now();
            }
            // Whoever has much to move is in nobody's way.
            one.let_by();
            other.join().expect("it was let through");
        });
        assert_eq!(lock(&pace.gate).inside, 0);
    }

    #[test]
    fn looks_change_who_waits_while_workers_work() {
        let pace = Arc::new(Pace::new(crew(3, 12)));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut turn = Turn::at(&pace);
                    for _ in 0..20_000 {
                        turn.take();
                        turn.count(Work::default(), false);
                    }
                });
            }
        });
        assert_eq!(pace.done.load(Ordering::Relaxed), 60_000);
        assert_eq!(lock(&pace.gate).inside, 0);
        assert!(pace.due.load(Ordering::Relaxed) > CHECK_EVERY_ENTRIES);
    }
}
