//! Slow runs: what a variant costs beside its typical runs.
//!
//! A user of a variant waits for its mean: one that takes six times as long in one run of five takes
//! twice as long on average. A robust ratio does not contain that, and the mean of few runs is also
//! that of what other programs did. So runs that take [`SLOW_FACTOR`] times as long as quiet ones
//! are counted by themselves, after what slowed every variant of a round was divided out
//! ([`levels`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::artefacts::chance_of_as_many;
use super::estimate::{Estimate, Runs};
use super::quantile::{median, quantile};
use crate::words;

/// Slow runs take more than this many times as long as the lower quartile, which is a quiet run also
/// where half of the runs are slow. What takes less longer is within what other programs do to a
/// run, and the robust mean stands for it. A fixed factor is the same for both sides of a comparison.
/// The widest gap between runs is not: a single run in it hides the mode of one side alone.
const SLOW_FACTOR: f64 = 2.0;

/// Of runs that vary so much that normal noise would reach that factor, slow ones are farther away:
/// so many times the distance of the median from the lower quartile, four standard deviations above
/// the median.
const SPREADS: f64 = 7.0;

/// And at most so many times as long. Of few runs half may be in a slow mode.
const SLOW_FACTOR_MAX: f64 = 4.0;

/// Two variants have the same share of slow runs if chance explains the difference this often. More
/// would count what hits any run as a mode of the variant that it hit once more than the other.
const ALIKE_P: f64 = 0.2;

/// Many runs would show a mode, and chance may explain so much less: this over their number.
const ALIKE_P_OF_RUNS: f64 = 15.0;

/// And slow runs of about the same cost: within this factor.
const ALIKE_FACTOR: f64 = 2.0;

/// A mode has slow runs in at least this many sessions: one slow run is no mode. A round of a race is a session.
const MODE_SESSIONS_MIN: u64 = 2;

/// And at least this many fast runs.
const MODE_RUNS_MIN: usize = 2;

/// A mode is reported if chance explains at most this often that the others have slow runs in fewer sessions.
const MODE_P_MAX: f64 = 0.05;

/// A comparison counts the slow runs of one side if chance explains at most this often that it has
/// more of them. With the level of a named mode, a machine that slows one run in twenty would have
/// slow runs in one of ten comparisons of equal variants.
const SHOWN_P_MAX: f64 = 0.01;

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
    pub fn added_share(&self) -> f64 {
        self.slow_runs as f64 / self.runs as f64 * (self.times_slower - 1.0)
    }

    /// How often a variant is fast, and what it costs otherwise: `fast 4 times in 5, 6 times slower
    /// otherwise`.
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

/// The runs of one variant, the slow ones apart.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowRuns {
    /// The rounds in which it was slow.
    pub(super) rounds: BTreeSet<(u32, u32)>,
    runs: usize,
    /// The sessions with a slow run, and all. What is constant within a session may make all of its runs slow.
    sessions: (u64, usize),
    /// What the slow runs add to the mean, as a share of a fast time.
    added_mean: f64,
    /// The standard error of that, from the differences between sessions.
    added_error: f64,
}

/// The slow modes, one entry a variant: `None` for a variant that has none.
///
/// A mode has slow runs in two sessions or more, and two fast ones. Of the variants with the largest shares of
/// slow runs as many have a mode as differ most clearly from the rest in the number of sessions with slow runs:
/// variants of one engine may share one. Chance alone reports a mode in one comparison of twenty at most; p values
/// count that the group was picked among all of its size (Bonferroni).
pub fn slow_modes(variants: &[&Runs]) -> Vec<Option<SlowMode>> {
    let variants = slow_runs(variants, &levels(variants));
    let in_all = |indices: &[usize]| {
        let counts = indices.iter().map(|&index| variants[index].sessions);
        counts.fold((0, 0), |(slow, all), (own, runs)| (slow + own, all + runs))
    };
    let mut order: Vec<usize> = (0..variants.len()).filter(|&it| variants[it].runs > 0).collect();
    order.sort_by(|&a, &b| variants[b].share().total_cmp(&variants[a].share()));
    let mut groups = 1.0;
    let mut clearest = (MODE_P_MAX, 0);
    for size in 1..order.len() {
        groups *= (order.len() - size + 1) as f64 / size as f64;
        let (group, rest) = order.split_at(size);
        let p = groups * chance_of_as_many(in_all(group), in_all(rest));
        if p <= clearest.0 {
            clearest = (p, size);
        }
    }
    let (group, rest) = order.split_at(clearest.1);
    let rest = in_all(rest);
    let mut modes = vec![None; variants.len()];
    for &index in group {
        let own = &variants[index];
        let (runs, slow_runs) = (own.runs, own.rounds.len());
        let is_mode = own.may_have_mode() && chance_of_as_many(own.sessions, rest) <= MODE_P_MAX;
        let mode = SlowMode { runs, slow_runs, times_slower: 1.0 + own.cost() };
        modes[index] = is_mode.then_some(mode);
    }
    modes
}

