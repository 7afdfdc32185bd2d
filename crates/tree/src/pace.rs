//! How many workers get on best where they get into each other's way.
//!
//! To share a small file's blocks is to change a structure that all files of a file system share: on
//! btrfs the one tree of a subvolume. Whoever finds it locked goes to sleep and has to be woken, so that
//! two workers may be twice as fast as one, or slower; that hangs on the processor, and on what it is a
//! guest of, and no rule knows. So it is measured while the copy goes on: some entries with all
//! workers, some with half of them, and so on down to one, three times over. The number that was the
//! fastest works on until the next look. The others wait at a gate between two entries, and take their
//! turn.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Entries before the first look: less is not worth one.
const FIRST_LOOK_ENTRIES: u64 = 256;

/// Entries between two looks. A look costs a few hundredths of that, if it changes nothing.
const LOOK_EVERY_ENTRIES: u64 = 8192;

/// Entries that are timed at once.
const WINDOW_ENTRIES: u64 = 64;

/// Entries before that, in which those who are to wait have come to the gate.
const SETTLING_ENTRIES: u64 = 8;

/// How often each number of workers is timed. The median counts, so that no single interruption does.
const ROUNDS: usize = 3;

/// Entries after which a worker lets another have its turn: a handing over costs as much as one of
/// them takes.
const TURN_ENTRIES: u32 = 64;

/// The gate, and what is known of how many should go through it. All workers of a walk share it.
#[derive(Debug)]
pub(crate) struct Pace {
    workers: usize,
    /// How many may be at work at once.
    admitted: AtomicUsize,
    /// Changes with `admitted`.
    epoch: AtomicU64,
    gate: Mutex<Gate>,
    changed: Condvar,
    /// Entries that count, so far.
    done: AtomicU64,
    /// How many of them there will be when something has to be seen to.
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

/// How a look goes on.
#[derive(Debug)]
struct Trial {
    /// The numbers of workers to be tried, all of them first.
    numbers: Vec<usize>,
    /// How long a window took with each, round by round.
    times: Vec<[Duration; ROUNDS]>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing is being tried.
    Steady,
    /// The number of this index is about to be timed.
    Settling {
        round: usize,
        index: usize,
    },
    Timing {
        round: usize,
        index: usize,
        since: Instant,
    },
}

impl Pace {
    /// Of so many workers, who all go on at first.
    pub(crate) fn new(workers: usize) -> Pace {
        let halves = std::iter::successors(Some(workers), |number| Some(number / 2));
        let numbers: Vec<usize> = halves.take_while(|number| *number > 0).collect();
        Pace {
            workers,
            admitted: AtomicUsize::new(workers),
            epoch: AtomicU64::new(0),
            gate: Mutex::default(),
            changed: Condvar::new(),
            done: AtomicU64::new(0),
            due: AtomicU64::new(FIRST_LOOK_ENTRIES),
            trial: Mutex::new(Trial {
                times: vec![[Duration::ZERO; ROUNDS]; numbers.len()],
                numbers,
                phase: Phase::Steady,
            }),
        }
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.due.store(u64::MAX, Ordering::Relaxed);
        self.admit(self.workers);
    }

    fn admits_all(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) >= self.workers
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

    /// Counts an entry; `starved` when some worker had nothing to do, so that no number of them can
    /// be told from another.
    fn count(&self, starved: bool) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done < self.due.load(Ordering::Relaxed) {
            return;
        }
        // Whoever is at it sees to it.
        let Ok(mut trial) = self.trial.try_lock() else { return };
        if done >= self.due.load(Ordering::Relaxed) {
            let (number, entries) = trial.go_on(starved, Instant::now());
            self.admit(number);
            // Those who were under way meanwhile have counted too.
            self.due.store(self.done.load(Ordering::Relaxed) + entries, Ordering::Relaxed);
        }
    }
}

impl Trial {
    /// Takes the next step at the time `now`. Returns how many workers are to go on, and for how many
    /// entries.
    fn go_on(&mut self, starved: bool, now: Instant) -> (usize, u64) {
        let all = self.numbers[0];
        if starved {
            self.phase = Phase::Steady;
            return (all, FIRST_LOOK_ENTRIES);
        }
        match self.phase {
            Phase::Steady => self.settle(0, 0),
            Phase::Settling { round, index } => {
                self.phase = Phase::Timing { round, index, since: now };
                (self.numbers[index], WINDOW_ENTRIES)
            }
            Phase::Timing { round, index, since } => {
                self.times[index][round] = now.duration_since(since);
                if index + 1 < self.numbers.len() {
                    self.settle(round, index + 1)
                } else if round + 1 < ROUNDS {
                    self.settle(round + 1, 0)
                } else {
                    self.phase = Phase::Steady;
                    (self.fastest(), LOOK_EVERY_ENTRIES)
                }
            }
        }
    }

