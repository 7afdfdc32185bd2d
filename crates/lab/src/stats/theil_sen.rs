//! A robust line: up to 29 % of the points can be outliers.

use super::median;

/// A line, and the significance of its slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// In units of y for one of x.
    pub slope: f64,
    /// At x = 0.
    pub intercept: f64,
    /// Kendall's S over its standard deviation for independent x and y. Values beyond ±2 are
    /// unlikely by chance (Kendall, Biometrika 30, 1938; without correction for ties).
    pub kendall_z: f64,
}

/// The line whose slope is the median of the slopes of all pairs of points (Theil 1950; Sen,
/// Journal of the American Statistical Association 63, 1968), through the medians of x and y.
/// `None` when all x are equal. The work grows with the square of the number of points.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn theil_sen(x: &[f64], y: &[f64]) -> Option<Line> {
    assert_eq!(x.len(), y.len(), "a point has two coordinates");
    let mut slopes = Vec::with_capacity(x.len() * x.len().saturating_sub(1) / 2);
    let mut score = 0.0;
    for i in 0..x.len() {
        for j in i + 1..x.len() {
            let (across, up) = (x[j] - x[i], y[j] - y[i]);
            if across != 0.0 {
                slopes.push(up / across);
                score += if up == 0.0 { 0.0 } else { (up * across).signum() };
            }
        }
    }
    let slope = median(slopes)?;
    let count = x.len() as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    let intercept = median(y)? - slope * median(x)?;
    Some(Line { slope, intercept, kendall_z: score / deviation })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers, computed by `known_answers.py` beside this file with scipy 1.17.
    #[test]
    fn agrees_with_scipy() {
        let x = [1.0, 2.0, 3.5, 4.0, 6.0, 7.5, 9.0];
        let y = [2.1, 3.9, 7.4, 7.9, 30.0, 15.2, 17.7];
        let line = theil_sen(&x, &y).expect("a line");
        for (got, expected) in
            [(line.slope, KNOWN[0]), (line.intercept, KNOWN[1]), (line.kendall_z, KNOWN[2])]
        {
            assert!((got - expected).abs() < 1e-9, "{line:?}");
        }
    }

    const KNOWN: [f64; 3] = [1.971_428_571_4, 0.014_285_714_3, 2.553_193_489_0];

    #[test]
    fn a_level_line_and_no_line() {
        let level = theil_sen(&[1.0, 2.0, 3.0], &[4.0, 4.0, 4.0]).expect("a line");
        assert_eq!((level.slope, level.intercept, level.kendall_z), (0.0, 4.0, 0.0));
        assert_eq!(theil_sen(&[1.0, 1.0], &[4.0, 5.0]), None);
        assert_eq!(theil_sen(&[], &[]), None);
    }
}
