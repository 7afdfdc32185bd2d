//! Measures the workers while they run, and decides when another number of them is tried.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

use super::limits::{
    CHECK_EVERY_ENTRIES, CHECK_EVERY_TIME, CONFIRM_SOONER, IDLE_CHECKS, IN_USE_MIN,
    SETTLING_ENTRIES_PER_WORKER, TRIAL_EVERY_ENTRIES, TRIAL_EVERY_TIME, TRIAL_EVERY_UNITS,
    WINDOW_ENTRIES, WINDOW_ENTRIES_PER_WORKER, WINDOW_TIME, WorkerLimits,
};
use super::search::Search;

/// The state of the measurement.
#[derive(Debug)]
pub(super) struct Monitor {
    limits: WorkerLimits,
    /// Workers while no trial runs.
    settled: usize,
    /// The number that the last trial found.
    found: Option<usize>,
    /// The time from the last trial to the next check.
    check_after: Duration,
    /// Checks in a row that found the processors idle.
    idle_checks: u32,
    /// When fewer workers than processors were last tried although all processors were in use.
    tried_fewer: Option<Reading>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// No trial runs, since then.
    Steady(Reading),
    /// This number is measured as soon as workers over it have stopped.
    Settling(Search, usize),
    /// This number is measured.
    Timing(Search, usize, Reading),
}

/// The clocks and counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    at: Instant,
    /// Processor time of the process.
    cpu: Duration,
    units: u64,
}

impl Reading {
    pub(super) fn now(units: u64) -> Reading {
        // Without this clock the workers seem to wait all the time, which costs speed at most.
        let cpu = clock_gettime_dynamic(DynamicClockId::Known(ClockId::ProcessCPUTime));
        let cpu = cpu.ok().and_then(|cpu| Duration::try_from(cpu).ok()).unwrap_or_default();
        Reading { at: Instant::now(), cpu, units }
    }
}

impl Monitor {
    pub(super) fn new(limits: WorkerLimits) -> Monitor {
        Monitor {
            limits,
            settled: limits.initial,
            found: None,
            check_after: Duration::ZERO,
            idle_checks: 0,
            tried_fewer: None,
            phase: Phase::Steady(Reading::now(0)),
        }
    }

    /// Takes the next step at the time of `now`; `starved` if some worker had nothing to do.
    /// Returns how many workers run next, and for how many entries.
    pub(super) fn step(&mut self, starved: bool, now: Reading) -> (usize, u64) {
        match std::mem::replace(&mut self.phase, Phase::Steady(now)) {
            // With more workers than processors one of them often has nothing to do.
            Phase::Settling(_, number) | Phase::Timing(_, number, _)
                if starved && number <= self.limits.workers =>
            {
                (self.settled, CHECK_EVERY_ENTRIES)
            }
            Phase::Steady(since) if now.at < since.at + self.check_after => {
                self.phase = Phase::Steady(since);
                (self.settled, CHECK_EVERY_ENTRIES)
            }
            Phase::Steady(since) => {
                self.check_after = CHECK_EVERY_TIME;
                let is_busy = self.is_busy(self.settled, since, now);
                if self.limits.only_while_waiting && self.settled == 1 && is_busy {
                    return (self.settled, CHECK_EVERY_ENTRIES);
                }
                // The processors that the workers can use.
                let processors = self.limits.processors.min(self.limits.workers);
                let is_idle = !starved && !self.is_busy(processors, since, now);
                self.idle_checks = if is_idle { self.idle_checks + 1 } else { 0 };
                let is_usual = self.settled == self.limits.workers;
                if !starved && !is_idle && is_usual && self.may_try_fewer(now) {
                    self.tried_fewer = Some(now);
                    return self.search(Search::for_fewer(self.settled), now);
                }
                if starved || is_usual && self.idle_checks < IDLE_CHECKS {
                    return (self.settled, CHECK_EVERY_ENTRIES);
                }
                self.idle_checks = 0;
                let WorkerLimits { workers, most, .. } = self.limits;
                self.search(Search::new(self.settled, workers, most, is_busy), now)
            }
            Phase::Settling(search, number) => {
                self.phase = Phase::Timing(search, number, now);
                let entries = WINDOW_ENTRIES.max(WINDOW_ENTRIES_PER_WORKER * number as u64);
                (number, entries)
            }
            Phase::Timing(mut search, number, since) => {
                let units = now.units.saturating_sub(since.units).max(1);
                let elapsed = now.at.duration_since(since.at);
                if elapsed < WINDOW_TIME {
                    self.phase = Phase::Timing(search, number, since);
                    return (number, WINDOW_ENTRIES / 2);
                }
                search.record(number, elapsed.as_secs_f64() / units as f64);
                self.search(search, now)
            }
        }
    }

