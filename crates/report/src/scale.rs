//! The range of an axis, the positions of values on it, and its ticks.

use lab::in_order::{distinct, gathered};

use crate::plot::{Along, Axis, Panel, Shape, Unit, Violin};

/// An interval extends an axis to at most this multiple of its value, so that a very wide one does
/// not compress the others.
const INTERVAL_REACH: f64 = 3.0;

/// The range of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether the scale is logarithmic.
    pub log: bool,
}

impl Range {
    /// The range of the horizontal axis of `panel`.
    pub fn of_x(panel: &Panel) -> Range {
        Range::of(&panel.x, &values(panel, 0))
    }

    /// The range of the vertical axis.
    pub fn of_y(panel: &Panel) -> Range {
        Range::of(&panel.y, &values(panel, 1))
    }

    fn of(axis: &Axis, values: &[f64]) -> Range {
        if !axis.categories.is_empty() {
            let last = axis.categories.len() as f64 - 1.0;
            return Range { low: -0.5, high: last + 0.5, log: false };
        }
        let log = axis.log;
        let usable = values.iter().copied().chain(axis.reach);
        let usable = usable.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (low, high) = usable
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            let (low, high) = if log { (0.1, 10.0) } else { (0.0, 1.0) };
            return Range { low, high, log };
        }
        if log {
            let room = (high / low).powf(0.04).max(1.02);
            return Range { low: low / room, high: high * room, log };
        }
        let span = if high > low { high - low } else { high.abs().max(1.0) };
        // Bars begin at zero.
        let floor = if axis.reach == Some(0.0) && low >= 0.0 { 0.0 } else { low - 0.04 * span };
        Range { low: floor, high: high + 0.04 * span, log }
    }

    /// The smallest range that includes both.
    #[must_use]
    pub fn joined(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high), log: self.log }
    }

    /// The position of `value`: 0 at the lower end, 1 at the upper end, less or more outside.
    pub fn share(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Ticks with their labels, at most `most`.
    pub fn ticks(&self, axis: &Axis, most: usize) -> Vec<(f64, String)> {
        let values = match (axis.unit, self.log) {
            (Unit::Bytes, true) => self.powers_of_two(most),
            (_, true) => self.decades(most),
            (unit, false) => self.even(unit, most),
        };
        // No two ticks may have the same label.
        let labels = |more: usize| -> Vec<String> {
            values.iter().map(|value| with_digits(axis.unit, *value, more)).collect()
        };
        let enough = (0..3).find(|more| distinct(labels(*more)).len() == values.len());
        let labels = labels(enough.unwrap_or(3));
        values.into_iter().zip(labels).collect()
    }

    fn powers_of_two(&self, most: usize) -> Vec<f64> {
        let within = |step: i32| -> Vec<f64> {
            (0..=50)
                .filter(|power| power % step == 0)
                .map(|power| 2f64.powi(power))
                .filter(|value| (self.low..=self.high).contains(value))
                .collect()
        };
        [1, 2, 4, 5, 10].into_iter().map(within).find(|it| it.len() <= most).unwrap_or_default()
    }

    fn decades(&self, most: usize) -> Vec<f64> {
        let with = |mantissas: &[f64], step: i32| -> Vec<f64> {
            (-12..=15)
                .filter(|power: &i32| power % step == 0)
                .flat_map(|power| mantissas.iter().map(move |m| m * 10f64.powi(power)))
                .filter(|value| (self.low * 0.999..=self.high * 1.001).contains(value))
                .collect()
        };
        let sets: [(&[f64], i32); 6] = [
            (&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], 1),
            (&[1.0, 2.0, 5.0], 1),
            (&[1.0, 3.0], 1),
            (&[1.0], 1),
            (&[1.0], 2),
            (&[1.0], 3),
        ];
        let found = sets.into_iter().map(|(m, step)| with(m, step)).find(|it| it.len() <= most);
        match found {
            Some(values) if values.len() >= 2 => values,
            _ => Range { log: false, ..*self }.even(Unit::Ratio, most),
        }
    }

    fn even(&self, unit: Unit, most: usize) -> Vec<f64> {
        let base: f64 = if unit == Unit::Bytes { 2.0 } else { 10.0 };
        let span = (self.high - self.low) / (most.max(2) as f64 - 1.0);
        let power = base.powf(span.log(base).floor());
        let steps = if unit == Unit::Bytes { [1.0, 2.0, 2.0, 2.0] } else { [1.0, 2.0, 5.0, 10.0] };
        let mut step = steps.into_iter().find(|step| step * power >= span).unwrap_or(base) * power;
        // A scale needs at least two ticks.
        while step > (self.high - self.low) / 2.0
            && (self.high / step).floor() - (self.low / step).ceil() < 1.0
        {
            step /= 2.0;
        }
        // Counts are integers.
        let step = if unit == Unit::Count { step.max(1.0) } else { step };
        let first = (self.low / step - 1e-9).ceil();
        (0..64).map(|n| (first + f64::from(n)) * step).take_while(|v| *v <= self.high).collect()
    }
}