/// Whether any run of the variant at `index` was slow.
pub fn has_slow_runs(variants: &[&Runs], index: usize) -> bool {
    !slow_runs(variants, &levels(variants))[index].rounds.is_empty()
}

/// The slow runs of each variant. One factor holds for all of them, that of the variant whose runs vary
/// most.
pub(super) fn slow_runs(variants: &[&Runs], levels: &Runs) -> Vec<SlowRuns> {
    let level = |round: &(u32, u32)| levels.get(round).copied().unwrap_or(1.0);
    let leveled = |times: &&Runs| -> Runs {
        times.iter().map(|(&round, time)| (round, time / level(&round))).collect()
    };
    let variants: Vec<Runs> = variants.iter().map(leveled).collect();
    let spread = |times: &Runs| {
        Some((median(times.values())? / quantile(times.values(), 0.25)?).powf(SPREADS))
    };
    let spreads = variants.iter().filter_map(spread);
    let factor = spreads.fold(SLOW_FACTOR, f64::max).min(SLOW_FACTOR_MAX);
    variants.into_iter().map(|times| SlowRuns::of(times, factor)).collect()
}

impl SlowRuns {
    /// Of `own` those beyond `factor` times the lower quartile.
    fn of(own: Runs, factor: f64) -> SlowRuns {
        let quiet = quantile(own.values(), 0.25);
        let limit = quiet.map_or(f64::INFINITY, |quiet| quiet * factor);
        let fast: Vec<f64> = own.values().copied().filter(|&time| time <= limit).collect();
        let fast_mean = fast.iter().sum::<f64>() / fast.len().max(1) as f64;
        // For each session its runs, and what slow ones add.
        let mut sessions: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for (&(session, _), time) in &own {
            let (runs, added) = sessions.entry(session).or_default();
            *runs += 1.0;
            *added += if *time > limit { time / fast_mean - 1.0 } else { 0.0 };
        }
        let (runs, count) = (own.len().max(1) as f64, sessions.len() as f64);
        let added_mean = sessions.values().map(|(_, added)| added).sum::<f64>() / runs;
        let squares = sessions.values().map(|(runs, added)| (added - runs * added_mean).powi(2));
        let spread = squares.sum::<f64>() * count / (count - 1.0).max(1.0);
        let slow_sessions = sessions.values().filter(|(_, added)| *added > 0.0).count() as u64;
        SlowRuns {
            runs: own.len(),
            sessions: (slow_sessions, sessions.len()),
            added_mean,
            added_error: spread.sqrt() / runs,
            rounds: own.into_iter().filter(|(_, time)| *time > limit).map(|it| it.0).collect(),
        }
    }

    /// The slow runs and all.
    fn counts(&self) -> (u64, usize) {
        (self.rounds.len() as u64, self.runs)
    }

    /// Whether the slow runs are a mode: not those of one session, nor all but a few.
    fn may_have_mode(&self) -> bool {
        self.sessions.0 >= MODE_SESSIONS_MIN && self.runs - self.rounds.len() >= MODE_RUNS_MIN
    }

    /// The share of slow runs.
    fn share(&self) -> f64 {
        self.rounds.len() as f64 / self.runs.max(1) as f64
    }

    /// The mean of what slow runs add.
    fn cost(&self) -> f64 {
        self.added_mean * self.runs as f64 / self.rounds.len().max(1) as f64
    }

    /// What the slow runs of both do to the ratio of their times.
    pub(super) fn beside(&self, other: &SlowRuns) -> Slowing {
        Slowing {
            factor: (!self.is_as_slow_as(other)).then(|| self.slowing().over(other.slowing())),
            is_shown: self.is_shown_beside(other) || other.is_shown_beside(self),
        }
    }

    /// The factor by which slow runs raise the mean (delta method).
    fn slowing(&self) -> Estimate {
        let raised = 1.0 + self.added_mean;
        Estimate {
            log: raised.ln(),
            standard_error: self.added_error / raised,
            freedom: (self.sessions.1 as f64 - 1.0).max(1.0),
        }
    }

