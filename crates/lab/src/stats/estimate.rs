//! The estimate of a ratio of times: its logarithm with an error, by the trimmed mean.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::Interval;

/// The share trimmed from each end. One disturbed value in eight then does not determine the mean.
/// Nothing is trimmed from fewer than eight values.
const TRIMMED_SHARE: usize = 8;

/// Fewer values are too few for blocks.
const IN_BLOCKS_MIN: usize = 16;

/// The level at which blocks are shown to differ.
const BLOCKS_DIFFER: f64 = 0.05;

/// The times of one variant's runs, by session and round.
pub type Runs = BTreeMap<(u32, u32), f64>;

/// An estimated ratio of times with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The estimate. Above 1 the variant is slower than the other.
    pub estimate: f64,
    /// The interval of the true ratio, of confidence 95 % unless another was asked for.
    pub interval: Interval,
}

/// The logarithm of a ratio with its error, and the degrees of freedom of Student's t. Logarithms
/// give "twice as slow" and "twice as fast" the same distance from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub(super) log: f64,
    pub(super) standard_error: f64,
    pub(super) freedom: f64,
}

/// The trimmed mean of logarithms in the order of time; `None` with fewer than two, which have no error
/// estimate.
///
/// Yuen's error (Biometrika 61, 1974) is slightly too small for few normal values: in 200,000 draws
/// each, 5.5 % of 95 % intervals missed with 8 or 9 values, 5.2 % with 16, and 5.1 % with 40; of
/// 99 % intervals 1.2, 1.1 and 1.1 %. The factor 1 + 1.4 g / h², for g values trimmed at each end
/// and h kept, makes both nominal. The error also grows with the [`dependence`] of the values.
pub(super) fn trimmed(logs: &[f64]) -> Option<Estimate> {
    let (of_yuen, winsorized) = yuen(logs)?;
    let (cut, kept) = (logs.len() / TRIMMED_SHARE, of_yuen.freedom + 1.0);
    let (dependence, freedom) = dependence(&winsorized).unwrap_or((1.0, of_yuen.freedom));
    let factor = (1.0 + 1.4 * cut as f64 / (kept * kept)) * dependence.sqrt();
    Some(Estimate { standard_error: of_yuen.standard_error * factor, freedom, ..of_yuen })
}

/// How many times the variance of the mean is that of independent values, and its degrees of freedom; `None` for
/// values that are not shown to depend on each other.
///
/// What changes slowly, such as the load of a host, affects values alike that follow one another, and n of them then
/// show less than n independent ones. So the values are divided in the order of time into about √n blocks. Where an
/// analysis of variance shows at a level of 5 % that the blocks differ, the variance is that of the means of blocks.
/// In simulations of 80 values this widened the interval of independent ones by 4 %; of values with an autocorrelation
/// of 0.8 in half of the variance 86 % of 95 % intervals held the truth, and 64 % without.
fn dependence(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    // Equal values have no variance to compare.
    if count < IN_BLOCKS_MIN || values.iter().all(|&value| value == values[0]) {
        return None;
    }
    let blocks = count.isqrt();
    let bound = |block: usize| block * count / blocks;
    let within: f64 =
        (0..blocks).map(|block| squares(&values[bound(block)..bound(block + 1)])).sum();
    let all = squares(values);
    let (of_blocks, of_rest) = ((blocks - 1) as f64, (count - blocks) as f64);
    let (between, within) = ((all - within) / of_blocks, within / of_rest);
    let test = FisherSnedecor::new(of_blocks, of_rest).expect("some degrees of freedom");
    let differ = within == 0.0 || test.sf(between / within) < BLOCKS_DIFFER;
    differ.then(|| (between / (all / (count - 1) as f64), of_blocks))
}

/// The trimmed mean with its error from the Winsorized variance, and the Winsorized values.
fn yuen(logs: &[f64]) -> Option<(Estimate, Vec<f64>)> {
    let count = logs.len();
    if count < 2 {
        return None;
    }
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = count / TRIMMED_SHARE;
    let kept = &sorted[cut..count - cut];
    let kept_count = kept.len() as f64;
    let log = kept.iter().sum::<f64>() / kept_count;
    let (lowest, highest) = (kept[0], kept[kept.len() - 1]);
    let winsorized: Vec<f64> = logs.iter().map(|x| x.clamp(lowest, highest)).collect();
    let standard_error = (squares(&winsorized) / (kept_count * (kept_count - 1.0))).sqrt();
    Some((Estimate { log, standard_error, freedom: kept_count - 1.0 }, winsorized))
}

