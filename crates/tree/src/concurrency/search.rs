//! Which numbers of workers are timed, one after another, and which of them goes on.
//!
//! A look begins with the number at work and twice as many, and goes on doubling for as long as
//! that helps. Where it does not, or not by much, half of them are tried, and so on down. Each is
//! timed in several windows that take turns with those of the number it is held against, and the
//! median counts: entries are of all sizes, and an interruption hits one window.

use std::collections::BTreeMap;

/// How often each number is timed.
const ROUNDS: usize = 3;

/// What a number of workers has to show against another one.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    /// The share of the time that it may take at most.
    takes_at_most: f64,
    /// One that takes this share in every window so far is not given another.
    gives_up_from: f64,
}

/// For more than before. A few percent are noise, and a worker costs memory and descriptors.
const MORE: Threshold = Threshold { takes_at_most: 0.93, gives_up_from: 1.4 };

/// For more where fewer than processors were seen to get on better, or are likely to: what a window
/// leaves to the kernel's own threads, which then have no processor, is paid later. Each window in which
/// they are in each other's way is time lost. (How long a medium takes is too uneven to tell that from one.)
const MORE_UNDER_CONTENTION: Threshold = Threshold { takes_at_most: 0.85, gives_up_from: 1.05 };

/// For fewer than there are as a rule. That may be wrong a moment later.
const FEWER: Threshold = Threshold { takes_at_most: 0.97, gives_up_from: 1.4 };

/// For fewer where they are more than as a rule, and not needed any more.
const FEWER_OF_MORE: Threshold = Threshold { takes_at_most: 1.03, gives_up_from: 1.4 };

/// If they take no more than this share, it is the medium that they wait for.
const CLEARLY_TAKE_AT_MOST: f64 = 0.8;

/// What is known so far.
#[derive(Debug)]
pub(super) struct Search {
    /// The number at work before.
    current: usize,
    /// The number as a rule, and the greatest that there may be.
    usual: usize,
    most: usize,
    /// It is only to be seen whether fewer get on better.
    fewer_only: bool,
    /// Those at work keep as many processors in use.
    busy: bool,
    /// Seconds that a unit of work took, window by window, by number of workers.
    times: BTreeMap<usize, Vec<f64>>,
}

/// What has to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// This number has to be timed in another window.
    Measure(usize),
    /// This number works on.
    Settled(usize),
}

impl Search {
    /// One that begins with `current` workers where there are `usual` as a rule, and `most` at
    /// most.
    pub(super) fn new(current: usize, usual: usize, most: usize) -> Search {
        let times = BTreeMap::new();
        Search { current, usual, most, fewer_only: false, busy: false, times }
    }

    /// The same where those at work keep as many processors in use, or wait, as `busy` says.
    pub(super) fn of_busy(self, busy: bool) -> Search {
        Search { busy, ..self }
    }

    /// One that sees whether fewer get on better than `current`, who are as many as a rule.
    pub(super) fn for_fewer(current: usize) -> Search {
        Search { fewer_only: true, ..Search::new(current, current, current) }
    }

    /// Whether it left the number as it was and more were not to be tried, so that it is not known
    /// whether those would help.
    pub(super) fn leaves_open(&self, settled: usize) -> bool {
        self.fewer_only && settled == self.current
    }

    /// Notes what a unit took in a window with `number` workers.
    pub(super) fn note(&mut self, number: usize, unit_secs: f64) {
        self.times.entry(number).or_default().push(unit_secs);
    }

    /// What follows from the windows so far.
    pub(super) fn next(&self) -> Step {
        self.settle().map_or_else(Step::Measure, Step::Settled)
    }

    /// The number that works on; else the one that has to be timed first.
    fn settle(&self) -> Result<usize, usize> {
        let (current, above) = (self.current, self.current * 2);
        let threshold = match (current < self.usual, self.busy) {
            (true, true) => MORE_UNDER_CONTENTION,
            (true, false) => {
                Threshold { gives_up_from: MORE.gives_up_from, ..MORE_UNDER_CONTENTION }
            }
            (false, _) => MORE,
        };
        let more_help = above <= self.most && self.is_better(above, current, threshold)?;
        if more_help && self.median(above) < CLEARLY_TAKE_AT_MOST * self.median(current) {
            return self.climb(above);
        }
        // Of workers who wait for each other more may be a little faster, and fewer much faster.
        let best = if more_help { above } else { current };
        let settled = self.descend(best)?;
        if settled == above { self.climb(above) } else { Ok(settled) }
    }