    /// Continues or ends a trial.
    fn search(&mut self, search: Search, now: Reading) -> (usize, u64) {
        match search.settle() {
            Err(number) => {
                self.phase = Phase::Settling(search, number);
                (number, SETTLING_ENTRIES_PER_WORKER * number as u64)
            }
            Ok(number) => {
                let is_confirmed = self.found.replace(number) == Some(number);
                self.settled = number;
                self.phase = Phase::Steady(now);
                if search.is_inconclusive(number) {
                    return (number, CHECK_EVERY_ENTRIES);
                }
                // Too few workers cost more than a trial does, and the windows of one are short.
                let is_doubtful = number < self.limits.workers && !is_confirmed;
                let sooner = if is_doubtful { CONFIRM_SOONER } else { 1 };
                self.check_after = TRIAL_EVERY_TIME / sooner;
                (number, TRIAL_EVERY_ENTRIES / u64::from(sooner))
            }
        }
    }

    /// Ends a trial during which a long file was copied, which says nothing about the workers.
    pub(super) fn restart(&mut self, now: Reading) -> (usize, u64) {
        self.settled = self.limits.workers;
        self.check_after = CHECK_EVERY_TIME;
        self.idle_checks = 0;
        self.phase = Phase::Steady(now);
        (self.settled, CHECK_EVERY_ENTRIES)
    }

    /// Whether fewer workers were not tried for long.
    fn may_try_fewer(&self, now: Reading) -> bool {
        self.tried_fewer.is_none_or(|last| {
            now.at >= last.at + TRIAL_EVERY_TIME && now.units >= last.units + TRIAL_EVERY_UNITS
        })
    }

