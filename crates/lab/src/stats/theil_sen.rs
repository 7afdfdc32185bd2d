//! A robust slope: up to 29 % of the points can be outliers.

use super::median;

/// The most points of a slope. More do not make it noticeably more precise, and the work grows with
/// their square.
const POINTS_MAX: usize = 600;

/// A slope and its significance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slope {
    /// In units of y for one of x.
    pub(super) value: f64,
    /// Kendall's S over its standard deviation for independent x and y. Values beyond ±2 are
    /// unlikely by chance (Kendall, Biometrika 30, 1938; without correction for ties).
    pub(super) kendall_z: f64,
}

/// The median of the slopes of all pairs of points (Theil 1950; Sen, Journal of the American
/// Statistical Association 63, 1968). Of very many points every second and so on is taken. `None`
/// when all x are equal.
///
/// # Panics
/// When `x` and `y` differ in length.
pub(super) fn theil_sen(x: &[f64], y: &[f64]) -> Option<Slope> {
    assert_eq!(x.len(), y.len(), "a point has two coordinates");
    let step = x.len().div_ceil(POINTS_MAX).max(1);
    let points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).step_by(step).collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    let mut score = 0.0;
    for (index, one) in points.iter().enumerate() {
        for other in &points[index + 1..] {
            let (across, up) = (other.0 - one.0, other.1 - one.1);
            if across != 0.0 {
                slopes.push(up / across);
                score += if up == 0.0 { 0.0 } else { (up * across).signum() };
            }
        }
    }
    let value = median(slopes)?;
    let count = points.len() as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    Some(Slope { value, kendall_z: score / deviation })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers, computed by `known_answers.py` beside this file with scipy 1.17.
    #[test]
    fn agrees_with_scipy() {
        let x = [1.0, 2.0, 3.5, 4.0, 6.0, 7.5, 9.0];
        let y = [2.1, 3.9, 7.4, 7.9, 30.0, 15.2, 17.7];
        let slope = theil_sen(&x, &y).expect("a slope");
        assert!((slope.value - 1.971_428_571_4).abs() < 1e-9, "{slope:?}");
        assert!((slope.kendall_z - 2.553_193_489_0).abs() < 1e-9, "{slope:?}");
    }

    #[test]
    fn a_level_line_and_no_line() {
        let level = theil_sen(&[1.0, 2.0, 3.0], &[4.0, 4.0, 4.0]).expect("a slope");
        assert_eq!(level, Slope { value: 0.0, kendall_z: 0.0 });
        assert_eq!(theil_sen(&[1.0, 1.0], &[4.0, 5.0]), None);
        assert_eq!(theil_sen(&[], &[]), None);
    }
}
