//! Compares two samples of sessions that share no rounds, such as two runs of one experiment on
//! different days.

use super::trimmed::{Trimmed, trimmed};
use super::{Interval, Ratio};

/// The trimmed means of two independent samples of logarithms of times, one value a session, and
/// their difference: the test of Yuen (Biometrika 61, 1974), Welch's with trimmed means and
/// Winsorized variances. The sessions are not paired, so a change of the machine between the two
/// samples biases the ratio, and the interval does not include that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSamples {
    difference: Trimmed,
}

impl TwoSamples {
    /// Compares the logarithms of `one` with those of `other`. `None` when either has fewer than
    /// two.
    #[must_use]
    pub fn new(one: &[f64], other: &[f64]) -> Option<TwoSamples> {
        let widened = |values: &[f64]| Some(trimmed(values)?.widened());
        Some(TwoSamples { difference: difference(widened(one)?, widened(other)?) })
    }

    /// The ratio of the one to the other with its interval of confidence 1 - `alpha`.
    #[must_use]
    pub fn ratio(&self, alpha: f64) -> Ratio {
        // Samples without variance have 0 degrees of freedom, and the interval is a point.
        let mean = self.difference.mean;
        let interval = match self.difference.standard_error {
            0.0 => Interval { low: mean, high: mean },
            _ => self.difference.interval(alpha),
        };
        Ratio::of_logs(mean, interval)
    }

    /// The chance of an estimate as high as this, or higher, if the true ratio is at most `ratio`.
    #[must_use]
    pub fn p_at_most(&self, ratio: f64) -> f64 {
        self.difference.p_at_most(ratio.ln())
    }

    /// The chance of an estimate as low as this, or lower, if the true ratio is at least `ratio`.
    #[must_use]
    pub fn p_at_least(&self, ratio: f64) -> f64 {
        self.difference.p_at_least(ratio.ln())
    }
}

/// The difference of two independent means, with Welch's degrees of freedom.
fn difference(one: Trimmed, other: Trimmed) -> Trimmed {
    let [variance, other_variance] = [one, other].map(|mean| mean.standard_error.powi(2));
    let sum = variance + other_variance;
    let freedom =
        sum.powi(2) / (variance.powi(2) / one.freedom + other_variance.powi(2) / other.freedom);
    Trimmed {
        mean: one.mean - other.mean,
        standard_error: sum.sqrt(),
        freedom: if freedom.is_finite() { freedom } else { 1.0 },
        cut: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::normal;
    use super::*;

    const ONE: [f64; 9] = [0.31, 0.29, 0.35, 0.30, 0.28, 0.95, 0.33, 0.27, 0.32];
    const OTHER: [f64; 6] = [0.21, 0.25, 0.24, 0.22, 0.28, 0.20];

    /// Known answers, computed by `known_answers.py` beside this file: `scipy.stats.ttest_ind` with
    /// `equal_var=False, trim=0.125`.
    #[test]
    fn agrees_with_scipy() {
        let found = difference(trimmed(&ONE).expect("values"), trimmed(&OTHER).expect("values"));
        let [statistic, freedom, low, high, p] = KNOWN;
        assert!((found.mean / found.standard_error - statistic).abs() < 1e-6, "{found:?}");
        assert!((found.freedom - freedom).abs() < 1e-6, "{found:?}");
        let Interval { low: found_low, high: found_high } = found.interval(0.05);
        assert!((found_low - low).abs() < 1e-6 && (found_high - high).abs() < 1e-6, "{found:?}");
        assert!((2.0 * found.p_at_most(0.0) - p).abs() < 1e-6);
    }

    const KNOWN: [f64; 5] =
        [4.615_904_583_7, 10.889_861_514_5, 0.040_811_365_6, 0.115_379_110_6, 0.000_765_177_2];

    #[test]
    fn coverage_is_nominal() {
        let mut rng = fastrand::Rng::with_seed(47);
        for (count, other_count, other_sd) in [(5, 5, 0.05), (8, 30, 0.05), (10, 10, 0.2)] {
            let mut sample = |count: usize, sd: f64| -> Vec<f64> {
                (0..count).map(|_| sd * normal(&mut rng)).collect()
            };
            let held = (0..1000).filter(|_| {
                let (one, other) = (sample(count, 0.05), sample(other_count, other_sd));
                let interval = TwoSamples::new(&one, &other).expect("values").ratio(0.05).interval;
                interval.low <= 1.0 && 1.0 <= interval.high
            });
            let held = held.count() as f64 / 1000.0;
            assert!((0.93..0.985).contains(&held), "{count} {other_count} {other_sd}: {held}");
        }
    }

    #[test]
    fn few_or_equal_values() {
        assert_eq!(TwoSamples::new(&[0.1], &[0.2, 0.3]), None);
        let same = TwoSamples::new(&[0.5, 0.5], &[0.5, 0.5]).expect("values");
        let ratio = same.ratio(0.05);
        assert_eq!((ratio.estimate, ratio.interval.low, ratio.interval.high), (1.0, 1.0, 1.0));
        assert_eq!(same.p_at_most(1.02), 1.0);
    }
}
