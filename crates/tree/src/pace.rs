//! How many workers get on best.
//!
//! As many as there are processors, as a rule. But where an entry waits for the medium, for a server,
//! or for another machine, a processor has nothing to do meanwhile, and more workers wait at once. And
//! where an entry changes a structure that all files of a file system share, on btrfs the one tree of a
//! subvolume, whoever finds it locked goes to sleep and has to be woken, so that two workers may be twice
//! as fast as one, or slower. Both look alike, processors that idle, and no rule tells one from the
//! other nor says how many workers are right. So where they idle it is measured while the copy goes on
//! (`look.rs`): some entries with more workers, some with fewer. The number that was the fastest works on
//! until the next look. Others that there are wait at a gate between two entries, and take their turn.

mod look;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::lock::lock;
use look::{Look, Step};

/// Entries between two looks at whether the processors idle, the first after the beginning, and the time
/// that has passed, at least: everyone idles for a moment.
const CHECK_EVERY_ENTRIES: u64 = 128;
const CHECK_EVERY_TIME: Duration = Duration::from_millis(5);

/// Processors that are in use for less than this share of the time idle. On ext4, xfs and tmpfs cached
/// trees have them in use for 0.7 to 0.95 of it, shared blocks on btrfs for 0.6, and files that have to
/// be read from the medium for 0.4 to 0.6.
const IN_USE_AT_LEAST: f64 = 0.65;

/// How often in a row they have to be found idle.
const IDLE_CHECKS: u32 = 2;

/// Entries before the first look at whether all processors are too many. They may be in use and yet in each
/// other's way: who waits for a lock that is held for an instant, as that of a directory in which names are
/// made is on xfs, does not sleep.
const FIRST_LOOK_ENTRIES: u64 = 64;

/// Entries from one trial to the next, and the time, at least. A trial costs a few hundredths of that, if
/// it changes nothing.
const LOOK_EVERY_ENTRIES: u64 = 8192;
const LOOK_EVERY_TIME: Duration = Duration::from_secs(1);

/// Entries that are timed at once, at least, and for each worker.
const WINDOW_ENTRIES: u64 = 64;
const WINDOW_ENTRIES_EACH: u64 = 8;

/// How long that takes, at least: within a millisecond one interruption is much.
const WINDOW_TIME: Duration = Duration::from_millis(3);

/// Entries before that, for each worker, in which those who are to wait have come to the gate.
const SETTLING_ENTRIES_EACH: u64 = 2;

/// An entry that moves so many bytes more is as much work as two.
const UNIT_BYTES: u64 = 64 << 10;

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
}

impl Crew {
    /// For so many processors; exactly `wanted`, or fewer where they are in each other's way, if that is
    /// given.
    pub(crate) fn new(processors: usize, wanted: Option<usize>) -> Crew {
        let most = (processors * WORKERS_EACH_MAX).min(WORKERS_MAX).max(processors);
        let workers = wanted.unwrap_or(processors);
        Crew { workers, begin: workers, processors, most: wanted.unwrap_or(most) }
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

/// How it goes on.
#[derive(Debug)]
struct Trial {
    crew: Crew,
    /// Workers at work while nothing is tried.
    settled: usize,
    /// How long nothing is tried.
    patience: Duration,
    /// How often in a row the processors were found idle.
    idle_checks: u32,
    /// When it was last seen whether fewer workers than processors get on better although all are in use.
    tried_fewer: Option<Reading>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is being tried since then.
    Steady(Reading),
    /// This number is about to be timed.
    Settling(Look, usize),
    /// This number is being timed.
    Timing(Look, usize, Reading),
}

/// What the clocks and counters say.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    /// Processor time of the process.
    cpu: Duration,
    units: u64,
}

impl Reading {
    fn now(units: u64) -> Reading {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        Reading { at: Instant::now(), cpu, units }
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
            trial: Mutex::new(Trial {
                crew,
                settled: crew.begin,
                patience: Duration::ZERO,
                idle_checks: 0,
                tried_fewer: None,
                phase: Phase::Steady(Reading::now(0)),
            }),
        }
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.due.store(u64::MAX, Ordering::Relaxed);
        self.admit(self.crew.most);
    }

    /// Has as many workers join, in threads of `scope`, as there are to be. Each of them does `work`.
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