/// A value with its unit, in few characters.
pub fn shown(unit: Unit, value: f64) -> String {
    with_digits(unit, value, 0)
}

/// The same with `more` digits.
fn with_digits(unit: Unit, value: f64, more: usize) -> String {
    match unit {
        _ if value == 0.0 => "0".to_owned(),
        Unit::Bytes => lab::words::about_bytes(value),
        Unit::Ns => {
            let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
            let (worth, name) =
                units.into_iter().find(|(worth, _)| value >= worth * 0.9995).unwrap_or(units[3]);
            format!("{} {name}", plain(value / worth, more))
        }
        Unit::Count | Unit::Ratio => plain(value, more),
    }
}

/// At most three significant digits and `more`, without trailing zeros.
fn plain(value: f64, more: usize) -> String {
    if value.abs() >= 1000.0 {
        return lab::words::grouped(&format!("{value:.0}"));
    }
    let digits = match value.abs() {
        abs if abs >= 99.5 => 0,
        abs if abs >= 9.95 => 1,
        abs if abs >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.0$}", digits + more);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The values of all marks on x (0) or y (1).
fn values(panel: &Panel, side: usize) -> Vec<f64> {
    let mut values = Vec::new();
    for mark in &panel.marks {
        match &mark.shape {
            Shape::Violin(Violin { outline, runs, .. }) if side == 1 => {
                values.extend(outline.iter().map(|point| point[0]).chain(runs.iter().copied()));
            }
            // The ground of violins.
            Shape::Band { from, to, .. } if side == 0 && panel.x.file_sizes => {
                values.extend([from, to]);
            }
            Shape::Line { points, .. } | Shape::Cloud { points } => {
                values.extend(points.iter().map(|point| point[side]));
            }
            Shape::Dots { dots, along: of, .. } => {
                for dot in dots {
                    let value = [dot.x, dot.y][side];
                    values.push(value);
                    let along = usize::from(*of == Along::Y);
                    if let Some((low, high)) = dot.interval.filter(|_| along == side) {
                        values.push(low.max(value / INTERVAL_REACH));
                        values.push(high.min(value * INTERVAL_REACH));
                    }
                }
            }
            // Tiles extend to the middle between two values.
            Shape::Heat { xs, .. } if side == 0 => values.extend(match xs.as_slice() {
                [first, second, .., before, last] => {
                    vec![first * (first / second).sqrt(), last * (last / before).sqrt()]
                }
                few => few.to_vec(),
            }),
            Shape::Rule { at, text, .. } if side == 0 && !text.is_empty() => values.push(*at),
            Shape::Recommended { epsilon, product, .. } if side == 0 => {
                values.push(product / epsilon);
            }
            _ => {}
        }
    }
    values.extend(longest_bar(panel).filter(|_| side == 0));
    values
}

/// The length of the longest row of stacked bars.
fn longest_bar(panel: &Panel) -> Option<f64> {
    let bars = panel.marks.iter().filter_map(|mark| match mark.shape {
        Shape::Bar { row, length, .. } => Some((row, length)),
        _ => None,
    });
    let rows = gathered(bars, |(row, _)| *row).into_iter();
    rows.map(|(_, bars)| bars.iter().map(|(_, length)| length).sum()).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(range: Range, unit: Unit, most: usize) -> Vec<String> {
        let axis = Axis { unit, log: range.log, ..Axis::default() };
        range.ticks(&axis, most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        let log = |low: f64, high: f64| Range { low, high, log: true };
        assert_eq!(labels(log(0.4, 12.0), Unit::Ratio, 6), ["0.5", "1", "2", "5", "10"]);
        assert_eq!(labels(log(900.0, 2e6), Unit::Ns, 4), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        assert_eq!(
            labels(log(3000.0, 2e6), Unit::Bytes, 6),
            ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"]
        );
        assert_eq!(labels(log(0.95, 1.08), Unit::Ratio, 5), ["0.95", "1", "1.05"]);
        // Half percents take a digit more.
        assert_eq!(labels(log(0.992, 1.012), Unit::Ratio, 6), ["0.995", "1", "1.005", "1.01"]);
        let even = Range { low: 0.0, high: 23.0, log: false };
        assert_eq!(labels(even, Unit::Count, 4), ["0", "10", "20"]);
        let narrow = Range { low: 0.0, high: 4900.0, log: false };
        assert_eq!(labels(narrow, Unit::Ns, 2), ["0", "2.5 µs"]);
    }

    #[test]
    fn shares_follow_the_scale() {
        let log = Range { low: 1.0, high: 100.0, log: true };
        assert!((log.share(10.0) - 0.5).abs() < 1e-12);
        let even = Range { low: 0.0, high: 4.0, log: false };
        assert!((even.share(1.0) - 0.25).abs() < 1e-12);
    }
}
