//! Expected times of variants that run in the same rounds, slow modes included.
//!
//! A user of a variant waits for its mean, not for its typical time: a variant that takes six times
//! as long in one run of five takes twice as long on average. But the mean of few runs is also that
//! of what other programs did. Three steps separate the two:
//!
//! 1. What slowed every variant of a round is divided out of its times ([levels]).
//! 2. The runs of a variant are split at their largest gap, if it is wide, into fast and slow ones.
//! 3. A ratio is that of the mean fast times, in rounds in which both were fast, times the ratio of
//!    what the slow runs of either add to its mean ([`RoundTimes::ratio`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::artefacts::chance_of_as_many;
use super::paired::Ratio;
use super::quantile::quantile;
use super::trimmed::Trimmed;
use crate::words;

/// Fewer runs have no modes.
const RUNS_MIN: usize = 3;

/// Slow runs take at least this many times as long as the fast ones.
const GAP_MIN: f64 = 1.3;

/// The gap is at least this many standard deviations of the larger side, and more if that has few
/// runs, whose deviation is often too small by chance.
const GAP_SDS: f64 = 4.0;

/// Two variants have the same share of slow runs if chance explains the difference this often. More
/// would count what hits any run as a mode of the variant that it hit once more than the other.
const ALIKE_P: f64 = 0.2;

/// And slow runs of about the same cost: within this factor.
const ALIKE_FACTOR: f64 = 2.0;

/// A mode is reported if both sides have at least this many runs: one slow run is no mode.
const MODE_RUNS_MIN: usize = 2;

/// And if chance explains the difference to the others at most this often.
const MODE_P_MAX: f64 = 0.05;

/// The times of several variants by round.
#[derive(Clone, Debug)]
pub struct RoundTimes {
    variants: Vec<Runs>,
}

/// A variant that is slow in some rounds in which others are not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowMode {
    /// All runs.
    pub runs: usize,
    /// Slow runs.
    pub slow_runs: usize,
    /// The mean time of slow runs over that of fast ones.
    pub times_slower: f64,
}

impl SlowMode {
    /// What it adds to the mean, as a share of a fast time.
    #[must_use]
    pub fn added_share(&self) -> f64 {
        self.slow_runs as f64 / self.runs as f64 * (self.times_slower - 1.0)
    }

    /// How often a variant is fast, and what it costs otherwise: `fast 4 times in 5, 6 times slower
    /// otherwise`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let SlowMode { runs, slow_runs, times_slower } = *self;
        let fast = 1.0 - slow_runs as f64 / runs as f64;
        // The simplest fraction that is off by no more than a fifth of the rarer of the two.
        let nearest = |of: &u32| (fast * f64::from(*of)).round().clamp(1.0, f64::from(*of) - 1.0);
        let is_near =
            |of: &u32| (nearest(of) / f64::from(*of) - fast).abs() <= 0.2 * fast.min(1.0 - fast);
        let of =
            [2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100].into_iter().find(is_near).unwrap_or(200);
        let times = if nearest(&of) == 1.0 { "time" } else { "times" };
        let slower = match times_slower {
            factor if factor < 2.95 => format!("{factor:.1}"),
            factor => words::grouped(&format!("{factor:.0}")),
        };
        format!("fast {:.0} {times} in {of}, {slower} times slower otherwise", nearest(&of))
    }
}

/// The runs of one variant.
#[derive(Clone, Debug, Default)]
struct Runs {
    /// The time of each round without what slowed the whole round.
    times: BTreeMap<u32, f64>,
    /// The mean of the fast runs.
    fast_mean: f64,
    /// Runs that take longer than this are slow.
    limit: f64,
    slow_runs: usize,
}

impl RoundTimes {
    /// Times by round, in any unit, one map a variant.
    #[must_use]
    pub fn new(variants: &[&BTreeMap<u32, f64>]) -> RoundTimes {
        let levels = levels(variants);
        let own = |times: &BTreeMap<u32, f64>| {
            Runs::of(times.iter().map(|(&round, &time)| (round, time / levels[&round])).collect())
        };
        RoundTimes { variants: variants.iter().map(|&times| own(times)).collect() }
    }

