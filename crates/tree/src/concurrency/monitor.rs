//! What is seen of the workers while they work, and when another number of them is tried.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::limits::WorkerLimits;
use super::search::{Search, Step};

/// Units of work of an entry. To make a file takes about as long as to fill it if it is small, and
/// may be done long before.
pub(super) const ENTRY_UNITS: u64 = 2;

/// Entries between two looks at whether the processors idle, the first after the beginning, and the
/// time that has passed, at least: everyone idles for a moment.
pub(super) const CHECK_EVERY_ENTRIES: u64 = 128;
const CHECK_EVERY_TIME: Duration = Duration::from_millis(5);

/// Processors that are in use for less than this share of the time idle. On ext4, xfs and tmpfs
/// cached trees have them in use for 0.7 to 0.95 of it, shared blocks on btrfs for 0.6, and files
/// that have to be read from the medium for 0.4 to 0.6.
const IN_USE_AT_LEAST: f64 = 0.65;

/// How often in a row they have to be found idle.
const IDLE_CHECKS: u32 = 2;

/// Entries from one trial to the next, and the time, at least. A trial costs a few hundredths of
/// that, if it changes nothing.
const LOOK_EVERY_ENTRIES: u64 = 8192;
const LOOK_EVERY_UNITS: u64 = LOOK_EVERY_ENTRIES * ENTRY_UNITS;
const LOOK_EVERY_TIME: Duration = Duration::from_secs(1);

/// Entries that are timed at once, at least, and for each worker.
const WINDOW_ENTRIES: u64 = 64;
const WINDOW_ENTRIES_EACH: u64 = 8;

/// How long that takes, at least: within a millisecond one interruption is much.
const WINDOW_TIME: Duration = Duration::from_millis(3);

/// Entries before that, for each worker, in which those who are to wait have come to the gate.
const SETTLING_ENTRIES_EACH: u64 = 2;

/// How it goes on.
#[derive(Debug)]
pub(super) struct Monitor {
    limits: WorkerLimits,
    /// Workers at work while nothing is tried.
    settled: usize,
    /// How long nothing is tried.
    patience: Duration,
    /// How often in a row the processors were found idle.
    idle_checks: u32,
    /// When it was last seen whether fewer workers than processors get on better although all are
    /// in use.
    tried_fewer: Option<Reading>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is being tried since then.
    Steady(Reading),
    /// This number is about to be timed.
    Settling(Search, usize),
    /// This number is being timed.
    Timing(Search, usize, Reading),
}

/// What the clocks and counters say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    at: Instant,
    /// Processor time of the process.
    cpu: Duration,
    units: u64,
}

impl Reading {
    pub(super) fn now(units: u64) -> Reading {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        Reading { at: Instant::now(), cpu, units }
    }
}

impl Monitor {
    pub(super) fn new(limits: WorkerLimits) -> Monitor {
        Monitor {
            limits,
            settled: limits.begin,
            patience: Duration::ZERO,
            idle_checks: 0,
            tried_fewer: None,
            phase: Phase::Steady(Reading::now(0)),
        }
    }

    /// Takes the next step at the time of `now`. Returns how many workers are to go on, and for how
    /// many entries.
    pub(super) fn go_on(&mut self, starved: bool, now: Reading) -> (usize, u64) {
        match std::mem::replace(&mut self.phase, Phase::Steady(now)) {
            // With more workers than processors there is always one that finds nothing.
            Phase::Settling(_, number) | Phase::Timing(_, number, _)
                if starved && number <= self.limits.workers =>
            {
                (self.settled, CHECK_EVERY_ENTRIES)
            }
            Phase::Steady(since) if now.at < since.at + self.patience => {
                self.phase = Phase::Steady(since);
                (self.settled, CHECK_EVERY_ENTRIES)
            }
            Phase::Steady(since) => {
                self.patience = CHECK_EVERY_TIME;
                if self.limits.only_for_waiting && self.settled == 1 && self.is_busy(1, since, now)
                {
                    return (self.settled, CHECK_EVERY_ENTRIES);
                }
                let is_idle = !starved && !self.are_busy(since, now);
                self.idle_checks = if is_idle { self.idle_checks + 1 } else { 0 };
                let is_usual = self.settled == self.limits.workers;
                if !starved && !is_idle && is_usual && self.may_try_fewer(now) {
                    self.tried_fewer = Some(now);
                    return self.step(Search::for_fewer(self.settled), now);
                }
                if starved || is_usual && self.idle_checks < IDLE_CHECKS {
                    return (self.settled, CHECK_EVERY_ENTRIES);
                }
                self.idle_checks = 0;
                let search = Search::new(self.settled, self.limits.workers, self.limits.most);
                self.step(search.of_busy(self.is_busy(self.settled, since, now)), now)
            }
            Phase::Settling(search, number) => {
                self.phase = Phase::Timing(search, number, now);
                let entries = WINDOW_ENTRIES.max(WINDOW_ENTRIES_EACH * number as u64);
                (number, entries)
            }
            Phase::Timing(mut search, number, since) => {
                let units = now.units.saturating_sub(since.units).max(1);
                let elapsed = now.at.duration_since(since.at);
                if elapsed < WINDOW_TIME {
                    self.phase = Phase::Timing(search, number, since);
                    return (number, WINDOW_ENTRIES / 2);
                }
                search.note(number, elapsed.as_secs_f64() / units as f64);
                self.step(search, now)
            }
        }
    }