    /// Whether neither has more or much costlier slow runs than chance explains.
    fn is_as_slow_as(&self, other: &SlowRuns) -> bool {
        let (own, its) = (self.counts(), other.counts());
        let p = chance_of_as_many(own, its).min(chance_of_as_many(its, own));
        let least = ALIKE_P.min(ALIKE_P_OF_RUNS / (own.1 + its.1) as f64);
        let factor = self.cost() / other.cost();
        let alike = (1.0 / ALIKE_FACTOR..=ALIKE_FACTOR).contains(&factor);
        own.0 > 0 && its.0 > 0 && p > least && alike
    }

    /// Whether this has a slow mode that the other has not.
    fn is_shown_beside(&self, other: &SlowRuns) -> bool {
        self.may_have_mode() && chance_of_as_many(self.counts(), other.counts()) <= SHOWN_P_MAX
    }
}

/// What slow runs do to the ratio of the times of two variants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slowing {
    /// By what factor they raise the mean of the one more than that of the other; `None` where both have
    /// them alike.
    factor: Option<Estimate>,
    /// Whether chance does not explain that one of them has more.
    is_shown: bool,
}

impl Slowing {
    /// The ratio of typical times, times the factor if that is shown to be more than chance, or if the
    /// faster variant is less surely the faster one with it: one slow run may be a mode, and a difference
    /// has to hold whether it is or not.
    pub(super) fn count(self, typical: Estimate) -> Estimate {
        let expected = self.count_all(typical);
        let sureness = |it: Estimate| it.log * typical.log.signum() / it.standard_error;
        let is_counted = self.is_shown || sureness(expected) < sureness(typical);
        if is_counted { expected } else { typical }
    }

    /// The ratio of typical times, times the factor.
    pub(super) fn count_all(self, typical: Estimate) -> Estimate {
        self.factor.map_or(typical, |factor| typical.times(factor))
    }
}