    /// The number at which more workers do not help any more.
    fn climb(&self, from: usize) -> Result<usize, usize> {
        let mut best = from;
        while best * 2 <= self.most && self.is_better(best * 2, best, MORE)? {
            best *= 2;
        }
        Ok(best)
    }

    /// The number below the present one at which fewer do not help any more, or else `best`.
    fn descend(&self, mut best: usize) -> Result<usize, usize> {
        let mut below = self.current / 2;
        while below > 0 {
            let threshold = if below >= self.usual { FEWER_OF_MORE } else { FEWER };
            if !self.is_better(below, best, threshold)? {
                break;
            }
            best = below;
            below /= 2;
        }
        Ok(best)
    }

    /// Whether `number` workers are over the bar against `than`; else which of them has
    /// to be timed first.
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

    fn median(&self, number: usize) -> f64 {
        let mut times = self.times[&number].clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks with windows that take what `time` says of round and number. Returns what was settled
    /// and how many windows it took.
    fn search(current: usize, most: usize, time: impl Fn(usize, usize) -> f64) -> (usize, usize) {
        let mut search = Search::new(current, current, most);
        for windows in 0..100 {
            match search.next() {
                Step::Settled(number) => return (number, windows),
                Step::Measure(number) => {
                    let round = search.times.get(&number).map_or(0, Vec::len);
                    search.note(number, time(round, number));
                }
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn the_fastest_number_goes_on() {
        // Twice as many take half the time, up to four, and then no less.
        assert_eq!(search(2, 16, |_, number| 1.0 / number.min(4) as f64), (4, 9));
        assert_eq!(search(2, 16, |_, number| 1.0 - 0.05 * number.min(4) as f64), (4, 12));
        assert_eq!(search(2, 16, |_, number| 1.0 / number as f64), (16, 12));
        // They are in each other's way.
        assert_eq!(search(2, 16, |_, number| [0.91, 1.15, 1.15, 1.06][number.min(4) - 1]), (1, 9));
        assert_eq!(search(2, 16, |_, number| 0.9 + 0.05 * number as f64), (1, 9));
        assert_eq!(search(12, 12, |_, number| number.abs_diff(3) as f64 + 1.0), (3, 10));
        // Nothing is gained either way.
        assert_eq!(search(2, 16, |_, _| 1.0), (2, 9));
        assert_eq!(search(1, 1, |_, _| 1.0), (1, 0));
        assert_eq!(search(3, 5, |_, number| 1.0 / number as f64), (3, 2));
    }

    #[test]
    fn more_than_usual_go_when_they_are_not_needed() {
        let mut search = Search::new(16, 2, 16);
        while let Step::Measure(number) = search.next() {
            search.note(number, if number < 2 { 2.0 } else { 1.0 });
        }
        assert_eq!(search.next(), Step::Settled(2));
    }

    #[test]
    fn windows_of_two_numbers_take_turns() {
        let mut search = Search::new(2, 2, 4);
        let mut order = Vec::new();
        while let Step::Measure(number) = search.next() {
            order.push(number);
            search.note(number, 1.0 / number as f64);
        }
        assert_eq!(order, [2, 4, 2, 4, 2, 4]);
    }

    #[test]
    fn company_that_is_in_the_way_goes_at_once() {
        let windows = |busy, share| {
            let mut search = Search::new(1, 2, 16).of_busy(busy);
            let mut windows = 0;
            while let Step::Measure(number) = search.next() {
                windows += 1;
                search.note(number, if number == 1 { 1.0 } else { share });
            }
            (windows, search.next())
        };
        assert_eq!(windows(true, 1.2), (2, Step::Settled(1)));
        assert_eq!(windows(true, 0.9), (6, Step::Settled(1)));
        assert!(matches!(windows(true, 0.7), (6.., Step::Settled(2))));
        assert_eq!(windows(false, 1.2), (6, Step::Settled(1)), "a medium may have been slow");
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