    /// The expected time of the variant at `one` over that of the variant at `other`. The interval
    /// is Student's with the errors of the three parts (delta method; degrees of freedom after
    /// Welch). `None` with fewer than two rounds that both ran.
    ///
    /// If both have slow runs of about the same share and cost, these are the machine's and cancel.
    /// A slow mode that no run met is not in the ratio.
    #[must_use]
    pub fn ratio(&self, one: usize, other: usize) -> Option<Ratio> {
        let log = self.log_ratio(one, other)?;
        Some(Ratio::of_logs(log.mean, log.interval(0.05)))
    }

    /// The chance of a ratio as high as this, or higher, if the true one is at most `1 + delta`. 1
    /// where there is no ratio.
    #[must_use]
    pub fn p_not_slower(&self, one: usize, other: usize, delta: f64) -> f64 {
        self.log_ratio(one, other).map_or(1.0, |log| log.p_at_most(delta.ln_1p()))
    }

    /// Whether any run of the variant at `index` was slow.
    #[must_use]
    pub fn has_slow_runs(&self, index: usize) -> bool {
        self.variants[index].slow_runs > 0
    }

    /// The slow modes, one entry a variant: `None` for a variant that has none.
    ///
    /// A mode has two slow runs and two fast ones or more. Of the variants with the largest shares of
    /// slow runs as many have a mode as differ most clearly from the rest: variants of one engine may
    /// share one. Chance alone reports a mode in one comparison of twenty at most; p values count that the
    /// group was picked among all of its size (Bonferroni).
    #[must_use]
    pub fn slow_modes(&self) -> Vec<Option<SlowMode>> {
        let mut order: Vec<usize> = (0..self.variants.len()).collect();
        order.retain(|&index| !self.variants[index].times.is_empty());
        order.sort_by(|&a, &b| self.variants[b].share().total_cmp(&self.variants[a].share()));
        let mut groups = 1.0;
        let mut clearest = (MODE_P_MAX, 0);
        for size in 1..order.len() {
            groups *= (order.len() - size + 1) as f64 / size as f64;
            let (group, rest) = order.split_at(size);
            let p = groups * chance_of_as_many(self.slow_runs(group), self.slow_runs(rest));
            if p <= clearest.0 {
                clearest = (p, size);
            }
        }
        let (group, rest) = order.split_at(clearest.1);
        let rest = self.slow_runs(rest);
        let mut modes = vec![None; self.variants.len()];
        for &index in group {
            let own = &self.variants[index];
            let (runs, slow_runs) = (own.times.len(), own.slow_runs);
            let is_mode = slow_runs >= MODE_RUNS_MIN
                && runs - slow_runs >= MODE_RUNS_MIN
                && chance_of_as_many((slow_runs as u64, runs), rest) <= MODE_P_MAX;
            let mode = SlowMode { runs, slow_runs, times_slower: 1.0 + own.cost() };
            modes[index] = is_mode.then_some(mode);
        }
        modes
    }

    /// The slow runs and all runs of the variants at `indices`.
    fn slow_runs(&self, indices: &[usize]) -> (u64, usize) {
        indices.iter().map(|&index| &self.variants[index]).fold((0, 0), |(slow, all), runs| {
            (slow + runs.slow_runs as u64, all + runs.times.len())
        })
    }