    /// Counts an entry of so many bytes; `starved` when some worker had nothing to do, so that no
    /// number of them can be told from another.
    fn count(&self, bytes: u64, starved: bool) {
        let units = self.units.fetch_add(1 + bytes / UNIT_BYTES, Ordering::Relaxed);
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
        let reading = Reading::now(units + 1 + bytes / UNIT_BYTES);
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

impl Trial {
    /// Takes the next step at the time of `now`. Returns how many workers are to go on, and for how
    /// many entries.
    fn go_on(&mut self, starved: bool, now: Reading) -> (usize, u64) {
        match std::mem::replace(&mut self.phase, Phase::Steady(now)) {
            // With more workers than processors there is always one that finds nothing.
            Phase::Settling(_, number) | Phase::Timing(_, number, _)
                if starved && number <= self.crew.workers =>
            {
                (self.settled, CHECK_EVERY_ENTRIES)
            }
            Phase::Steady(since) if now.at < since.at + self.patience => {
                self.phase = Phase::Steady(since);
                (self.settled, CHECK_EVERY_ENTRIES)
            }
            Phase::Steady(since) => {
                self.patience = CHECK_EVERY_TIME;
                let is_idle = !starved && !self.are_busy(since, now);
                self.idle_checks = if is_idle { self.idle_checks + 1 } else { 0 };
                let is_usual = self.settled == self.crew.workers;
                if !starved && !is_idle && is_usual && self.may_try_fewer(now) {
                    self.tried_fewer = Some(now);
                    return self.step(Look::for_fewer(self.settled), now);
                }
                if starved || is_usual && self.idle_checks < IDLE_CHECKS {
                    return (self.settled, CHECK_EVERY_ENTRIES);
                }
                self.idle_checks = 0;
                self.step(Look::new(self.settled, self.crew.workers, self.crew.most), now)
            }
            Phase::Settling(look, number) => {
                self.phase = Phase::Timing(look, number, now);
                let entries = WINDOW_ENTRIES.max(WINDOW_ENTRIES_EACH * number as u64);
                (number, entries)
            }
            Phase::Timing(mut look, number, since) => {
                let units = now.units.saturating_sub(since.units).max(1);
                let elapsed = now.at.duration_since(since.at);
                if elapsed < WINDOW_TIME {
                    self.phase = Phase::Timing(look, number, since);
                    return (number, WINDOW_ENTRIES / 2);
                }
                look.note(number, elapsed.as_secs_f64() / units as f64);
                self.step(look, now)
            }
        }
    }

    fn step(&mut self, look: Look, now: Reading) -> (usize, u64) {
        match look.next() {
            Step::Time(number) => {
                self.phase = Phase::Settling(look, number);
                (number, SETTLING_ENTRIES_EACH * number as u64)
            }
            Step::Settled(number) => {
                self.settled = number;
                self.phase = Phase::Steady(now);
                if look.leaves_open(number) {
                    return (number, CHECK_EVERY_ENTRIES);
                }
                self.patience = LOOK_EVERY_TIME;
                (number, LOOK_EVERY_ENTRIES)
            }
        }
    }

    /// Goes back to the beginning: of files that are long no number of workers is known.
    fn begin_anew(&mut self, now: Reading) -> (usize, u64) {
        self.settled = self.crew.workers;
        self.patience = CHECK_EVERY_TIME;
        self.idle_checks = 0;
        self.phase = Phase::Steady(now);
        (self.settled, CHECK_EVERY_ENTRIES)
    }

    /// Whether it has not been seen for long whether fewer get on better.
    fn may_try_fewer(&self, now: Reading) -> bool {
        self.tried_fewer.is_none_or(|last| {
            now.at >= last.at + LOOK_EVERY_TIME && now.units >= last.units + LOOK_EVERY_ENTRIES
        })
    }

    /// Whether the processors that the workers could use were in use.
    fn are_busy(&self, since: Reading, now: Reading) -> bool {
        let processors = self.crew.processors.min(self.crew.workers) as f64;
        let elapsed = now.at.duration_since(since.at).as_secs_f64();
        let cpu = now.cpu.saturating_sub(since.cpu).as_secs_f64();
        cpu >= IN_USE_AT_LEAST * elapsed * processors
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

    /// The same, where workers are in each other's way.
    pub(crate) fn let_by(&mut self) {
        if self.pace.as_ref().is_some_and(|pace| pace.is_narrow()) {
            self.pass();
        }
    }

    /// Counts an entry of which so many bytes were moved; `starved` when some worker had nothing to do.
    pub(crate) fn count(&self, bytes: u64, starved: bool) {
        if let Some(pace) = &self.pace {
            pace.count(bytes, starved);
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

    /// A crew of so many at first, on as many processors.
    fn crew(workers: usize, most: usize) -> Crew {
        Crew { workers, begin: workers, processors: workers, most }
    }

    fn trial(crew: Crew) -> Trial {
        Pace::new(crew).trial.into_inner().expect("nobody has panicked")
    }

    /// Lets `trial` go on over entries that take `time(number)` each with so many workers, of which
    /// processors work for the share `busy`, until it has settled. Returns the number of workers, for
    /// how many entries they go on, and how many entries it took.
    fn settle(trial: &mut Trial, busy: f64, time: impl Fn(usize) -> Duration) -> (usize, u64, u64) {
        let mut now = Reading { at: Instant::now(), cpu: Duration::ZERO, units: 0 };
        trial.phase = Phase::Steady(now);
        let (mut number, mut entries) = (trial.settled, CHECK_EVERY_ENTRIES);
        let mut taken = 0;
        loop {
            let elapsed = time(number) * u32::try_from(entries).expect("it is small");
            now.at += elapsed;
            now.cpu += elapsed.mul_f64(busy * trial.crew.processors as f64);
            now.units += entries;
            taken += entries;
            (number, entries) = trial.go_on(false, now);
            if matches!(trial.phase, Phase::Steady(_)) && trial.idle_checks == 0 {
                return (number, entries, taken);
            }
        }
    }

    #[test]
    fn processors_that_idle_get_more_workers_or_fewer() {
        let micros = Duration::from_micros;
        // A server that answers after a while, however many ask.
        let waits = |number| micros(4800 / number as u64);
        assert_eq!(settle(&mut trial(crew(2, 16)), 0.1, waits).0, 16);
        let locked = |number| micros(80 + 20 * number as u64);
        let (number, entries, taken) = settle(&mut trial(crew(2, 16)), 0.6, locked);
        assert_eq!((number, entries), (1, LOOK_EVERY_ENTRIES));
        assert!(taken < 1200, "{taken} entries until a lock is seen");
        // No number of the user's is exceeded.
        assert_eq!(settle(&mut trial(crew(3, 3)), 0.1, waits).0, 3);
    }

    #[test]
    fn processors_that_work_are_left_alone() {
        let time = |number| Duration::from_micros(100 / number as u64);
        let mut trial = trial(crew(2, 16));
        // One window with fewer says enough.
        let (number, entries, taken) = settle(&mut trial, 0.9, time);
        assert_eq!((number, entries), (2, CHECK_EVERY_ENTRIES));
        assert!(taken < 300, "{taken} entries until that is known");
        let (number, entries, taken) = settle(&mut trial, 0.9, time);
        assert_eq!((number, entries, taken), (2, CHECK_EVERY_ENTRIES, CHECK_EVERY_ENTRIES));
    }

    #[test]
    fn who_has_settled_on_as_many_as_there_may_be_rests() {
        for mut trial in [trial(crew(2, 16)), trial(crew(8, 8))] {
            let waits = |number| Duration::from_micros(4800 / number as u64);
            let most = trial.crew.most;
            for round in 0..3 {
                let (number, entries, _) = settle(&mut trial, 0.1, waits);
                assert_eq!((number, entries), (most, LOOK_EVERY_ENTRIES), "{round}");
                trial.patience = Duration::ZERO;
            }
        }
    }

    #[test]
    fn one_alone_gets_company_where_that_helps() {
        let alone = crew(2, 16).one_at_first();
        let locked = |number| Duration::from_micros(80 + 20 * number as u64);
        let (number, _, taken) = settle(&mut trial(alone), 0.5, locked);
        assert_eq!(number, 1);
        assert!(taken < 600, "{taken} entries until a lock is seen");
        let shared = |number: usize| Duration::from_micros(100 / number.min(2) as u64);
        assert_eq!(settle(&mut trial(alone), 0.5, shared).0, 2);
    }

    #[test]
    fn who_waits_for_an_instant_does_not_sleep_and_is_seen_too() {
        let locked = |number| Duration::from_micros(80 + 20 * number as u64);
        let (number, _, taken) = settle(&mut trial(crew(2, 16)), 0.95, locked);
        assert_eq!(number, 1);
        assert!(taken < 800, "{taken} entries until a lock is seen");
    }

    #[test]
    fn what_was_settled_is_looked_at_again() {
        let mut trial = trial(crew(2, 16));
        let slow = |number| Duration::from_micros(4800 / number as u64);
        assert_eq!(settle(&mut trial, 0.1, slow).0, 16);
        // What follows is in the page cache: more workers than processors are none the faster, and
        // each of them costs a little.
        let cached =
            |number: usize| Duration::from_micros(200 / number.min(2) as u64 + number as u64);
        let mut numbers = Vec::new();
        for _ in 0..6 {
            trial.patience = CHECK_EVERY_TIME;
            numbers.push(settle(&mut trial, 1.0, cached).0);
        }
        assert_eq!(numbers.last(), Some(&2), "{numbers:?}");
    }

    #[test]
    fn who_has_nothing_to_do_and_a_long_file_prove_nothing() {
        let begun = Reading { at: Instant::now(), cpu: Duration::ZERO, units: 0 };
        for steps in 0..8 {
            for is_starved in [true, false] {
                let mut trial = trial(crew(2, 2));
                trial.phase = Phase::Steady(begun);
                for step in 1..=steps {
                    let at = begun.at + Duration::from_millis(10 * step);
                    trial.go_on(false, Reading { at, ..begun });
                }
                let at = begun.at + Duration::from_secs(1);
                let now = Reading { at, ..begun };
                let next = match is_starved {
                    true => trial.go_on(true, now),
                    false => trial.begin_anew(now),
                };
                assert_eq!(next, (2, CHECK_EVERY_ENTRIES), "after {steps} steps");
                assert!(matches!(trial.phase, Phase::Steady(_)));
            }
        }
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
                        turn.count(1, false);
                    }
                });
            }
        });
        assert_eq!(pace.done.load(Ordering::Relaxed), 60_000);
        assert_eq!(lock(&pace.gate).inside, 0);
        assert!(pace.due.load(Ordering::Relaxed) > CHECK_EVERY_ENTRIES);
    }
}
