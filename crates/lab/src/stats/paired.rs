//! How much slower one variant is than another, from runs paired by round.

use super::{Interval, trimmed::trimmed};

/// Differences of logarithms, one a round in which both variants ran: ln(time / time of the other).
/// Logarithms give "twice as slow" and "twice as fast" the same distance from 0. Pairing cancels
/// disturbances that affect a whole round.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    log_ratios: Vec<f64>,
}

/// An estimated ratio of times with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The estimate. Above 1 the variant is slower than the other.
    pub estimate: f64,
    /// The interval of the true ratio, of confidence 95 % unless another was asked for.
    pub interval: Interval,
}

impl Paired {
    /// Pairs of times (of the one, of the other), one a round, in any unit.
    #[must_use]
    pub fn new(times: impl IntoIterator<Item = (f64, f64)>) -> Paired {
        Paired { log_ratios: times.into_iter().map(|(one, other)| (one / other).ln()).collect() }
    }

    /// Rounds in which both ran.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.log_ratios.len()
    }

    /// The trimmed mean of the ratios; the interval is Student's with Winsorized variance (Yuen,
    /// Biometrika 61, 1974). `None` with fewer than two rounds.
    #[must_use]
    pub fn ratio(&self) -> Option<Ratio> {
        let mean = trimmed(&self.log_ratios)?;
        Some(Ratio::of_logs(mean.mean, mean.interval(0.05)))
    }

    /// The chance of a mean ratio as high as this, or higher, if the true one is at most
    /// `1 + delta`. It is small when the variant is shown to be slower by more than `delta`. 1 with
    /// fewer than two rounds, which have no error estimate.
    #[must_use]
    pub fn p_not_slower(&self, delta: f64) -> f64 {
        trimmed(&self.log_ratios).map_or(1.0, |mean| mean.p_at_most(delta.ln_1p()))
    }
}

impl Ratio {
    /// The ratio whose logarithm is `estimate`.
    pub(super) fn of_logs(estimate: f64, interval: Interval) -> Ratio {
        let Interval { low, high } = interval;
        Ratio { estimate: estimate.exp(), interval: Interval { low: low.exp(), high: high.exp() } }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A draw from the standard normal distribution (Box and Muller).
    pub(crate) fn normal(rng: &mut fastrand::Rng) -> f64 {
        let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * rng.f64()).cos()
    }

    fn of_logs(logs: &[f64]) -> Paired {
        Paired { log_ratios: logs.to_vec() }
    }

    fn check(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-6, "{got} for {expected}");
    }

    /// Known answers, computed by `known_answers.py` beside this file with scipy 1.17.
    #[test]
    fn agrees_with_scipy() {
        let plain = of_logs(&[0.02, 0.05, 0.03, 0.08]);
        let ratio = plain.ratio().expect("four rounds");
        check(ratio.estimate, KNOWN_PLAIN[0]);
        check(ratio.interval.low, KNOWN_PLAIN[1]);
        check(ratio.interval.high, KNOWN_PLAIN[2]);
        check(plain.p_not_slower(0.02), KNOWN_PLAIN[3]);
        let trimmed = of_logs(&[0.02, 0.05, 0.03, 0.08, 0.04, 0.05, 0.01, 0.06, 0.9, 0.03]);
        let ratio = trimmed.ratio().expect("ten rounds");
        check(ratio.estimate, KNOWN_TRIMMED[0]);
        check(ratio.interval.low, KNOWN_TRIMMED[1]);
        check(ratio.interval.high, KNOWN_TRIMMED[2]);
        check(trimmed.p_not_slower(0.02), KNOWN_TRIMMED[3]);
    }

    const KNOWN_PLAIN: [f64; 4] =
        [1.046_027_859_9, 1.002_904_402_2, 1.091_005_564_7, 0.076_457_701_4];
    const KNOWN_TRIMMED: [f64; 4] =
        [1.046_027_859_9, 1.024_233_766_7, 1.068_285_697_3, 0.012_706_496_5];

    #[test]
    fn one_round_has_no_ratio() {
        assert_eq!(Paired::new([(2.0, 1.0)]).ratio(), None);
        check(Paired::new([(2.0, 1.0)]).p_not_slower(0.02), 1.0);
    }

    #[test]
    fn times_become_ratios() {
        let ratio = Paired::new([(2.0, 1.0), (4.0, 2.0)]).ratio().expect("two rounds");
        check(ratio.estimate, 2.0);
        check(ratio.interval.low, 2.0);
        check(Paired::new([(2.0, 1.0), (4.0, 2.0)]).p_not_slower(0.02), 0.0);
    }

    /// How often the interval contains the true ratio, in 2000 simulated races of `rounds` rounds,
    /// a tenth of whose runs are slowed down by a fifth.
    fn coverage(rounds: usize, outliers: bool) -> f64 {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut time = || {
            let slow = if outliers && rng.u8(..10) == 0 { 0.2 } else { 0.0 };
            (0.03 * normal(&mut rng) + slow).exp()
        };
        let held = (0..2000).filter(|_| {
            let times: Vec<_> = (0..rounds).map(|_| (time(), time())).collect();
            let interval = Paired::new(times).ratio().expect("rounds").interval;
            interval.low <= 1.0 && 1.0 <= interval.high
        });
        held.count() as f64 / 2000.0
    }

    #[test]
    fn coverage_is_nominal() {
        for rounds in [3, 5, 8, 16, 30] {
            let clean = coverage(rounds, false);
            assert!((0.935..=0.97).contains(&clean), "{rounds} rounds: {clean}");
            let noisy = coverage(rounds, true);
            assert!(noisy >= 0.935, "{rounds} noisy rounds: {noisy}");
        }
    }
}