/// The sum of the squared distances from the mean.
pub(in crate::stats) fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

impl Estimate {
    /// The ratio.
    pub fn value(&self) -> f64 {
        self.log.exp()
    }

    /// The ratio with its interval of confidence 1 - `alpha`.
    pub fn ratio(&self, alpha: f64) -> Ratio {
        // Values without variance may have no degrees of freedom, and the interval is a point.
        let half = match self.standard_error {
            0.0 => 0.0,
            error => error * t_quantile(1.0 - alpha / 2.0, self.freedom),
        };
        let interval = Interval { low: (self.log - half).exp(), high: (self.log + half).exp() };
        Ratio { estimate: self.value(), interval }
    }

    /// The chance of an estimate as high as this, or higher, if the true ratio is at most `ratio`.
    pub fn p_at_most(&self, ratio: f64) -> f64 {
        self.upper_tail(self.log - ratio.ln())
    }

    /// The chance of an estimate as low as this, or lower, if the true ratio is at least `ratio`.
    pub fn p_at_least(&self, ratio: f64) -> f64 {
        self.upper_tail(ratio.ln() - self.log)
    }

    /// The ratio of this to the other, which is independent of it.
    pub(super) fn over(self, other: Estimate) -> Estimate {
        self.times(Estimate { log: -other.log, ..other })
    }

    /// The product of this and the other, which is independent of it, with Welch's degrees of
    /// freedom.
    pub(super) fn times(self, other: Estimate) -> Estimate {
        let [variance, other_variance] = [self, other].map(|it| it.standard_error.powi(2));
        let sum = variance + other_variance;
        let freedom = sum.powi(2)
            / (variance.powi(2) / self.freedom + other_variance.powi(2) / other.freedom);
        Estimate {
            log: self.log + other.log,
            standard_error: sum.sqrt(),
            freedom: if freedom.is_finite() { freedom } else { 1.0 },
        }
    }

    fn upper_tail(&self, excess: f64) -> f64 {
        if self.standard_error == 0.0 {
            return if excess > 0.0 { 0.0 } else { 1.0 };
        }
        student(self.freedom).sf(excess / self.standard_error)
    }
}

