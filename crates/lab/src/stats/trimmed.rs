//! The trimmed mean and its error.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Interval;

/// The share trimmed from each end. One disturbed value in eight then does not determine the mean.
/// Nothing is trimmed from fewer than eight values.
const TRIMMED_SHARE: usize = 8;

/// A trimmed mean with its error from the Winsorized variance, and the degrees of freedom of
/// Student's t (Yuen, Biometrika 61, 1974).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trimmed {
    pub(super) mean: f64,
    pub(super) standard_error: f64,
    pub(super) freedom: f64,
    /// Values trimmed from each end.
    pub(super) cut: usize,
}

/// The trimmed mean of `values`; `None` with fewer than two, which have no error estimate.
pub(super) fn trimmed(values: &[f64]) -> Option<Trimmed> {
    let count = values.len();
    if count < 2 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = count / TRIMMED_SHARE;
    let kept = &sorted[cut..count - cut];
    let kept_count = kept.len() as f64;
    let mean = kept.iter().sum::<f64>() / kept_count;
    let (lowest, highest) = (kept[0], kept[kept.len() - 1]);
    let winsorized: Vec<f64> = sorted.iter().map(|x| x.clamp(lowest, highest)).collect();
    let winsorized_mean = winsorized.iter().sum::<f64>() / count as f64;
    let squares: f64 = winsorized.iter().map(|x| (x - winsorized_mean).powi(2)).sum();
    Some(Trimmed {
        mean,
        standard_error: (squares / (kept_count * (kept_count - 1.0))).sqrt(),
        freedom: kept_count - 1.0,
        cut,
    })
}

impl Trimmed {
    /// The trimmed mean with a larger error. Yuen's is slightly too small for few normal values: in
    /// 200,000 draws each, 5.5 % of 95 % intervals missed with 8 or 9 values, 5.2 % with 16, and
    /// 5.1 % with 40; of 99 % intervals 1.2, 1.1 and 1.1 %. The factor 1 + 1.4 g / h², for g values
    /// trimmed at each end and h kept, makes both nominal.
    pub(super) fn widened(self) -> Trimmed {
        let kept = self.freedom + 1.0;
        let factor = 1.0 + 1.4 * self.cut as f64 / (kept * kept);
        Trimmed { standard_error: self.standard_error * factor, ..self }
    }

    /// The interval of the true mean with confidence 1 - `alpha`.
    pub(super) fn interval(&self, alpha: f64) -> Interval {
        let half = self.standard_error * t_quantile(1.0 - alpha / 2.0, self.freedom);
        Interval { low: self.mean - half, high: self.mean + half }
    }

    /// The chance of a mean as high as this, or higher, if the true one is at most `mean`.
    pub(super) fn p_at_most(&self, mean: f64) -> f64 {
        upper_tail(self.mean - mean, self.standard_error, self.freedom)
    }

    /// The chance of a mean as low as this, or lower, if the true one is at least `mean`.
    pub(super) fn p_at_least(&self, mean: f64) -> f64 {
        upper_tail(mean - self.mean, self.standard_error, self.freedom)
    }
}

/// The quantile of Student's t.
pub(super) fn t_quantile(probability: f64, freedom: f64) -> f64 {
    student(freedom).inverse_cdf(probability)
}

fn upper_tail(excess: f64, standard_error: f64, freedom: f64) -> f64 {
    if standard_error == 0.0 {
        return if excess > 0.0 { 0.0 } else { 1.0 };
    }
    student(freedom).sf(excess / standard_error)
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
                let mean = trimmed(&values).expect("values").widened();
                mean.mean.abs() > quantile * mean.standard_error
            });
            let missed = missed.count() as f64 / 20_000.0;
            assert!((0.046..=0.054).contains(&missed), "{count}: {missed}");
        }
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
}
