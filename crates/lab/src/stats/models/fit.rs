//! A robust fit of a line, or of two lines that meet, to logarithms of times.

use super::curve::Curve;
use crate::stats::bisquare::{self, CUTOFF_SDS, MEDIAN_DEVIATION_OF_NORMAL};
use crate::stats::median;

/// The most steps of a fit. A fit that has not converged by then is used as it is.
const STEPS_MAX: usize = 40;

/// The smallest scale: a fit through all points has residuals of 0 and no outliers.
const SCALE_MIN: f64 = 1e-9;

/// A line t = c + f n, or two that meet at `break_bytes`: t = c + f min(n, b) + g max(n - b, 0).
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// c in ns, f in ns a byte, and g in ns a byte where there is a break.
    pub(super) costs: Vec<f64>,
    pub(super) break_bytes: Option<f64>,
    /// The residuals: logarithms of time less those of the fit, in the order of the curve.
    pub(super) residuals: Vec<f64>,
}

impl Fit {
    /// Fits `curve` by bisquare-weighted least squares of the residuals, starting at the fit of
    /// least squared relative errors. The scale is `scale`, or estimated from the residuals. `None`
    /// when there are no more sizes than costs, or the costs are not identifiable.
    pub(super) fn of(curve: &Curve, break_bytes: Option<f64>, scale: Option<f64>) -> Option<Fit> {
        let rows: Vec<Vec<f64>> =
            curve.bytes.iter().map(|&bytes| row(bytes, break_bytes)).collect();
        let unknowns = rows.first()?.len();
        if rows.len() <= unknowns {
            return None;
        }
        let times: Vec<f64> = curve.logs.iter().map(|log| log.exp()).collect();
        let relative: Vec<Vec<f64>> = rows
            .iter()
            .zip(&times)
            .map(|(row, time)| row.iter().map(|it| it / time).collect())
            .collect();
        let mut costs = least_squares(&relative, &vec![1.0; rows.len()], &vec![1.0; rows.len()])?;
        let Some(mut residuals) = residuals(&rows, &costs, &curve.logs) else {
            return Fit::through_the_end(&rows, &curve.logs, break_bytes);
        };
        for _ in 0..STEPS_MAX {
            let scale = scale.unwrap_or_else(|| deviation(&residuals, unknowns));
            let weights: Vec<f64> =
                residuals.iter().map(|it| bisquare::weight(it / (CUTOFF_SDS * scale))).collect();
            // The derivative of the logarithm of the fit is that of the fit over the fit.
            let slopes: Vec<Vec<f64>> = rows
                .iter()
                .map(|row| {
                    let fitted = dot(row, &costs);
                    row.iter().map(|it| it / fitted).collect()
                })
                .collect();
            let Some(step) = least_squares(&slopes, &residuals, &weights) else { break };
            let Some((next, next_residuals)) = stepped(&rows, &curve.logs, &costs, &step) else {
                break;
            };
            let moved = residuals.iter().zip(&next_residuals).map(|(a, b)| (a - b).abs());
            let moved = moved.fold(0.0, f64::max);
            (costs, residuals) = (next, next_residuals);
            if moved < 1e-9 {
                break;
            }
        }
        Some(Fit { costs, break_bytes, residuals })
    }

    /// The start where no positive fit exists: times proportional to the bytes.
    fn through_the_end(rows: &[Vec<f64>], logs: &[f64], break_bytes: Option<f64>) -> Option<Fit> {
        let bytes: Vec<f64> = rows.iter().map(|row| row[1..].iter().sum()).collect();
        let byte = median(logs.iter().zip(&bytes).map(|(log, bytes)| log.exp() / bytes))?;
        let mut costs = vec![byte; rows[0].len()];
        costs[0] = 0.0;
        let residuals = residuals(rows, &costs, logs)?;
        Some(Fit { costs, break_bytes, residuals })
    }

    /// The robust scale of the residuals.
    pub(super) fn scale(&self) -> f64 {
        deviation(&self.residuals, self.costs.len())
    }

    /// Twice the bisquare loss at a scale: about the sum of squares of residuals over their scale,
    /// with at most 4.685² / 3 from each residual.
    pub(super) fn loss(&self, scale: f64) -> f64 {
        let loss = |residual: &f64| {
            let share = (residual / (CUTOFF_SDS * scale)).abs().min(1.0);
            CUTOFF_SDS * CUTOFF_SDS / 3.0 * (1.0 - (1.0 - share * share).powi(3))
        };
        self.residuals.iter().map(loss).sum()
    }
}

fn row(bytes: f64, break_bytes: Option<f64>) -> Vec<f64> {
    match break_bytes {
        None => vec![1.0, bytes],
        Some(at) => vec![1.0, bytes.min(at), (bytes - at).max(0.0)],
    }
}

/// A step, halved until no time is negative.
fn stepped(
    rows: &[Vec<f64>],
    logs: &[f64],
    costs: &[f64],
    step: &[f64],
) -> Option<(Vec<f64>, Vec<f64>)> {
    (0..12).find_map(|halvings| {
        let share = 0.5_f64.powi(halvings);
        let next: Vec<f64> =
            costs.iter().zip(step).map(|(cost, step)| cost + share * step).collect();
        let residuals = residuals(rows, &next, logs)?;
        Some((next, residuals))
    })
}

