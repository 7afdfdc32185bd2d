//! Which numbers of workers are measured, one after another, and which of them is the fastest.
//!
//! A search starts with the current number and twice as many, and doubles as long as that helps.
//! Where it does not help, or not by much, half of the number is tried, and so on down. Windows of
//! the two numbers that are compared take turns, and the median counts: entries have all sizes, and
//! an interruption affects one window.

use std::collections::BTreeMap;

use super::limits::{
    CLEARLY_FASTER, FEWER, FEWER_THAN_EXTRA, MORE, MORE_UNDER_CONTENTION, MORE_WHILE_WAITING,
    ROUNDS, Threshold,
};

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

    /// The fastest number by the windows so far.
    ///
    /// # Errors
    /// The number of which one more window has to be measured first.
    pub(super) fn settle(&self) -> Result<usize, usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with windows whose time `time` gives by round and number. Returns the number found
    /// and those of the windows.
    fn settle(mut search: Search, time: impl Fn(usize, usize) -> f64) -> (usize, Vec<usize>) {
        let mut windows = Vec::new();
        while let Err(number) = search.settle() {
            assert!(windows.len() < 100, "it does not end");
            let round = search.times.get(&number).map_or(0, Vec::len);
            search.record(number, time(round, number));
            windows.push(number);
        }
        (search.settle().expect("it has settled"), windows)
    }

    /// Searches from the default number. Returns the number found and how many windows that took.
    fn search(current: usize, most: usize, time: impl Fn(usize, usize) -> f64) -> (usize, usize) {
        let (number, windows) = settle(Search::new(current, current, most, false), time);
        (number, windows.len())
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
        let time = |_, number| if number < 2 { 2.0 } else { 1.0 };
        assert_eq!(settle(Search::new(16, 2, 16, false), time).0, 2);
    }

    #[test]
    fn windows_of_two_numbers_take_turns() {
        let (_, windows) = settle(Search::new(2, 2, 4, false), |_, number| 1.0 / number as f64);
        assert_eq!(windows, [2, 4, 2, 4, 2, 4]);
    }

    #[test]
    fn a_second_worker_that_contends_stops_at_once() {
        let windows = |busy, share| {
            let time = |_, number| if number == 1 { 1.0 } else { share };
            let (number, windows) = settle(Search::new(1, 2, 16, busy), time);
            (windows.len(), number)
        };
        assert_eq!(windows(true, 1.2), (2, 1));
        assert_eq!(windows(true, 0.9), (6, 1));
        assert!(matches!(windows(true, 0.7), (6.., 2)));
        assert_eq!(windows(false, 1.2), (6, 1), "a medium may have been slow");
    }

    #[test]
    fn two_interruptions_do_not_reduce_the_number() {
        // Windows of a cached tree on XFS, in microseconds for a unit: another program used a
        // processor at first.
        let windows = [[22.1, 34.1], [22.6, 26.6], [20.9, 9.5]];
        let time = |round: usize, number: usize| windows[round][number - 1];
        assert_eq!(settle(Search::for_fewer(2), time).0, 2);
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
