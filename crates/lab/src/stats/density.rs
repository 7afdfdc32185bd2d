//! Kernel densities and percentiles of times.

use std::f64::consts::PI;

use statrs::distribution::{Continuous, Normal};

use super::{estimate::squares, interim::bisected, quantile};

/// How far beyond the outermost values a density extends, in bandwidths: at 3 it is a hundredth of
/// that at the value.
const REACH_BANDWIDTHS: f64 = 3.0;

/// The most values that determine the bandwidth, since the work grows with the square of their
/// number. Evenly spaced values of an ordered sample represent its shape.
const BANDWIDTH_VALUES_MAX: usize = 200;

/// A point of a density.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DensityPoint {
    /// The position, in the unit of the values.
    pub value: f64,
    /// The density per unit of the natural logarithm. The area over the logarithmic axis is 1.
    pub density: f64,
}

/// A kernel density of the logarithms of `values`, for violin plots on a logarithmic axis, since
/// times may span several orders of magnitude: `count` points, ascending, at equal distances of
/// their logarithms. The kernels are normal. Their bandwidth is Sheather and Jones's (Journal of the
/// Royal Statistical Society B 53, 1991), which two modes do not make too wide, solved by bisection;
/// where it has no solution, Silverman's robust rule. `None` when fewer than two values differ.
///
/// # Panics
/// When a value is not positive or `count` is less than 2.
pub fn density(values: &[f64], count: usize) -> Option<Vec<DensityPoint>> {
    assert!(count >= 2, "{count} points draw nothing");
    assert!(values.iter().all(|&value| value > 0.0), "only positive values have a logarithm");
    let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    logs.sort_by(f64::total_cmp);
    let (first, last) = (*logs.first()?, *logs.last()?);
    if first == last {
        return None;
    }
    let bandwidth = sheather_jones(&logs).or_else(|| silverman(&logs))?;
    let reach = REACH_BANDWIDTHS * bandwidth;
    let (low, high) = (first - reach, last + reach);
    let step = (high - low) / (count - 1) as f64;
    let point = |index: usize| {
        let at = low + step * index as f64;
        DensityPoint { value: at.exp(), density: density_at(at, &logs, bandwidth) }
    };
    Some((0..count).map(point).collect())
}

/// The percentiles that `count` values can estimate: those with at least five values beyond them,
/// and always the median. Twenty runs have no 99th percentile.
pub fn quantiles_supported(count: usize) -> Vec<f64> {
    let supported = |q: &f64| *q == 0.5 || (q.min(1.0 - q) * count as f64) >= 5.0 - 1e-9;
    if count == 0 {
        return Vec::new();
    }
    [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]
        .into_iter()
        .filter(supported)
        .collect()
}

fn density_at(at: f64, logs: &[f64], bandwidth: f64) -> f64 {
    // A kernel is negligible from 8 bandwidths on.
    let from = logs.partition_point(|log| *log < at - 8.0 * bandwidth);
    let to = logs.partition_point(|log| *log <= at + 8.0 * bandwidth);
    let kernel = Normal::new(at, bandwidth).expect("a bandwidth is positive");
    logs[from..to].iter().map(|&log| kernel.pdf(log)).sum::<f64>() / logs.len() as f64
}

/// Silverman's robust rule (Density Estimation, 1986, equation 3.31).
fn silverman(logs: &[f64]) -> Option<f64> {
    Some(0.9 * spread(logs)? * (logs.len() as f64).powf(-0.2))
}

/// The smaller of the standard deviation and that of a normal sample with these quartiles.
fn spread(logs: &[f64]) -> Option<f64> {
    let count = logs.len() as f64;
    let deviation = (squares(logs) / (count - 1.0)).sqrt();
    let quartiles = (quantile(logs, 0.75)? - quantile(logs, 0.25)?) / 1.34;
    Some(if quartiles > 0.0 { deviation.min(quartiles) } else { deviation })
}

