//! Quantiles of a sample.

use std::borrow::Borrow;

/// The `q` quantile of `values`, 0 <= q <= 1, interpolated between neighbours (type 7 of Hyndman
/// and Fan, The American Statistician 50, 1996: the default of R, numpy and spreadsheets).
/// `None` without values.
///
/// # Panics
/// When `q` lies outside 0 to 1.
pub fn quantile(values: impl IntoIterator<Item: Borrow<f64>>, q: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().map(|value| *value.borrow()).collect();
    assert!((0.0..=1.0).contains(&q), "a quantile lies between 0 and 1, {q} does not");
    let last = values.len().checked_sub(1)?;
    let place = q * last as f64;
    // An index: 0 <= place <= last.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let below = place.floor() as usize;
    let share = place - place.floor();
    // Selects the two neighbours without sorting, since there may be very many values.
    let (_, &mut low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let next = above.iter().copied().min_by(f64::total_cmp);
    let high = next.filter(|_| share > 0.0).unwrap_or(low);
    Some(low * (1.0 - share) + high * share)
}

/// The median of `values`; `None` without values.
pub fn median(values: impl IntoIterator<Item: Borrow<f64>>) -> Option<f64> {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers, computed by `known_answers.py` beside this file with numpy 2.4.
    #[test]
    fn agrees_with_numpy() {
        let values = [3.1, 1.2, 9.7, 4.4, 2.8, 7.5];
        for (q, expected) in
            [(0.0, 1.2), (0.05, 1.6), (0.25, 2.875), (0.5, 3.75), (0.75, 6.725), (1.0, 9.7)]
        {
            let got = quantile(values, q).expect("there are values");
            assert!((got - expected).abs() < 1e-12, "{q}: {got} for {expected}");
        }
    }

    #[test]
    fn few_values() {
        assert_eq!(median([0.0; 0]), None);
        assert_eq!(median([5.0]), Some(5.0));
        assert_eq!(median([5.0, 7.0]), Some(6.0));
    }
}