    /// The logarithm of the ratio, with its error.
    fn log_ratio(&self, one: usize, other: usize) -> Option<Trimmed> {
        let (one, other) = (&self.variants[one], &self.variants[other]);
        let both = |keep: &dyn Fn(f64, f64) -> bool| -> Vec<(f64, f64)> {
            let pairs = one.times.iter();
            let pairs = pairs.filter_map(|(round, &time)| Some((time, *other.times.get(round)?)));
            pairs.filter(|&(own, its)| keep(own, its)).collect()
        };
        let fast = both(&|own, its| own <= one.limit && its <= other.limit);
        let Some(fast) = log_ratio_of_means(&fast) else {
            // Too few rounds in which both were fast: the means as they are.
            return log_ratio_of_means(&both(&|_, _| true));
        };
        if one.is_slow_as_often_as(other) {
            return Some(fast);
        }
        let parts = [fast, one.log_slowing(), other.log_slowing()];
        let variances = parts.map(|part| part.standard_error.powi(2));
        let variance: f64 = variances.iter().sum();
        let by_freedom: f64 = variances.iter().zip(&parts).map(|(v, it)| v * v / it.freedom).sum();
        Some(Trimmed {
            mean: parts[0].mean + parts[1].mean - parts[2].mean,
            standard_error: variance.sqrt(),
            freedom: if by_freedom > 0.0 { variance * variance / by_freedom } else { fast.freedom },
            cut: 0,
        })
    }
}

impl Runs {
    fn of(times: BTreeMap<u32, f64>) -> Runs {
        let limit = fast_limit(&times.values().copied().collect::<Vec<_>>());
        let fast: Vec<f64> = times.values().copied().filter(|&time| time <= limit).collect();
        let slow_runs = times.len() - fast.len();
        Runs { fast_mean: mean(&fast), limit, slow_runs, times }
    }

    /// The share of slow runs.
    fn share(&self) -> f64 {
        self.slow_runs as f64 / self.times.len().max(1) as f64
    }

    /// What each run adds to a fast time, as a share of it: 0 for a fast run.
    fn added(&self) -> Vec<f64> {
        let added = |&time: &f64| if time > self.limit { time / self.fast_mean - 1.0 } else { 0.0 };
        self.times.values().map(added).collect()
    }

    /// The mean of what slow runs add.
    fn cost(&self) -> f64 {
        self.added().iter().sum::<f64>() / self.slow_runs.max(1) as f64
    }

    /// The logarithm of the factor by which slow runs raise the mean.
    fn log_slowing(&self) -> Trimmed {
        let added = self.added();
        let count = added.len() as f64;
        let raised = 1.0 + mean(&added);
        let squares: f64 = added.iter().map(|it| (it + 1.0 - raised).powi(2)).sum();
        let standard_error = (squares / (count * (count - 1.0))).sqrt() / raised;
        Trimmed { mean: raised.ln(), standard_error, freedom: count - 1.0, cut: 0 }
    }

    /// Whether both have slow runs, and neither more or much costlier ones than chance explains.
    fn is_slow_as_often_as(&self, other: &Runs) -> bool {
        let counts = |of: &Runs| (of.slow_runs as u64, of.times.len());
        let (own, its) = (counts(self), counts(other));
        let p = chance_of_as_many(own, its).min(chance_of_as_many(its, own));
        let factor = self.cost() / other.cost();
        let alike = (1.0 / ALIKE_FACTOR..=ALIKE_FACTOR).contains(&factor);
        own.0 > 0 && its.0 > 0 && p > ALIKE_P && alike
    }
}

/// By what factor every variant of a round took longer than in its quiet rounds: 1, or more if all of
/// them did. The least of the factors, so that a variant that alone is slow keeps its slow run. The
/// lower quartile is a quiet round, also where half of a variant's runs were slow. A round of one
/// variant has no level of its own.
fn levels(variants: &[&BTreeMap<u32, f64>]) -> BTreeMap<u32, f64> {
    let mut factors: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for times in variants {
        let quiet = quantile(&times.values().copied().collect::<Vec<_>>(), 0.25);
        for (&round, time) in *times {
            factors.entry(round).or_default().push(time / quiet.unwrap_or(*time));
        }
    }
    let level = |factors: Vec<f64>| match factors.as_slice() {
        [] | [_] => 1.0,
        factors => factors.iter().copied().fold(f64::INFINITY, f64::min).max(1.0),
    };
    factors.into_iter().map(|(round, factors)| (round, level(factors))).collect()
}