    fn settle(&mut self, round: usize, index: usize) -> (usize, u64) {
        self.phase = Phase::Settling { round, index };
        (self.numbers[index], SETTLING_ENTRIES)
    }

    /// The number whose median is the least; of equals the greatest.
    fn fastest(&self) -> usize {
        let median = |index: usize| {
            let mut times = self.times[index];
            times.sort_unstable();
            times[ROUNDS / 2]
        };
        let best = (0..self.numbers.len()).min_by_key(|&index| median(index));
        self.numbers[best.expect("there is at least one worker")]
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

    /// Lets others go on: this worker waits for something, or does what is in nobody's way.
    pub(crate) fn pass(&mut self) {
        if self.inside.take().is_some()
            && let Some(pace) = &self.pace
        {
            pace.leave();
        }
    }

    /// Counts an entry that was made where workers may be in each other's way.
    pub(crate) fn count(&self, starved: bool) {
        if let Some(pace) = &self.pace {
            pace.count(starved);
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
    use super::*;

    /// Goes through a look in which a window with `number` workers takes `time(number)`.
    fn look(trial: &mut Trial, time: impl Fn(usize, usize) -> u64) -> (usize, u64) {
        let mut now = Instant::now();
        let mut step = trial.go_on(false, now);
        for round in 0..ROUNDS {
            for index in 0..trial.numbers.len() {
                let number = trial.numbers[index];
                assert_eq!(step, (number, SETTLING_ENTRIES));
                assert_eq!(trial.go_on(false, now), (number, WINDOW_ENTRIES));
                now += Duration::from_micros(time(round, number));
                step = trial.go_on(false, now);
            }
        }
        step
    }

    fn trial(workers: usize) -> Trial {
        Pace::new(workers).trial.into_inner().expect("nobody has panicked")
    }

    #[test]
    fn the_fastest_number_goes_on() {
        let fastest = |workers, time: &dyn Fn(usize, usize) -> u64| {
            let (number, entries) = look(&mut trial(workers), time);
            assert_eq!(entries, LOOK_EVERY_ENTRIES);
            number
        };
        assert_eq!(fastest(2, &|_, number| [90, 100][number - 1]), 1);
        assert_eq!(fastest(2, &|_, number| [190, 100][number - 1]), 2);
        // Nothing is gained, so nobody waits.
        assert_eq!(fastest(2, &|_, _| 100), 2);
        assert_eq!(fastest(12, &|_, number| number.abs_diff(3) as u64), 3);
        assert_eq!(fastest(1, &|_, _| 100), 1);
    }

    #[test]
    fn an_interruption_decides_nothing() {
        for odd_round in 0..ROUNDS {
            let time = |round, number| match (round == odd_round, number) {
                (true, 2) => 5000,
                (_, 2) => 100,
                _ => 190,
            };
            assert_eq!(look(&mut trial(2), time).0, 2, "{odd_round}");
        }
    }

    #[test]
    fn who_has_nothing_to_do_proves_nothing() {
        let mut trial = trial(2);
        let now = Instant::now();
        for steps in 0..6 {
            for _ in 0..steps {
                trial.go_on(false, now);
            }
            assert_eq!(trial.go_on(true, now), (2, FIRST_LOOK_ENTRIES));
        }
    }

    #[test]
    fn only_so_many_are_inside_and_all_come_to_their_turn() {
        for admitted in [1, 2] {
            let pace = Arc::new(Pace::new(4));
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
        let pace = Arc::new(Pace::new(2));
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
        first.take();
        assert!(first.inside.is_none());
        assert_eq!(lock(&pace.gate).inside, 0);
    }

    #[test]
    fn looks_change_who_waits_while_workers_work() {
        let pace = Arc::new(Pace::new(3));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut turn = Turn::at(&pace);
                    for _ in 0..20_000 {
                        turn.take();
                        turn.count(false);
                    }
                });
            }
        });
        assert_eq!(pace.done.load(Ordering::Relaxed), 60_000);
        assert_eq!(lock(&pace.gate).inside, 0);
        let steady = matches!(lock(&pace.trial).phase, Phase::Steady);
        let due = pace.due.load(Ordering::Relaxed);
        assert!(!steady || due > 60_000, "{due}");
    }
}
