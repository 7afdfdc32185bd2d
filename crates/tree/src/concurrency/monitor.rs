//! Measures the workers while they run, and decides when another number of them is tried.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

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
        match search.next() {
            Step::Measure(number) => {
                self.phase = Phase::Settling(search, number);
                (number, SETTLING_ENTRIES_PER_WORKER * number as u64)
            }
            Step::Settled(number) => {
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

// Which numbers of workers are measured, one after another, and which of them is the fastest.
//
// A search starts with the current number and twice as many, and doubles as long as that helps.
// Where it does not help, or not by much, half of the number is tried, and so on down. Windows of
// the two numbers that are compared take turns, and the median counts: entries have all sizes, and
// an interruption affects one window.

/// A search and its measurements.
#[derive(Debug)]
pub(super) struct Search {
    /// The number before the search.
    current: usize,
    default: usize,
    most: usize,
    /// Only fewer workers are tried.
    fewer_only: bool,
    /// Each running worker keeps a processor in use.
    busy: bool,
    /// Seconds for a unit of work, one value a window, by number of workers.
    times: BTreeMap<usize, Vec<f64>>,
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Measure a window with this number of workers.
    Measure(usize),
    /// This number is the fastest.
    Settled(usize),
}

impl Search {
    /// A search that starts from `current` workers, where `busy` tells whether each keeps a
    /// processor in use.
    pub(super) fn new(current: usize, default: usize, most: usize, busy: bool) -> Search {
        Search { current, default, most, fewer_only: false, busy, times: BTreeMap::new() }
    }

    /// A search for fewer workers than `current`, which is the default number.
    pub(super) fn for_fewer(current: usize) -> Search {
        Search { fewer_only: true, ..Search::new(current, current, current, false) }
    }

    /// Whether it kept the number without trying more, so that more may still be faster.
    pub(super) fn is_inconclusive(&self, settled: usize) -> bool {
        self.fewer_only && settled == self.current
    }

    /// Records the time of a unit in a window with `number` workers.
    pub(super) fn record(&mut self, number: usize, unit_secs: f64) {
        self.times.entry(number).or_default().push(unit_secs);
    }

    /// The step that follows from the windows so far.
    pub(super) fn next(&self) -> Step {
        self.settle().map_or_else(Step::Measure, Step::Settled)
    }

    /// The fastest number; or the one that has to be measured first.
    fn settle(&self) -> Result<usize, usize> {
        let (current, above) = (self.current, self.current * 2);
        let threshold = match (current < self.default, self.busy) {
            (true, true) => MORE_UNDER_CONTENTION,
            (true, false) => MORE_WHILE_WAITING,
            (false, _) => MORE,
        };
        let more_help = above <= self.most && self.is_better(above, current, threshold)?;
        if more_help && self.median(above) < CLEARLY_FASTER * self.median(current) {
            return self.climb(above);
        }
        // If workers contend, more may be a little faster and fewer much faster.
        let best = if more_help { above } else { current };
        let settled = self.descend(best)?;
        if settled == above { self.climb(above) } else { Ok(settled) }
    }

    /// The number above which more workers do not help.
    fn climb(&self, from: usize) -> Result<usize, usize> {
        let mut best = from;
        while best * 2 <= self.most && self.is_better(best * 2, best, MORE)? {
            best *= 2;
        }
        Ok(best)
    }

    /// The number below the current one under which fewer do not help, or else `best`.
    fn descend(&self, mut best: usize) -> Result<usize, usize> {
        let mut below = self.current / 2;
        while below > 0 {
            let threshold = if below >= self.default { FEWER_THAN_EXTRA } else { FEWER };
            if !self.is_better(below, best, threshold)? {
                break;
            }
            // An interruption lengthens a window and does not shorten one.
            if below < self.default && self.least(below) > self.least(best) {
                break;
            }
            best = below;
            below /= 2;
        }
        Ok(best)
    }

    /// Whether `number` workers are faster than `than` by the threshold; or which of them has to be
    /// measured first.
    fn is_better(&self, number: usize, than: usize, threshold: Threshold) -> Result<bool, usize> {
        let windows = |number| self.times.get(&number).map_or(0, Vec::len);
        if windows(than) == 0 {
            return Err(than);
        }
        let far_behind = |time: &f64| *time > threshold.gives_up_from * self.median(than);
        if self.times.get(&number).is_some_and(|times| times.iter().all(far_behind)) {
            return Ok(false);
        }
        if windows(than) < ROUNDS && windows(than) <= windows(number) {
            return Err(than);
        }
        if windows(number) < ROUNDS {
            return Err(number);
        }
        Ok(self.median(number) < threshold.takes_at_most * self.median(than))
    }

    fn least(&self, number: usize) -> f64 {
        self.times[&number].iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self, number: usize) -> f64 {
        let mut times = self.times[&number].clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

// The bounds within which the controller works.

/// How many workers a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerLimits {
    /// The default number: one for each processor, or `--jobs`.
    pub(crate) workers: usize,
    /// The number at the start.
    pub(super) initial: usize,
    pub(super) processors: usize,
    /// The number where more are faster.
    pub(crate) most: usize,
    /// More than one worker runs only while the one waits.
    pub(super) only_while_waiting: bool,
}

impl WorkerLimits {
    /// For a number of processors; with `wanted`, exactly as many, or fewer if those are faster.
    pub(crate) fn new(processors: usize, wanted: Option<usize>) -> WorkerLimits {
        let most = (processors * WORKERS_PER_PROCESSOR_MAX).min(WORKERS_MAX).max(processors);
        let workers = wanted.unwrap_or(processors);
        WorkerLimits {
            workers,
            initial: workers,
            processors,
            most: wanted.unwrap_or(most),
            only_while_waiting: false,
        }
    }

    /// At most `workers`.
    pub(crate) fn within(self, workers: usize) -> WorkerLimits {
        let [workers, initial, most] =
            [self.workers, self.initial, self.most].map(|number| number.min(workers));
        WorkerLimits { workers, initial, most, ..self }
    }

    /// One worker at the start; others run once they are measured to help.
    pub(crate) fn one_at_first(self) -> WorkerLimits {
        WorkerLimits { initial: 1, ..self }
    }

    /// One worker, unless it waits for a medium or a server: where no window of the copy shows what
    /// a second one costs.
    pub(crate) fn one_unless_waiting(self) -> WorkerLimits {
        WorkerLimits { only_while_waiting: true, ..self.one_at_first() }
    }
}

// How many workers there may be.

/// Workers for each processor, at most, unless `--jobs` gives their number.
pub(super) const WORKERS_PER_PROCESSOR_MAX: usize = 8;

/// Workers at most, unless `--jobs` gives their number.
pub(super) const WORKERS_MAX: usize = 64;

/// Entries after which a worker lets a waiting one run: the change costs as much as an entry.
pub(super) const SLICE_ENTRIES: u32 = 64;

// What counts as work.

/// Units of work of an entry: creating a small file takes about as long as filling it, and may
/// happen long before.
pub(super) const ENTRY_UNITS: u64 = 2;

/// Bytes moved that count as one unit.
pub(super) const UNIT_BYTES: u64 = 32 << 10;

/// A longer file takes most of a window, or several, which then says nothing about the workers.
pub(super) const WINDOW_FILE_BYTES_MAX: u64 = 32 << 20;

// When a trial starts.

/// Entries before the first check whether fewer workers are faster. Processors can be busy and
/// still contend: a thread that waits for a lock that is held briefly spins, such as for that of a
/// directory of XFS in which names are created.
pub(super) const FIRST_CHECK_ENTRIES: u64 = 64;

/// Entries between two checks whether the processors idle, and the time, at least: every worker
/// idles for a moment.
pub(super) const CHECK_EVERY_ENTRIES: u64 = 128;
pub(super) const CHECK_EVERY_TIME: Duration = Duration::from_millis(5);

/// Processors that are in use for less than this share of the time idle. Cached trees on ext4, xfs
/// and tmpfs use them for 0.7 to 0.95 of it, clones on btrfs for 0.6, and files read from the
/// medium for 0.4 to 0.6.
pub(super) const IN_USE_MIN: f64 = 0.65;

/// Checks in a row that must find them idle.
pub(super) const IDLE_CHECKS: u32 = 2;

/// Entries from one trial to the next, and the time, at least. A trial that changes nothing costs a
/// few hundredths of that.
pub(super) const TRIAL_EVERY_ENTRIES: u64 = 8192;
pub(super) const TRIAL_EVERY_UNITS: u64 = TRIAL_EVERY_ENTRIES * ENTRY_UNITS;
pub(super) const TRIAL_EVERY_TIME: Duration = Duration::from_secs(1);

/// A number below the default is checked for the first time after a fraction of that, of which this
/// is the denominator.
pub(super) const CONFIRM_SOONER: u32 = 8;

// How a trial measures.

/// Entries of a window, at least, and for each worker.
pub(super) const WINDOW_ENTRIES: u64 = 64;
pub(super) const WINDOW_ENTRIES_PER_WORKER: u64 = 8;

/// Length of a window, at least: in a millisecond one interruption is much.
pub(super) const WINDOW_TIME: Duration = Duration::from_millis(3);

/// Entries for each worker before a window starts, in which workers over the new number stop.
pub(super) const SETTLING_ENTRIES_PER_WORKER: u64 = 2;

/// Windows for each number of workers. The median counts.
pub(super) const ROUNDS: usize = 3;

/// How much faster one number of workers must be than another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    /// The share of the other number's time that it may take at most.
    pub(super) takes_at_most: f64,
    /// If every window so far took more than this share, no further one is measured.
    pub(super) gives_up_from: f64,
}

/// For more workers. A few percent are noise, and a worker costs memory and descriptors.
pub(super) const MORE: Threshold = Threshold { takes_at_most: 0.93, gives_up_from: 1.4 };

/// For more workers where fewer than processors were faster, or are likely to be. Kernel threads
/// that find no processor during the window do their work later. Each window in which workers
/// contend is time lost.
pub(super) const MORE_UNDER_CONTENTION: Threshold =
    Threshold { takes_at_most: 0.85, gives_up_from: 1.05 };

/// For more workers where fewer than the default number run, and wait. How long a medium takes is
/// too uneven to give up after one window.
pub(super) const MORE_WHILE_WAITING: Threshold =
    Threshold { gives_up_from: MORE.gives_up_from, ..MORE_UNDER_CONTENTION };

/// For fewer workers than the default number. That may be wrong a moment later.
pub(super) const FEWER: Threshold = Threshold { takes_at_most: 0.97, gives_up_from: 1.4 };

/// For fewer workers where there are more than the default number, which are not needed any more.
pub(super) const FEWER_THAN_EXTRA: Threshold =
    Threshold { takes_at_most: 1.03, gives_up_from: 1.4 };

/// If more workers take less than this share, they wait for the medium, and fewer are not tried.
pub(super) const CLEARLY_FASTER: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::monitor::limits_tests::limits;

    fn monitor(limits: WorkerLimits) -> Monitor {
        Monitor::new(limits)
    }

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

    #[test]
    fn processors_that_idle_get_more_workers_or_fewer() {
        let micros = Duration::from_micros;
        // A server that answers after a while, however many ask.
        let waits = |number| micros(4800 / number as u64);
        assert_eq!(settle(&mut monitor(limits(2, 16)), 0.1, waits).0, 16);
        let locked = |number| micros(80 + 20 * number as u64);
        let (number, entries, taken) = settle(&mut monitor(limits(2, 16)), 0.6, locked);
        assert_eq!((number, entries), (1, TRIAL_EVERY_ENTRIES / u64::from(CONFIRM_SOONER)));
        assert!(taken < 1200, "{taken} entries until a lock is seen");
        // No number of the user's is exceeded.
        assert_eq!(settle(&mut monitor(limits(3, 3)), 0.1, waits).0, 3);
    }

    #[test]
    fn busy_processors_keep_their_workers() {
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
    fn the_greatest_number_stays_while_it_is_the_fastest() {
        for mut monitor in [monitor(limits(2, 16)), monitor(limits(8, 8))] {
            let waits = |number| Duration::from_micros(4800 / number as u64);
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
    fn a_single_worker_gets_a_second_if_that_is_faster() {
        let alone = limits(2, 16).one_at_first();
        let locked = |number| Duration::from_micros(80 + 20 * number as u64);
        let (number, _, taken) = settle(&mut monitor(alone), 0.5, locked);
        assert_eq!(number, 1);
        assert!(taken < 600, "{taken} entries until a lock is seen");
        let shared = |number: usize| Duration::from_micros(100 / number.min(2) as u64);
        assert_eq!(settle(&mut monitor(alone), 0.5, shared).0, 2);
    }

    #[test]
    fn workers_that_spin_on_a_lock_are_reduced() {
        let locked = |number| Duration::from_micros(80 + 20 * number as u64);
        let (number, _, taken) = settle(&mut monitor(limits(2, 16)), 0.95, locked);
        assert_eq!(number, 1);
        assert!(taken < 800, "{taken} entries until a lock is seen");
    }

    #[test]
    fn fewer_workers_than_the_default_are_confirmed_soon() {
        let locked = |number| Duration::from_micros(80 + 20 * number as u64);
        let shared = |number: usize| Duration::from_micros(100 / number.min(2) as u64);
        let soon = TRIAL_EVERY_ENTRIES / u64::from(CONFIRM_SOONER);
        let mut monitor = monitor(limits(2, 16));
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
        let mut monitor = monitor(limits(2, 16));
        let slow = |number| Duration::from_micros(4800 / number as u64);
        assert_eq!(settle(&mut monitor, 0.1, slow).0, 16);
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
                let mut monitor = monitor(limits(2, 2));
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

#[cfg(test)]
mod search_tests {
    use super::*;

    /// Searches with windows whose time `time` gives by round and number. Returns the number found
    /// and how many windows that took.
    fn search(current: usize, most: usize, time: impl Fn(usize, usize) -> f64) -> (usize, usize) {
        let mut search = Search::new(current, current, most, false);
        for windows in 0..100 {
            match search.next() {
                Step::Settled(number) => return (number, windows),
                Step::Measure(number) => {
                    let round = search.times.get(&number).map_or(0, Vec::len);
                    search.record(number, time(round, number));
                }
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn the_fastest_number_is_found() {
        // Twice as many take half the time, up to four, and then no less.
        assert_eq!(search(2, 16, |_, number| 1.0 / number.min(4) as f64), (4, 9));
        assert_eq!(search(2, 16, |_, number| 1.0 - 0.05 * number.min(4) as f64), (4, 12));
        assert_eq!(search(2, 16, |_, number| 1.0 / number as f64), (16, 12));
        // The workers contend.
        assert_eq!(search(2, 16, |_, number| [0.91, 1.15, 1.15, 1.06][number.min(4) - 1]), (1, 9));
        assert_eq!(search(2, 16, |_, number| 0.9 + 0.05 * number as f64), (1, 9));
        assert_eq!(search(12, 12, |_, number| number.abs_diff(3) as f64 + 1.0), (3, 10));
        // The number makes no difference.
        assert_eq!(search(2, 16, |_, _| 1.0), (2, 9));
        assert_eq!(search(1, 1, |_, _| 1.0), (1, 0));
        assert_eq!(search(3, 5, |_, number| 1.0 / number as f64), (3, 2));
    }

    #[test]
    fn extra_workers_stop_when_they_do_not_help() {
        let mut search = Search::new(16, 2, 16, false);
        while let Step::Measure(number) = search.next() {
            search.record(number, if number < 2 { 2.0 } else { 1.0 });
        }
        assert_eq!(search.next(), Step::Settled(2));
    }

    #[test]
    fn windows_of_two_numbers_take_turns() {
        let mut search = Search::new(2, 2, 4, false);
        let mut order = Vec::new();
        while let Step::Measure(number) = search.next() {
            order.push(number);
            search.record(number, 1.0 / number as f64);
        }
        assert_eq!(order, [2, 4, 2, 4, 2, 4]);
    }

    #[test]
    fn a_second_worker_that_contends_stops_at_once() {
        let windows = |busy, share| {
            let mut search = Search::new(1, 2, 16, busy);
            let mut windows = 0;
            while let Step::Measure(number) = search.next() {
                windows += 1;
                search.record(number, if number == 1 { 1.0 } else { share });
            }
            (windows, search.next())
        };
        assert_eq!(windows(true, 1.2), (2, Step::Settled(1)));
        assert_eq!(windows(true, 0.9), (6, Step::Settled(1)));
        assert!(matches!(windows(true, 0.7), (6.., Step::Settled(2))));
        assert_eq!(windows(false, 1.2), (6, Step::Settled(1)), "a medium may have been slow");
    }

    #[test]
    fn two_interruptions_do_not_reduce_the_number() {
        // Windows of a cached tree on XFS, in microseconds for a unit: another program used a
        // processor at first.
        let windows = [[22.1, 34.1], [22.6, 26.6], [20.9, 9.5]];
        let mut search = Search::for_fewer(2);
        while let Step::Measure(number) = search.next() {
            let round = search.times.get(&number).map_or(0, Vec::len);
            search.record(number, windows[round][number - 1]);
        }
        assert_eq!(search.next(), Step::Settled(2));
    }

    #[test]
    fn an_interruption_decides_nothing() {
        for odd_round in 0..ROUNDS {
            for odd_number in [1, 2, 4] {
                let time = |round, number| match round == odd_round && number == odd_number {
                    true => 50.0,
                    false => 1.0,
                };
                assert_eq!(search(2, 16, time).0, 2, "{odd_number} workers in {odd_round}");
            }
        }
    }
}

#[cfg(test)]
pub(super) mod limits_tests {
    use super::*;

    /// `workers` at the start, on as many processors.
    pub(in crate::concurrency) fn limits(workers: usize, most: usize) -> WorkerLimits {
        WorkerLimits {
            workers,
            initial: workers,
            processors: workers,
            most,
            only_while_waiting: false,
        }
    }

    #[test]
    fn workers_are_bounded_by_processors_and_jobs() {
        for (processors, wanted, workers, most) in [
            (1, None, 1, 8),
            (2, None, 2, 16),
            (16, None, 16, 64),
            (128, None, 128, 128),
            (2, Some(1), 1, 1),
            (2, Some(12), 12, 12),
        ] {
            let limits = WorkerLimits::new(processors, wanted);
            assert_eq!((limits.workers, limits.most), (workers, most), "{processors} {wanted:?}");
        }
        let four = WorkerLimits::new(4, None);
        assert_eq!(four.within(7), WorkerLimits { most: 7, ..four });
        assert_eq!(four.within(1), WorkerLimits { workers: 1, initial: 1, most: 1, ..four });
    }
}