/// The largest fast time: below the widest gap of the logarithms, if that is wide enough; otherwise
/// no time is slow.
fn fast_limit(times: &[f64]) -> f64 {
    if times.len() < RUNS_MIN {
        return f64::INFINITY;
    }
    let mut logs: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    logs.sort_by(f64::total_cmp);
    let gap = |place: usize| logs[place] - logs[place - 1];
    let place = (1..logs.len()).max_by(|&a, &b| gap(a).total_cmp(&gap(b))).expect("three runs");
    let (fast, slow) = logs.split_at(place);
    let larger = if fast.len() >= slow.len() { fast } else { slow };
    let sds = GAP_SDS * (1.0 + 4.0 / larger.len() as f64);
    let is_wide = gap(place) >= GAP_MIN.ln() && gap(place) >= sds * deviation(larger);
    // Between the two, so that rounding makes no fast run slow.
    if is_wide { (f64::midpoint(logs[place - 1], logs[place])).exp() } else { f64::INFINITY }
}

/// ln(mean of the first / mean of the second) of pairs, with its error; `None` with fewer than two.
fn log_ratio_of_means(pairs: &[(f64, f64)]) -> Option<Trimmed> {
    if pairs.len() < 2 {
        return None;
    }
    let count = pairs.len() as f64;
    let (ones, others): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (one, other) = (mean(&ones), mean(&others));
    let squares: f64 = pairs.iter().map(|(a, b)| (a / one - b / other).powi(2)).sum();
    let standard_error = (squares / (count * (count - 1.0))).sqrt();
    Some(Trimmed { mean: (one / other).ln(), standard_error, freedom: count - 1.0, cut: 0 })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation; 0 of one value.
fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF};

    use super::*;
    use crate::stats::normal;

    /// What the runs of one variant take, as a factor.
    type Draw = dyn Fn(&mut fastrand::Rng) -> f64;

    fn steady(time: f64) -> Box<Draw> {
        Box::new(move |rng| time * (0.03 * normal(rng)).exp())
    }

    /// `times` as long in a `share` of the runs.
    fn with_slow_mode(share: f64, times: f64) -> Box<Draw> {
        Box::new(move |rng| {
            let slow = if rng.f64() < share { times } else { 1.0 };
            slow * (0.03 * normal(rng)).exp()
        })
    }

    /// Rounds of `draws`, each as a whole slowed by what `machine` gives.
    fn rounds(
        rng: &mut fastrand::Rng,
        count: u32,
        draws: &[Box<Draw>],
        machine: &Draw,
    ) -> RoundTimes {
        let mut times = vec![BTreeMap::new(); draws.len()];
        for round in 1..=count {
            let level = machine(rng);
            for (times, draw) in times.iter_mut().zip(draws) {
                times.insert(round, level * draw(rng));
            }
        }
        RoundTimes::new(&times.iter().collect::<Vec<_>>())
    }

    /// The share of 400 simulated comparisons for which `holds`.
    fn share(
        count: u32,
        draws: &[Box<Draw>],
        machine: &Draw,
        holds: impl Fn(&RoundTimes) -> bool,
    ) -> f64 {
        let mut rng = fastrand::Rng::with_seed(21);
        let held = (0..400).filter(|_| holds(&rounds(&mut rng, count, draws, machine)));
        held.count() as f64 / 400.0
    }

    fn quiet(_: &mut fastrand::Rng) -> f64 {
        1.0
    }

    /// One round in five takes three times as long, whatever runs in it.
    fn slows_rounds(rng: &mut fastrand::Rng) -> f64 {
        if rng.u8(..5) == 0 { 3.0 } else { 1.0 }
    }

    /// One run in five, six times slower: twice as long on average. It loses to a steady variant that
    /// takes 1.5 times the fast mode as soon as more than a tenth of its runs were slow.
    #[test]
    fn a_slow_mode_loses_to_a_steady_variant() {
        let variants = [with_slow_mode(0.2, 6.0), steady(1.5), steady(1.8)];
        for machine in [&quiet as &Draw, &slows_rounds] {
            for count in [3, 5, 8, 11, 30, 60] {
                let loses = |it: &RoundTimes| it.ratio(0, 1).expect("a ratio").estimate > 1.0;
                let loses = share(count, &variants, machine, loses);
                let slow_runs = Binomial::new(0.2, count.into()).expect("a share");
                let met = slow_runs.sf((count / 10).into());
                assert!(loses >= met - 0.08, "{count} rounds: {loses} of {met}");
            }
            // And with enough of them that is shown.
            let shown = |it: &RoundTimes| it.p_not_slower(0, 1, 0.02) < 0.05;
            assert!(share(200, &variants, machine, shown) > 0.5);
            // The truth, whatever the machine does.
            let mut rng = fastrand::Rng::with_seed(1);
            let long = rounds(&mut rng, 4000, &variants, machine).ratio(0, 1).expect("a ratio");
            assert!((1.27..1.40).contains(&long.estimate), "{long:?}");
        }
    }

    #[test]
    fn a_slow_mode_is_reported_with_its_share() {
        for machine in [&quiet as &Draw, &slows_rounds] {
            let variants = [with_slow_mode(0.2, 6.0), steady(1.5), steady(1.2), steady(1.0)];
            let found = |it: &RoundTimes| it.slow_modes()[0].is_some();
            assert!(share(30, &variants, machine, found) > 0.8);
            assert!(share(60, &variants, machine, found) > 0.95);
        }
        // Two variants of one engine share it.
        let variants =
            [with_slow_mode(0.2, 6.0), with_slow_mode(0.2, 6.0), steady(1.2), steady(1.0)];
        let both = |it: &RoundTimes| it.slow_modes().iter().flatten().count() == 2;
        assert!(share(40, &variants, &quiet, both) > 0.9);
        let times = |slow: &[u32]| -> BTreeMap<u32, f64> {
            (1..=20).map(|round| (round, if slow.contains(&round) { 6.0 } else { 1.0 })).collect()
        };
        let found = |slow: &[u32]| {
            let steady = times(&[]);
            RoundTimes::new(&[&times(slow), &steady, &steady, &steady]).slow_modes()[0]
        };
        let expected = SlowMode { runs: 20, slow_runs: 4, times_slower: 6.0 };
        assert_eq!(found(&[3, 4, 11, 20]), Some(expected));
        assert_eq!(found(&[3]), None, "one slow run is no mode");
        assert_eq!(
            RoundTimes::new(&[&times(&[3, 4, 11, 20])]).slow_modes(),
            [None],
            "it ran alone"
        );
    }

    /// Neither what slows whole rounds, nor what hits any run alike, nor wide noise is a mode.
    #[test]
    fn a_noisy_machine_is_no_slow_mode() {
        let wide = || -> Box<Draw> { Box::new(|rng| (0.3 * normal(rng)).exp()) };
        let hit = || -> Box<Draw> {
            Box::new(|rng| {
                let slow = if rng.u8(..10) == 0 { 2.0 + 4.0 * rng.f64() } else { 1.0 };
                slow * (0.03 * normal(rng)).exp()
            })
        };
        let four = |of: &dyn Fn() -> Box<Draw>| [of(), of(), of(), of()];
        let any = |it: &RoundTimes| it.slow_modes().iter().any(Option::is_some);
        for count in [3, 5, 8, 12, 30, 100] {
            for (name, draws, machine) in [
                ("rounds", four(&|| steady(1.0)), &slows_rounds as &Draw),
                ("noise", four(&wide), &quiet),
                ("both", four(&wide), &slows_rounds),
                ("hits", four(&hit), &quiet),
                ("hits in rounds", four(&hit), &slows_rounds),
            ] {
                let found = share(count, &draws, machine, any);
                let allowed = if name == "rounds" { 0.0 } else { 0.07 };
                assert!(found <= allowed, "{name}, {count} rounds: {found}");
            }
        }
    }

    /// Slow runs that both have alike cancel: a difference of 5 % is told as well as by the ratio
    /// without them, where the means alone would need many times the rounds.
    #[test]
    fn what_hits_any_run_hides_no_difference() {
        let hit = |time: f64| -> Box<Draw> {
            Box::new(move |rng| {
                let slow = if rng.u8(..12) == 0 { 2.0 + rng.f64() } else { 1.0 };
                time * slow * (0.03 * normal(rng)).exp()
            })
        };
        let variants = [hit(1.05), hit(1.0)];
        let right = |it: &RoundTimes| it.ratio(0, 1).expect("a ratio").estimate > 1.0;
        let estimated = share(40, &variants, &quiet, right);
        let means = |it: &RoundTimes| {
            let sum = |index: usize| it.variants[index].times.values().sum::<f64>();
            sum(0) > sum(1)
        };
        let by_means = share(40, &variants, &quiet, means);
        assert!(estimated > by_means + 0.08 && estimated > 0.8, "{estimated}, by means {by_means}");
    }

    /// How often the 95 % interval of the ratio contains the true one.
    fn coverage(count: u32, draws: &[Box<Draw>; 2], truth: f64) -> f64 {
        share(count, draws, &slows_rounds, |it| {
            let interval = it.ratio(0, 1).expect("a ratio").interval;
            interval.low <= truth && truth <= interval.high
        })
    }

    #[test]
    fn coverage_is_nominal() {
        for count in [3, 5, 8, 16, 30] {
            let clean = coverage(count, &[steady(1.0), steady(1.0)], 1.0);
            assert!((0.92..=0.985).contains(&clean), "{count} rounds: {clean}");
            let hit = || with_slow_mode(0.1, 1.2);
            let noisy = coverage(count, &[hit(), hit()], 1.0);
            assert!(noisy >= 0.92, "{count} noisy rounds: {noisy}");
        }
        // A mode that was met in few runs has a wide interval, and one that was not met has none: with
        // 30 rounds it is met nearly always.
        for (count, least) in [(30, 0.85), (200, 0.92)] {
            let mode = coverage(count, &[with_slow_mode(0.2, 6.0), steady(1.5)], 2.0 / 1.5);
            assert!(mode >= least, "{count} rounds with a mode: {mode}");
        }
    }

    #[test]
    fn a_slow_mode_is_a_simple_fraction() {
        for (slow_runs, runs, times_slower, expected) in [
            (4, 20, 6.02, "fast 4 times in 5, 6 times slower otherwise"),
            (2, 12, 1.44, "fast 4 times in 5, 1.4 times slower otherwise"),
            (1, 40, 2.0, "fast 49 times in 50, 2.0 times slower otherwise"),
            (7, 30, 3.1, "fast 3 times in 4, 3 times slower otherwise"),
            (16, 20, 2.5, "fast 1 time in 5, 2.5 times slower otherwise"),
            (10, 20, 12.0, "fast 1 time in 2, 12 times slower otherwise"),
            (2, 200, 3.0, "fast 99 times in 100, 3 times slower otherwise"),
        ] {
            assert_eq!(SlowMode { runs, slow_runs, times_slower }.in_words(), expected);
        }
    }

    #[test]
    fn times_become_ratios() {
        let times = |values: &[f64]| (1..).zip(values.iter().copied()).collect::<BTreeMap<_, _>>();
        let of = |one: &[f64], other: &[f64]| RoundTimes::new(&[&times(one), &times(other)]);
        let ratio = of(&[2.0, 4.0], &[1.0, 2.0]).ratio(0, 1).expect("two rounds");
        assert!((ratio.estimate - 2.0).abs() < 1e-12 && (ratio.interval.low - 2.0).abs() < 1e-12);
        assert!(of(&[2.0], &[1.0]).ratio(0, 1).is_none());
        assert!((of(&[2.0], &[1.0]).p_not_slower(0, 1, 0.02) - 1.0).abs() < 1e-12);
        // A variant that left early is compared with all slow runs of the other.
        let left = of(&[1.5; 4], &[1.0, 1.0, 1.0, 1.0, 6.0, 1.0, 1.0, 6.0]);
        let estimate = left.ratio(0, 1).expect("four rounds").estimate;
        assert!((estimate - 1.5 / 2.25).abs() < 1e-12, "{estimate}");
        assert!(left.has_slow_runs(1) && !left.has_slow_runs(0));
    }
}