    fn step(&mut self, search: Search, now: Reading) -> (usize, u64) {
        match search.next() {
            Step::Measure(number) => {
                self.phase = Phase::Settling(search, number);
                (number, SETTLING_ENTRIES_EACH * number as u64)
            }
            Step::Settled(number) => {
                self.settled = number;
                self.phase = Phase::Steady(now);
                if search.leaves_open(number) {
                    return (number, CHECK_EVERY_ENTRIES);
                }
                self.patience = LOOK_EVERY_TIME;
                (number, LOOK_EVERY_ENTRIES)
            }
        }
    }

    /// Goes back to the beginning: of files that are long no number of workers is known.
    pub(super) fn begin_anew(&mut self, now: Reading) -> (usize, u64) {
        self.settled = self.limits.workers;
        self.patience = CHECK_EVERY_TIME;
        self.idle_checks = 0;
        self.phase = Phase::Steady(now);
        (self.settled, CHECK_EVERY_ENTRIES)
    }

    /// Whether it has not been seen for long whether fewer get on better.
    fn may_try_fewer(&self, now: Reading) -> bool {
        self.tried_fewer.is_none_or(|last| {
            now.at >= last.at + LOOK_EVERY_TIME && now.units >= last.units + LOOK_EVERY_UNITS
        })
    }

    /// Whether the processors that the workers could use were in use.
    fn are_busy(&self, since: Reading, now: Reading) -> bool {
        self.is_busy(self.limits.processors.min(self.limits.workers), since, now)
    }

