//! Lists that keep the order in which what they hold first came.

/// Each of the values once.
pub(crate) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// The values by what they have in common.
pub(crate) fn gathered<T, K: PartialEq>(
    values: impl IntoIterator<Item = T>,
    common: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut gathered: Vec<(K, Vec<T>)> = Vec::new();
    for value in values {
        let key = common(&value);
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
    fn what_came_first_stands_first() {
        assert_eq!(distinct([3, 1, 3, 2, 1]), [3, 1, 2]);
        let by_parity = gathered([3, 1, 4, 5, 2], |value| value % 2);
        assert_eq!(by_parity, [(1, vec![3, 1, 5]), (0, vec![4, 2])]);
    }
}