/// By what factor every variant of a round took longer than in its quiet rounds: 1, or more if all of
/// them did. The least of the factors, so that a variant that alone is slow keeps its slow run. The
/// lower quartile is a quiet round, also where half of a variant's runs were slow. A round of one
/// variant has no level of its own.
pub(super) fn levels(variants: &[&Runs]) -> Runs {
    let mut factors: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for times in variants {
        let quiet = quantile(times.values(), 0.25);
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

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF};

    use super::*;
    use crate::stats::{Ratio, Sessions, normal};

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
    ) -> Vec<Runs> {
        let mut times = vec![Runs::new(); draws.len()];
        for round in 1..=count {
            let level = machine(rng);
            for (times, draw) in times.iter_mut().zip(draws) {
                times.insert((round, 1), level * draw(rng));
            }
        }
        times
    }

    fn modes(times: &[Runs]) -> Vec<Option<SlowMode>> {
        slow_modes(&times.iter().collect::<Vec<_>>())
    }

    /// The first over the second on average.
    fn expected(times: &[Runs]) -> f64 {
        Sessions::of_runs(&times[0], &times[1]).expected().expect("a ratio").value()
    }

    /// The first over the second.
    fn ratio(times: &[Runs]) -> Ratio {
        Sessions::of_runs(&times[0], &times[1]).ratio(0.05).expect("a ratio")
    }

    /// The share of `trials` simulated comparisons for which `holds`. The deviation of a share of one half of 200
    /// trials is 3.5 %, of one of a twentieth 1.5 %; limits that are nearer to the truth take 400.
    fn share(
        trials: u32,
        count: u32,
        draws: &[Box<Draw>],
        machine: &Draw,
        holds: impl Fn(&[Runs]) -> bool,
    ) -> f64 {
        let mut rng = fastrand::Rng::with_seed(21);
        let held = (0..trials).filter(|_| holds(&rounds(&mut rng, count, draws, machine)));
        held.count() as f64 / f64::from(trials)
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
                let loses = |it: &[Runs]| expected(it) > 1.0;
                let loses = share(200, count, &variants, machine, loses);
                let slow_runs = Binomial::new(0.2, count.into()).expect("a share");
                let met = slow_runs.sf((count / 10).into());
                assert!(loses >= met - 0.08, "{count} rounds: {loses} of {met}");
            }
            // And with enough of them that is shown.
            let shown = |it: &[Runs]| {
                let estimate = Sessions::of_runs(&it[0], &it[1]).estimate().expect("a ratio");
                estimate.p_at_most(1.02) < 0.05
            };
            assert!(share(100, 200, &variants, machine, shown) > 0.5);
            // The truth, whatever the machine does.
            let mut rng = fastrand::Rng::with_seed(1);
            let long = ratio(&rounds(&mut rng, 4000, &variants, machine));
            assert!((1.27..1.40).contains(&long.estimate), "{long:?}");
        }
    }

    #[test]
    fn a_slow_mode_is_reported_with_its_share() {
        for machine in [&quiet as &Draw, &slows_rounds] {
            let variants = [with_slow_mode(0.2, 6.0), steady(1.5), steady(1.2), steady(1.0)];
            let found = |it: &[Runs]| modes(it)[0].is_some();
            assert!(share(200, 30, &variants, machine, found) > 0.8);
            assert!(share(200, 60, &variants, machine, found) > 0.95);
        }
        // Two variants of one engine share it.
        let variants =
            [with_slow_mode(0.2, 6.0), with_slow_mode(0.2, 6.0), steady(1.2), steady(1.0)];
        let both = |it: &[Runs]| modes(it).iter().flatten().count() == 2;
        assert!(share(200, 40, &variants, &quiet, both) > 0.9);
        let times = |slow: &[u32]| -> Runs {
            (1..=20)
                .map(|round| ((round, 1), if slow.contains(&round) { 6.0 } else { 1.0 }))
                .collect()
        };
        let found = |slow: &[u32]| {
            let steady = times(&[]);
            modes(&[times(slow), steady.clone(), steady.clone(), steady])[0]
        };
        let expected = SlowMode { runs: 20, slow_runs: 4, times_slower: 6.0 };
        assert_eq!(found(&[3, 4, 11, 20]), Some(expected));
        assert_eq!(found(&[3]), None, "one slow run is no mode");
        assert_eq!(modes(&[times(&[3, 4, 11, 20])]), [None], "it ran alone");
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
        let any = |it: &[Runs]| modes(it).iter().any(Option::is_some);
        for count in [3, 5, 8, 12, 30] {
            for (name, draws, machine) in [
                ("rounds", four(&|| steady(1.0)), &slows_rounds as &Draw),
                ("noise", four(&wide), &quiet),
                ("both", four(&wide), &slows_rounds),
                ("hits", four(&hit), &quiet),
                ("hits in rounds", four(&hit), &slows_rounds),
            ] {
                let found = share(200, count, &draws, machine, any);
                let allowed = if name == "rounds" { 0.0 } else { 0.07 };
                assert!(found <= allowed, "{name}, {count} rounds: {found}");
            }
        }
    }

    /// What makes all runs of a session slow is one event, however many runs it hits.
    #[test]
    fn slow_sessions_of_equal_variants_make_no_difference() {
        let mut rng = fastrand::Rng::with_seed(6);
        let mut runs = || {
            let mut runs = Runs::new();
            for session in 1..=10 {
                let slow = if rng.u8(..10) == 0 { 2.5 } else { 1.0 };
                for round in 1..=8 {
                    runs.insert((session, round), slow * (0.03 * normal(&mut rng)).exp());
                }
            }
            runs
        };
        let (mut differ, mut named) = (0, 0);
        for _ in 0..300 {
            let times = [runs(), runs()];
            let interval = ratio(&times).interval;
            differ += u32::from(!(interval.low..=interval.high).contains(&1.0));
            named += u32::from(modes(&times).iter().any(Option::is_some));
        }
        assert!(differ <= 24 && named <= 15, "of 300 {differ} differ, {named} are named");
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
        let right = |it: &[Runs]| ratio(it).estimate > 1.0;
        let estimated = share(400, 40, &variants, &quiet, right);
        let means = |it: &[Runs]| {
            let sum = |index: usize| it[index].values().sum::<f64>();
            sum(0) > sum(1)
        };
        let by_means = share(400, 40, &variants, &quiet, means);
        assert!(estimated > by_means + 0.08 && estimated > 0.8, "{estimated}, by means {by_means}");
    }

    /// How often the 95 % interval of the ratio contains the true one.
    fn coverage(count: u32, draws: &[Box<Draw>; 2], truth: f64) -> f64 {
        share(400, count, draws, &slows_rounds, |it| {
            let interval = ratio(it).interval;
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
    fn a_variant_that_left_early_is_compared_with_all_slow_runs_of_the_other() {
        let times = |values: &[f64]| -> Runs {
            (1..).zip(values).map(|(round, &time)| ((round, 1), time)).collect()
        };
        let left = [times(&[1.5; 4]), times(&[1.0, 1.0, 1.0, 1.0, 6.0, 1.0, 1.0, 6.0])];
        let estimate = expected(&left);
        assert!((estimate - 1.5 / 2.25).abs() < 1e-12, "{estimate}");
        let left: Vec<&Runs> = left.iter().collect();
        assert!(has_slow_runs(&left, 1) && !has_slow_runs(&left, 0));
    }
}