    /// Whether so many processors were.
    fn is_busy(&self, processors: usize, since: Reading, now: Reading) -> bool {
        let elapsed = now.at.duration_since(since.at).as_secs_f64();
        let cpu = now.cpu.saturating_sub(since.cpu).as_secs_f64();
        cpu >= IN_USE_AT_LEAST * elapsed * processors as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::limits::tests::limits;

    fn monitor(limits: WorkerLimits) -> Monitor {
        Monitor::new(limits)
    }

    /// Lets `monitor` go on over entries that take `time(number)` each with so many workers, of which
    /// processors work for the share `busy`, until it has settled. Returns the number of workers,
    /// for how many entries they go on, and how many entries it took.
    fn settle(
        monitor: &mut Monitor,
        busy: f64,
        time: impl Fn(usize) -> Duration,
    ) -> (usize, u64, u64) {
        let mut now = Reading { at: Instant::now(), cpu: Duration::ZERO, units: 0 };
        monitor.phase = Phase::Steady(now);
        let (mut number, mut entries) = (monitor.settled, CHECK_EVERY_ENTRIES);
        let mut taken = 0;
        loop {
            let elapsed = time(number) * u32::try_from(entries).expect("it is small");
            now.at += elapsed;
            now.cpu += elapsed.mul_f64(busy * monitor.limits.processors as f64);
            now.units += entries;
            taken += entries;
            (number, entries) = monitor.go_on(false, now);
            if matches!(monitor.phase, Phase::Steady(_)) && monitor.idle_checks == 0 {
                return (number, entries, taken);
            }
        }
    }

    #[test]
    fn processors_that_idle_get_more_workers_or_fewer() {
        let micros = Duration::from_micros;
        // A server that answers after a while, however many ask.
        let waits = |number| micros(4800 / number as u64);
        assert_eq!(settle(&mut monitor(limits(2, 16)), 0.1, waits).0, 16);
        let locked = |number| micros(80 + 20 * number as u64);
        let (number, entries, taken) = settle(&mut monitor(limits(2, 16)), 0.6, locked);
        assert_eq!((number, entries), (1, LOOK_EVERY_ENTRIES));
        assert!(taken < 1200, "{taken} entries until a lock is seen");
        // No number of the user's is exceeded.
        assert_eq!(settle(&mut monitor(limits(3, 3)), 0.1, waits).0, 3);
    }

    #[test]
    fn processors_that_work_are_left_alone() {
        let time = |number| Duration::from_micros(100 / number as u64);
        let mut monitor = monitor(limits(2, 16));
        // One window with fewer says enough.
        let (number, entries, taken) = settle(&mut monitor, 0.9, time);
        assert_eq!((number, entries), (2, CHECK_EVERY_ENTRIES));
        assert!(taken < 300, "{taken} entries until that is known");
        let (number, entries, taken) = settle(&mut monitor, 0.9, time);
        assert_eq!((number, entries, taken), (2, CHECK_EVERY_ENTRIES, CHECK_EVERY_ENTRIES));
    }

    #[test]
    fn who_has_settled_on_as_many_as_there_may_be_rests() {
        for mut monitor in [monitor(limits(2, 16)), monitor(limits(8, 8))] {
            let waits = |number| Duration::from_micros(4800 / number as u64);
            let most = monitor.limits.most;
            for round in 0..3 {
                let (number, entries, _) = settle(&mut monitor, 0.1, waits);
                assert_eq!((number, entries), (most, LOOK_EVERY_ENTRIES), "{round}");
                monitor.patience = Duration::ZERO;
            }
        }
    }

    #[test]
    fn one_whose_company_costs_more_than_is_seen_gets_some_only_where_it_waits() {
        let mut monitor = monitor(limits(2, 16).one_unless_waiting());
        let shared = |number: usize| Duration::from_micros(100 / number.min(2) as u64);
        for _ in 0..3 {
            // One of two processors is in use all the time.
            assert_eq!(settle(&mut monitor, 0.5, shared).0, 1);
        }
        let waits = |number| Duration::from_micros(4800 / number as u64);
        assert_eq!(settle(&mut monitor, 0.05, waits).0, 16);
    }

    #[test]
    fn one_alone_gets_company_where_that_helps() {
        let alone = limits(2, 16).one_at_first();
        let locked = |number| Duration::from_micros(80 + 20 * number as u64);
        let (number, _, taken) = settle(&mut monitor(alone), 0.5, locked);
        assert_eq!(number, 1);
        assert!(taken < 600, "{taken} entries until a lock is seen");
        let shared = |number: usize| Duration::from_micros(100 / number.min(2) as u64);
        assert_eq!(settle(&mut monitor(alone), 0.5, shared).0, 2);
    }

    #[test]
    fn who_waits_for_an_instant_does_not_sleep_and_is_seen_too() {
        let locked = |number| Duration::from_micros(80 + 20 * number as u64);
        let (number, _, taken) = settle(&mut monitor(limits(2, 16)), 0.95, locked);
        assert_eq!(number, 1);
        assert!(taken < 800, "{taken} entries until a lock is seen");
    }

    #[test]
    fn what_was_settled_is_looked_at_again() {
        let mut monitor = monitor(limits(2, 16));
        let slow = |number| Duration::from_micros(4800 / number as u64);
        assert_eq!(settle(&mut monitor, 0.1, slow).0, 16);
        // What follows is in the page cache: more workers than processors are none the faster, and
        // each of them costs a little.
        let cached =
            |number: usize| Duration::from_micros(200 / number.min(2) as u64 + number as u64);
        let mut numbers = Vec::new();
        for _ in 0..6 {
            monitor.patience = CHECK_EVERY_TIME;
            numbers.push(settle(&mut monitor, 1.0, cached).0);
        }
        assert_eq!(numbers.last(), Some(&2), "{numbers:?}");
    }

    #[test]
    fn who_has_nothing_to_do_and_a_long_file_prove_nothing() {
        let begun = Reading { at: Instant::now(), cpu: Duration::ZERO, units: 0 };
        for steps in 0..8 {
            for is_starved in [true, false] {
                let mut monitor = monitor(limits(2, 2));
                monitor.phase = Phase::Steady(begun);
                for step in 1..=steps {
                    let at = begun.at + Duration::from_millis(10 * step);
                    monitor.go_on(false, Reading { at, ..begun });
                }
                let at = begun.at + Duration::from_secs(1);
                let now = Reading { at, ..begun };
                let next = match is_starved {
                    true => monitor.go_on(true, now),
                    false => monitor.begin_anew(now),
                };
                assert_eq!(next, (2, CHECK_EVERY_ENTRIES), "after {steps} steps");
                assert!(matches!(monitor.phase, Phase::Steady(_)));
            }
        }
    }
}