/// The bandwidth h for which h = (R(φ) / (n · S(α(h))))^⅕, where S estimates the roughness of the
/// second derivative at a bandwidth α that depends on h: Sheather and Jones's equations,
/// with the quartile distance replaced by that of a normal sample of the robust spread. `None` when
/// there is no such h between 0.01 and 1.2 times the largest reasonable bandwidth.
fn sheather_jones(sorted: &[f64]) -> Option<f64> {
    let count = sorted.len() as f64;
    let step = sorted.len().div_ceil(BANDWIDTH_VALUES_MAX);
    let values: Vec<f64> = sorted.iter().copied().step_by(step).collect();
    let quartile_distance = 1.349 * spread(&values)?;
    let kept = values.len() as f64;
    let fourth =
        -roughness(&values, 0.912 * quartile_distance * kept.powf(-1.0 / 9.0), sixth_derivative, 7);
    let second =
        roughness(&values, 0.920 * quartile_distance * kept.powf(-1.0 / 7.0), fourth_derivative, 5);
    let factor = 1.357 * (second / fourth).powf(1.0 / 7.0);
    let next = |h: f64| {
        let second = roughness(&values, factor * h.powf(5.0 / 7.0), fourth_derivative, 5);
        (1.0 / (2.0 * PI.sqrt() * count * second)).powf(0.2)
    };
    // The largest is that of the smoothest density with this spread (Terrell, Journal of the
    // American Statistical Association 85, 1990).
    let largest = 1.144 * spread(&values)? * count.powf(-0.2);
    let (low, high) = (0.01 * largest, 1.2 * largest);
    // Both comparisons are false if a power of a negative number made a value NaN.
    if !(next(low) > low && next(high) < high) {
        return None;
    }
    // To a ten-millionth of the largest.
    Some(bisected((low, high), 24, |h| next(h) > h))
}

/// The sum over all pairs, including each value with itself, of a derivative of the normal density
/// at their distance in bandwidths, over n (n - 1) and the bandwidth to `power`.
fn roughness(values: &[f64], bandwidth: f64, derivative: fn(f64) -> f64, power: i32) -> f64 {
    let mut sum = 0.0;
    for (index, a) in values.iter().enumerate() {
        let near = values[..index].iter().rev().map(|b| (a - b) / bandwidth);
        sum += near.take_while(|distance| *distance < 9.0).map(derivative).sum::<f64>();
    }
    let count = values.len() as f64;
    (2.0 * sum + count * derivative(0.0)) / (count * (count - 1.0) * bandwidth.powi(power))
}

fn fourth_derivative(x: f64) -> f64 {
    let square = x * x;
    (square * square - 6.0 * square + 3.0) * Normal::standard().pdf(x)
}

fn sixth_derivative(x: f64) -> f64 {
    let square = x * x;
    (square.powi(3) - 15.0 * square * square + 45.0 * square - 15.0) * Normal::standard().pdf(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of two normal clusters of times around 1 and 1.5 ms, as `known_answers.py` makes
    /// them without a random number.
    fn two_clusters() -> Vec<f64> {
        (0..60)
            .map(|i| {
                let place = (f64::from(i) * 0.618_033_988_749_894_9).fract() - 0.5;
                let center: f64 = if i % 3 == 0 { 1.5e6 } else { 1e6 };
                center * (0.3 * place * place.abs()).exp()
            })
            .collect()
    }

    /// Known answers, computed by `known_answers.py` beside this file: the bandwidth by a root
    /// finder over whole matrices, the density by scipy's `gaussian_kde` with that bandwidth.
    #[test]
    fn agrees_with_scipy() {
        let points = density(&two_clusters(), 65).expect("values differ");
        let check = |got: f64, expected: f64| {
            assert!((got / expected - 1.0).abs() < 1e-6, "{got} for {expected}");
        };
        let mut logs: Vec<f64> = two_clusters().iter().map(|it| it.ln()).collect();
        logs.sort_by(f64::total_cmp);
        check(sheather_jones(&logs).expect("a bandwidth"), 0.025_416_293_8);
        check(points[20].value, 1_073_274.289_866_808_8);
        check(points[20].density, 1.557_260_691_1);
        check(points[50].density, 3.246_519_183_4);
        check(silverman(&logs).expect("values"), 0.078_234_794_8);
    }

    #[test]
    fn odd_samples_are_drawn_or_refused() {
        assert_eq!(density(&[], 9), None);
        assert_eq!(density(&[5.0; 4], 9), None);
        for values in [vec![1.0, 2.0], vec![5.0, 5.0, 5.0, 5.0, 9.0], vec![1.0, 1e9, 1e9, 1e9]] {
            let points = density(&values, 9).expect("values differ");
            assert_eq!(points.len(), 9);
            let finite = points.iter().all(|it| it.value.is_finite() && it.density.is_finite());
            assert!(finite, "{values:?}: {points:?}");
        }
        let many: Vec<f64> = (1..4000).map(|i| f64::from(1 + i / 42).ln()).collect();
        assert!(sheather_jones(&many).expect("a bandwidth") < 0.5);
    }

    #[test]
    fn percentiles_need_runs() {
        assert!(quantiles_supported(0).is_empty());
        assert_eq!(quantiles_supported(7), [0.5]);
        assert_eq!(quantiles_supported(20), [0.25, 0.5, 0.75]);
        assert_eq!(quantiles_supported(100), [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]);
        assert_eq!(quantiles_supported(5000).last(), Some(&0.999));
    }
}