    /// Whether as many `processors` were in use.
    fn is_busy(&self, processors: usize, since: Reading, now: Reading) -> bool {
        let elapsed = now.at.duration_since(since.at).as_secs_f64();
        let cpu = now.cpu.saturating_sub(since.cpu).as_secs_f64();
        cpu >= IN_USE_MIN * elapsed * processors as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::limits::tests::limits;

    /// Steps `monitor` over entries that take `time(number)` each with that number of workers, with
    /// the processors in use for the share `busy`, until it has settled. Returns the number of
    /// workers, for how many entries they run, and how many entries the trial took.
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
            (number, entries) = monitor.step(false, now);
            if matches!(monitor.phase, Phase::Steady(_)) && monitor.idle_checks == 0 {
                return (number, entries, taken);
            }
        }
    }

    /// The time of an entry with a number of workers.
    type Time = fn(usize) -> Duration;

    /// A medium or a server answers after a while, however many ask.
    fn waits(number: usize) -> Duration {
        Duration::from_micros(4800 / number as u64)
    }

    /// Each further worker makes all wait for a lock.
    fn locked(number: usize) -> Duration {
        Duration::from_micros(80 + 20 * number as u64)
    }

    /// Two processors share the work.
    fn shared(number: usize) -> Duration {
        Duration::from_micros(100 / number.min(2) as u64)
    }

    #[test]
    fn the_fastest_number_is_settled_within_few_entries() {
        let alone = limits(2, 16).one_at_first();
        let cases: [(_, _, Time, _, _); 6] = [
            (limits(2, 16), 0.1, waits, 16, u64::MAX),
            // No number of the user's is exceeded.
            (limits(3, 3), 0.1, waits, 3, u64::MAX),
            (limits(2, 16), 0.6, locked, 1, 1199),
            // Workers that spin on a lock.
            (limits(2, 16), 0.95, locked, 1, 799),
            // A single worker gets a second if that is faster.
            (alone, 0.5, locked, 1, 599),
            (alone, 0.5, shared, 2, u64::MAX),
        ];
        for (limits, busy, time, number, entries_max) in cases {
            let what = format!("{limits:?}, {busy}");
            let (settled, _, taken) = settle(&mut Monitor::new(limits), busy, time);
            assert_eq!(settled, number, "{what}");
            assert!(taken <= entries_max, "{what}: {taken} entries until that is known");
        }
    }

    #[test]
    fn busy_processors_keep_their_workers() {
        let time = |number| Duration::from_micros(100 / number as u64);
        let mut monitor = Monitor::new(limits(2, 16));
        // One window with fewer says enough.
        let (number, entries, taken) = settle(&mut monitor, 0.9, time);
        assert_eq!((number, entries), (2, CHECK_EVERY_ENTRIES));
        assert!(taken < 300, "{taken} entries until that is known");
        let (number, entries, taken) = settle(&mut monitor, 0.9, time);
        assert_eq!((number, entries, taken), (2, CHECK_EVERY_ENTRIES, CHECK_EVERY_ENTRIES));
    }

    #[test]
    fn the_greatest_number_stays_while_it_is_the_fastest() {
        for mut monitor in [Monitor::new(limits(2, 16)), Monitor::new(limits(8, 8))] {
            let most = monitor.limits.most;
            for round in 0..3 {
                let (number, entries, _) = settle(&mut monitor, 0.1, waits);
                assert_eq!((number, entries), (most, TRIAL_EVERY_ENTRIES), "{round}");
                monitor.check_after = Duration::ZERO;
            }
        }
    }

    #[test]
    fn a_limit_of_one_is_raised_only_while_the_worker_waits() {
        let mut monitor = Monitor::new(limits(2, 16).one_unless_waiting());
        for _ in 0..3 {
            // One of two processors is in use all the time.
            assert_eq!(settle(&mut monitor, 0.5, shared).0, 1);
        }
        assert_eq!(settle(&mut monitor, 0.05, waits).0, 16);
    }

    #[test]
    fn fewer_workers_than_the_default_are_confirmed_soon() {
        let soon = TRIAL_EVERY_ENTRIES / u64::from(CONFIRM_SOONER);
        let mut monitor = Monitor::new(limits(2, 16));
        let reduced = settle(&mut monitor, 0.95, locked);
        assert_eq!((reduced.0, reduced.1), (1, soon));
        assert_eq!(monitor.check_after, TRIAL_EVERY_TIME / CONFIRM_SOONER);
        monitor.check_after = Duration::ZERO;
        let confirmed = settle(&mut monitor, 0.5, locked);
        assert_eq!((confirmed.0, confirmed.1), (1, TRIAL_EVERY_ENTRIES));
        assert_eq!(monitor.check_after, TRIAL_EVERY_TIME);
        monitor.check_after = Duration::ZERO;
        assert_eq!(settle(&mut monitor, 0.5, shared).0, 2);
    }

    #[test]
    fn a_settled_number_is_checked_again() {
        let mut monitor = Monitor::new(limits(2, 16));
        assert_eq!(settle(&mut monitor, 0.1, waits).0, 16);
        // The next files are in the page cache: more workers than processors are not faster, and
        // each costs a little.
        let cached =
            |number: usize| Duration::from_micros(200 / number.min(2) as u64 + number as u64);
        let mut numbers = Vec::new();
        for _ in 0..6 {
            monitor.check_after = CHECK_EVERY_TIME;
            numbers.push(settle(&mut monitor, 1.0, cached).0);
        }
        assert_eq!(numbers.last(), Some(&2), "{numbers:?}");
    }

    #[test]
    fn an_idle_worker_and_a_long_file_end_a_trial() {
        let start = Reading { at: Instant::now(), cpu: Duration::ZERO, units: 0 };
        for steps in 0..8 {
            for is_starved in [true, false] {
                let mut monitor = Monitor::new(limits(2, 2));
                monitor.phase = Phase::Steady(start);
                for step in 1..=steps {
                    let at = start.at + Duration::from_millis(10 * step);
                    monitor.step(false, Reading { at, ..start });
                }
                let at = start.at + Duration::from_secs(1);
                let now = Reading { at, ..start };
                let next = match is_starved {
                    true => monitor.step(true, now),
                    false => monitor.restart(now),
                };
                assert_eq!(next, (2, CHECK_EVERY_ENTRIES), "after {steps} steps");
                assert!(matches!(monitor.phase, Phase::Steady(_)));
            }
        }
    }
}
