//! Numbers in the data of a page, with few digits.

use serde::{Serialize, Serializer};

/// `value` with four significant digits: no drawing shows more, and a page has many numbers.
#[must_use]
pub fn shortened(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn number(value: f64) -> Option<serde_json::Value> {
    let value = shortened(value);
    // Integers are written without a decimal point. Beyond 2^53 a float is not always that integer.
    #[allow(clippy::cast_possible_truncation)]
    match value {
        value if value.fract() == 0.0 && value.abs() < 9e15 => Some((value as i64).into()),
        value if value.is_finite() => Some(value.into()),
        _ => None,
    }
}

pub(super) fn short_one<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    number(*value).serialize(to)
}

pub(super) fn short<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.and_then(number).serialize(to)
}

pub(super) fn short_list<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(|value| number(*value)))
}

pub(super) fn short_pairs<S: Serializer>(pairs: &[[f64; 2]], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(pairs.iter().map(|pair| pair.map(number)))
}

pub(super) fn short_rows<S: Serializer>(
    rows: &[Vec<Option<f64>>],
    to: S,
) -> Result<S::Ok, S::Error> {
    let row =
        |row: &Vec<Option<f64>>| -> Vec<_> { row.iter().map(|v| v.and_then(number)).collect() };
    to.collect_seq(rows.iter().map(row))
}
