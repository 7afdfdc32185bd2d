//! Lists of distinct or grouped values, in the order of first occurrence.

/// Each value once.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// The values, grouped by key.
pub fn gathered<T, K: PartialEq>(
    values: impl IntoIterator<Item = T>,
    key_of: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut gathered: Vec<(K, Vec<T>)> = Vec::new();
    for value in values {
        let key = key_of(&value);
        match gathered.iter_mut().find(|(of, _)| *of == key) {
            Some((_, values)) => values.push(value),
            None => gathered.push((key, vec![value])),
        }
    }
    gathered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_first_occurrence_is_kept() {
        assert_eq!(distinct([3, 1, 3, 2, 1]), [3, 1, 2]);
        let by_parity = gathered([3, 1, 4, 5, 2], |value| value % 2);
        assert_eq!(by_parity, [(1, vec![3, 1, 5]), (0, vec![4, 2])]);
    }
}
