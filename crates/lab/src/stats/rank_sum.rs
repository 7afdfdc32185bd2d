//! Ranks, and the usual test of two groups of runs, which assumes that all runs are independent.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::statistics::{Data, OrderStatistics, RankTieBreaker};

/// The two-sided p of the rank-sum test of Wilcoxon, Mann and Whitney by its normal approximation,
/// with the correction for ties and for continuity. 1 when either group is empty, or all are equal.
///
/// It decides nothing here, and only shows how the usual test errs: it tests whether two groups of
/// runs differ, and the runs of one program at two times of a day do. [`super::Sessions`] compares
/// variants.
pub fn rank_sum_p(one: &[f64], other: &[f64]) -> f64 {
    let (n, m) = (one.len() as f64, other.len() as f64);
    let count = n + m;
    let ranks = ranks(&[one, other].concat());
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let variance = n * m * squares / (count * (count - 1.0)).max(1.0);
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ranks[..one.len()].iter().sum::<f64>().abs();
    let z = (distance - 0.5).max(0.0) / variance.sqrt();
    2.0 * Normal::standard().sf(z)
}

/// Ranks less their mean. Equal values have the same rank, the mean of their places.
pub(super) fn ranks(values: &[f64]) -> Vec<f64> {
    let mean = (values.len() + 1) as f64 / 2.0;
    let ranks = Data::new(values.to_vec()).ranks(RankTieBreaker::Average);
    ranks.into_iter().map(|rank| rank - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers: `scipy.stats.mannwhitneyu(a, b, method="asymptotic")` of scipy 1.17.1.
    #[test]
    fn agrees_with_scipy() {
        let check = |one: &[f64], other: &[f64], expected: f64| {
            let p = rank_sum_p(one, other);
            assert!((p - expected).abs() < 1e-9, "{p} for {expected}");
        };
        check(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 0.030_382_821_976_577_49);
        check(&[1.0, 2.0, 2.0, 4.0, 9.0], &[2.0, 3.0, 5.0, 5.0], 0.531_614_576_881_612_3);
    }

    #[test]
    fn empty_or_equal_groups_have_p_1() {
        assert_eq!(rank_sum_p(&[], &[1.0]), 1.0);
        assert_eq!(rank_sum_p(&[2.0, 2.0], &[2.0, 2.0, 2.0]), 1.0);
    }
}