/// `None` when the fit is not positive everywhere.
fn residuals(rows: &[Vec<f64>], costs: &[f64], logs: &[f64]) -> Option<Vec<f64>> {
    rows.iter()
        .zip(logs)
        .map(|(row, log)| {
            let fitted = dot(row, costs);
            (fitted > 0.0).then(|| log - fitted.ln())
        })
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn deviation(residuals: &[f64], unknowns: usize) -> f64 {
    let count = residuals.len() as f64;
    let spent = (count / (count - unknowns as f64)).sqrt();
    let distance = median(residuals.iter().map(|it| it.abs())).expect("residuals");
    (distance / MEDIAN_DEVIATION_OF_NORMAL * spent).max(SCALE_MIN)
}

/// Solves the weighted normal equations. Columns are scaled to a length of 1, because bytes and
/// calls differ by nine orders of magnitude. `None` when the equations have no unique solution.
fn least_squares(rows: &[Vec<f64>], wanted: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
    let unknowns = rows.first()?.len();
    let weighted = |f: &dyn Fn(usize) -> f64| -> f64 {
        (0..rows.len()).map(|index| weights[index] * f(index)).sum()
    };
    let lengths: Vec<f64> =
        (0..unknowns).map(|i| weighted(&|row| rows[row][i].powi(2)).sqrt()).collect();
    let mut matrix: Vec<Vec<f64>> = (0..unknowns)
        .map(|i| {
            let product =
                |j: usize| weighted(&|row| rows[row][i] * rows[row][j]) / lengths[i] / lengths[j];
            let right = weighted(&|row| rows[row][i] * wanted[row]) / lengths[i];
            (0..unknowns).map(product).chain([right]).collect()
        })
        .collect();
    for pivot in 0..unknowns {
        // The matrix is positive definite, so no pivoting is needed.
        let head = matrix[pivot].clone();
        // A column of zeros makes it NaN.
        if head[pivot].is_nan() || head[pivot] <= 1e-12 {
            return None;
        }
        for (index, row) in matrix.iter_mut().enumerate() {
            if index != pivot {
                let share = row[pivot] / head[pivot];
                row.iter_mut().zip(&head).for_each(|(value, head)| *value -= share * head);
            }
        }
    }
    Some((0..unknowns).map(|i| matrix[i][unknowns] / matrix[i][i] / lengths[i]).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{Point, curve::Curve};
    use super::*;

    fn curve(bytes: &[f64], time: impl Fn(f64) -> f64) -> Curve {
        let points: Vec<Point> = bytes
            .iter()
            .map(|&bytes| Point { bytes, elapsed_ns: time(bytes), session: 0 })
            .collect();
        Curve::of(&points)
    }

    fn sizes() -> Vec<f64> {
        (6..=30).map(|power| 2.0_f64.powi(power)).collect()
    }

    #[test]
    fn an_exact_line_and_an_exact_break_are_found() {
        let line = Fit::of(&curve(&sizes(), |n| 300.0 + 0.25 * n), None, None).expect("a fit");
        assert!((line.costs[0] / 300.0 - 1.0).abs() < 1e-6, "{line:?}");
        assert!((line.costs[1] / 0.25 - 1.0).abs() < 1e-6, "{line:?}");
        let broken = |n: f64| 300.0 + 0.1 * n.min(65536.0) + 0.4 * (n - 65536.0).max(0.0);
        let fit = Fit::of(&curve(&sizes(), broken), Some(65536.0), None).expect("a fit");
        assert!((fit.costs[2] / 0.4 - 1.0).abs() < 1e-6, "{fit:?}");
        assert!(fit.loss(0.01) < 1e-6);
    }

    #[test]
    fn a_few_outlying_sizes_do_not_move_it() {
        let outlying = |n: f64| {
            let time = 300.0 + 0.25 * n;
            if n == 4096.0 || n == 1_048_576.0 {
                7.0 * time
            } else {
                time * (1.0 + 0.01 * (n.ln() * 3.0).sin())
            }
        };
        let fit = Fit::of(&curve(&sizes(), outlying), None, None).expect("a fit");
        assert!((fit.costs[0] / 300.0 - 1.0).abs() < 0.02, "{fit:?}");
        assert!((fit.costs[1] / 0.25 - 1.0).abs() < 0.02, "{fit:?}");
    }

    #[test]
    fn too_few_sizes_have_no_fit() {
        assert!(Fit::of(&curve(&[64.0, 128.0], |n| n), None, None).is_none());
        assert!(Fit::of(&curve(&[], |n| n), None, None).is_none());
        assert!(Fit::of(&curve(&[1.0, 2.0, 3.0, 4.0], |n| n), Some(1.0), None).is_none());
    }

    /// Known answers, computed by `known_answers.py` with scipy's `least_squares` on the same
    /// bisquare loss at a scale of 0.05.
    #[test]
    fn agrees_with_scipy() {
        let noisy = |n: f64| (300.0 + 0.25 * n) * (0.05 * (n.log2() * 7.0).sin()).exp();
        let outlying = |n: f64| noisy(n) * if n == 8192.0 { 1.6 } else { 1.0 };
        let fit = Fit::of(&curve(&sizes(), outlying), None, Some(0.05)).expect("a fit");
        assert!((fit.costs[0] / 293.809_214_405_2 - 1.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.costs[1] / 0.251_503_951_6 - 1.0).abs() < 1e-6, "{fit:?}");
    }
}
