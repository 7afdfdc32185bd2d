//! Many tests of one question at once.

/// The p values adjusted by Holm's step-down method (Scandinavian Journal of Statistics 6, 1979),
/// in the order given. Rejecting those of at most α keeps the chance of any false rejection at or
/// below α, for any dependence between the tests.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let count = p_values.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; count];
    let mut largest: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max(p_values[index] * (count - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answer: `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")` in R.
    #[test]
    fn agrees_with_r() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - expected).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn never_exceeds_one_and_accepts_no_values() {
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