/// The quantile of Student's t.
pub(super) fn t_quantile(probability: f64, freedom: f64) -> f64 {
    student(freedom).inverse_cdf(probability)
}

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("some degrees of freedom")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::normal;

    #[test]
    fn the_coverage_of_widened_intervals_is_nominal() {
        let mut rng = fastrand::Rng::with_seed(31);
        for count in [8, 16] {
            let quantile = t_quantile(0.975, (count - 2 * (count / TRIMMED_SHARE) - 1) as f64);
            let missed = (0..20_000).filter(|_| {
                let values: Vec<f64> = (0..count).map(|_| normal(&mut rng)).collect();
                let mean = trimmed(&values).expect("values");
                mean.log.abs() > quantile * mean.standard_error
            });
            let missed = missed.count() as f64 / 20_000.0;
            assert!((0.044..=0.054).contains(&missed), "{count}: {missed}");
        }
    }

    /// How often a 95 % interval of 80 values holds the truth, and its width relative to that of Yuen's, if half of
    /// the variance is in values with the autocorrelation `memory`.
    fn coverage_and_width(memory: f64) -> (f64, f64) {
        let mut rng = fastrand::Rng::with_seed(8);
        let (mut held, mut width) = (0.0, 0.0);
        for _ in 0..2000 {
            let mut slow = normal(&mut rng);
            let values: Vec<f64> = (0..80)
                .map(|_| {
                    slow = memory * slow + (1.0 - memory * memory).sqrt() * normal(&mut rng);
                    slow + normal(&mut rng)
                })
                .collect();
            let Ratio { interval, .. } = trimmed(&values).expect("values").ratio(0.05);
            held += f64::from(u8::from(interval.low <= 1.0 && 1.0 <= interval.high));
            width += dependence(&yuen(&values).expect("values").1).map_or(1.0, |(by, _)| by.sqrt());
        }
        (held / 2000.0, width / 2000.0)
    }

    #[test]
    fn values_that_resemble_those_before_them_have_a_wider_interval() {
        let (held, width) = coverage_and_width(0.0);
        assert!((0.94..=0.96).contains(&held) && width < 1.04, "independent: {held} {width}");
        let (held, width) = coverage_and_width(0.8);
        assert!(held > 0.845 && width > 1.5, "dependent: {held} {width}");
    }

    #[test]
    fn values_without_variance_in_blocks_or_between_them() {
        assert_eq!(dependence(&[0.3; 20]), None);
        let alternating: Vec<f64> = (0..20).map(|number| f64::from(number % 2)).collect();
        assert_eq!(dependence(&alternating), None);
        // Between four equal blocks of five there are 3 degrees of freedom, and in all values 19.
        let steps: Vec<f64> = (0..20).map(|number| f64::from(number / 5)).collect();
        let (times, freedom) = dependence(&steps).expect("dependent values");
        assert!((times - 19.0 / 3.0).abs() < 1e-9 && freedom == 3.0);
    }

    /// Known answers, computed by `known_answers.py` beside this file. The tails matter, since
    /// early interim analyses test at small levels.
    #[test]
    fn students_quantiles_agree_with_scipy() {
        for (probability, freedom, expected) in [
            (0.975, 4.0, 2.776_445_105_2),
            (0.995, 4.0, 4.604_094_871_3),
            (0.999_9, 4.0, 13.033_671_720_9),
            (0.998, 9.0, 3.834_510_269_5),
            (0.975, 1.0, 12.706_204_736_4),
            (0.975, 45.0, 2.014_103_388_9),
        ] {
            let got = t_quantile(probability, freedom);
            assert!((got / expected - 1.0).abs() < 1e-6, "{probability} {freedom}: {got}");
        }
    }

    fn check(got: &[f64], expected: &[f64]) {
        let is_near = |(got, expected): (&f64, &f64)| (got - expected).abs() < 1e-6;
        assert!(got.iter().zip(expected).all(is_near), "{got:?} for {expected:?}");
    }

    /// Known answers, computed by `known_answers.py` beside this file with scipy 1.17.
    #[test]
    fn yuens_mean_agrees_with_scipy() {
        const PLAIN: [f64; 4] =
            [1.046_027_859_9, 1.002_904_402_2, 1.091_005_564_7, 0.076_457_701_4];
        const TRIMMED: [f64; 4] =
            [1.046_027_859_9, 1.024_233_766_7, 1.068_285_697_3, 0.012_706_496_5];
        let of = |logs: &[f64]| {
            let (estimate, _) = yuen(logs).expect("values");
            let Ratio { estimate: ratio, interval } = estimate.ratio(0.05);
            [ratio, interval.low, interval.high, estimate.p_at_most(1.02)]
        };
        check(&of(&[0.02, 0.05, 0.03, 0.08]), &PLAIN);
        check(&of(&[0.02, 0.05, 0.03, 0.08, 0.04, 0.05, 0.01, 0.06, 0.9, 0.03]), &TRIMMED);
    }

    /// Known answers, computed by `known_answers.py` beside this file: `scipy.stats.ttest_ind` with
    /// `equal_var=False, trim=0.125`.
    #[test]
    fn independent_values_agree_with_scipy() {
        const ONE: [f64; 9] = [0.31, 0.29, 0.35, 0.30, 0.28, 0.95, 0.33, 0.27, 0.32];
        const OTHER: [f64; 6] = [0.21, 0.25, 0.24, 0.22, 0.28, 0.20];
        const KNOWN: [f64; 5] =
            [4.615_904_583_7, 10.889_861_514_5, 0.040_811_365_6, 0.115_379_110_6, 0.000_765_177_2];
        let of = |values: &[f64]| yuen(values).expect("values").0;
        let found = of(&ONE).over(of(&OTHER));
        let Interval { low, high } = found.ratio(0.05).interval;
        let statistic = found.log / found.standard_error;
        let p = 2.0 * found.p_at_most(1.0);
        check(&[statistic, found.freedom, low.ln(), high.ln(), p], &KNOWN);
    }

    #[test]
    fn few_or_equal_values() {
        assert_eq!(trimmed(&[0.1]), None);
        let equal = trimmed(&[0.5, 0.5]).expect("values");
        let same = equal.over(equal);
        let ratio = same.ratio(0.05);
        assert_eq!((ratio.estimate, ratio.interval.low, ratio.interval.high), (1.0, 1.0, 1.0));
        assert_eq!((same.p_at_most(1.02), equal.p_at_most(1.02)), (1.0, 0.0));
    }
}
