//! Hartigan's dip: the distance of a sample from distributions with one mode.

/// The dip of `values`: the largest distance between their distribution function and the closest
/// one with a single mode (Hartigan and Hartigan, Annals of Statistics 13, 1985). Between 1 / (2 n)
/// and 1/4; 0 when all values are equal.
pub(super) fn dip(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted)
}

/// The dip of `sorted`, values in ascending order.
pub(super) fn of_sorted(sorted: &[f64]) -> f64 {
    let steps = Steps::new(sorted);
    if steps.at.len() < 2 {
        return 0.0;
    }
    // The interval of possible modes shrinks until the largest distance to the sample lies outside
    // of it, where the closest function is convex below and concave above.
    let (mut low, mut high) = (0, steps.at.len() - 1);
    let mut outside: f64 = 1.0;
    loop {
        let minorant = steps.minorant(low, high);
        let majorant = steps.majorant(low, high);
        let (apart, next_low, next_high) = steps.farthest(&minorant, &majorant);
        if apart <= outside {
            break;
        }
        let below =
            (low..=next_low).map(|i| steps.after[i] - steps.height(&minorant, &steps.before, i));
        let above =
            (next_high..=high).map(|i| steps.height(&majorant, &steps.after, i) - steps.before[i]);
        outside = below.chain(above).fold(outside, f64::max);
        if (next_low, next_high) == (low, high) {
            break;
        }
        (low, high) = (next_low, next_high);
    }
    outside / (2.0 * sorted.len() as f64)
}

/// An empirical distribution function: distinct values, and for each the number of smaller values
/// and of values that are not larger.
struct Steps {
    at: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
}

impl Steps {
    fn new(sorted: &[f64]) -> Steps {
        let mut steps = Steps { at: Vec::new(), before: Vec::new(), after: Vec::new() };
        for (index, &value) in sorted.iter().enumerate() {
            if steps.at.last() == Some(&value) {
                *steps.after.last_mut().expect("one a value") += 1.0;
            } else {
                steps.at.push(value);
                steps.before.push(index as f64);
                steps.after.push(index as f64 + 1.0);
            }
        }
        steps
    }

    /// The corners of the greatest convex minorant of the steps, from `low` to `high`.
    fn minorant(&self, low: usize, high: usize) -> Vec<usize> {
        self.corners(low, high, |a, b, c| self.turn(&self.before, a, b, c) > 0.0)
    }

    /// The corners of their least concave majorant.
    fn majorant(&self, low: usize, high: usize) -> Vec<usize> {
        self.corners(low, high, |a, b, c| self.turn(&self.after, a, b, c) < 0.0)
    }

    fn corners(
        &self,
        low: usize,
        high: usize,
        is_corner: impl Fn(usize, usize, usize) -> bool,
    ) -> Vec<usize> {
        let mut corners: Vec<usize> = Vec::with_capacity(high - low + 1);
        for next in low..=high {
            while let [.., before, last] = corners[..]
                && !is_corner(before, last, next)
            {
                corners.pop();
            }
            corners.push(next);
        }
        corners
    }

    /// Positive when the path from a over b to c turns upwards.
    fn turn(&self, heights: &[f64], a: usize, b: usize, c: usize) -> f64 {
        (self.at[b] - self.at[a]) * (heights[c] - heights[a])
            - (heights[b] - heights[a]) * (self.at[c] - self.at[a])
    }

    /// The height at a value of the line through `corners`.
    fn height(&self, corners: &[usize], heights: &[f64], index: usize) -> f64 {
        match corners.binary_search(&index) {
            Ok(_) => heights[index],
            Err(place) => {
                let (left, right) = (corners[place - 1], corners[place]);
                let share = (self.at[index] - self.at[left]) / (self.at[right] - self.at[left]);
                heights[left] + share * (heights[right] - heights[left])
            }
        }
    }

    /// The largest distance between the two lines, which is at a corner of one of them, and the
    /// corners around that position: the last of the minorant up to it, and the first of the
    /// majorant from it on.
    fn farthest(&self, minorant: &[usize], majorant: &[usize]) -> (f64, usize, usize) {
        let mut farthest = (0.0, minorant[0], majorant[majorant.len() - 1]);
        for &corner in minorant {
            let apart = self.height(majorant, &self.after, corner) - self.before[corner];
            if apart > farthest.0 {
                farthest = (apart, corner, majorant[majorant.partition_point(|&it| it < corner)]);
            }
        }
        for &corner in majorant {
            let apart = self.after[corner] - self.height(minorant, &self.before, corner);
            if apart > farthest.0 {
                let place = minorant.partition_point(|&it| it <= corner);
                farthest = (apart, minorant[place - 1], corner);
            }
        }
        farthest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of `known_answers.py`: fractions of multiples of the golden ratio, in two
    /// clusters.
    fn two_clusters(count: u32, apart: f64, share: f64) -> Vec<f64> {
        (1..=count)
            .map(|i| {
                let spread = (f64::from(i) * 0.618_033_988_749_894_9).fract();
                let other = (f64::from(i) * 0.414_213_562_373_095_1).fract() < share;
                spread * spread + if other { apart } else { 0.0 }
            })
            .collect()
    }

    /// Known answers, computed by `known_answers.py` beside this file with diptest 0.12.
    #[test]
    fn agrees_with_diptest() {
        let cases = [
            (20, 0.0, 0.0, 0.031_085_144_9),
            (20, 2.0, 0.5, 0.140_135_179_5),
            (50, 0.8, 0.3, 0.067_377_353_1),
            (100, 3.0, 0.1, 0.034_854_441_0),
            (333, 1.1, 0.4, 0.048_431_593_3),
        ];
        for (count, apart, share, expected) in cases {
            let got = dip(&two_clusters(count, apart, share));
            assert!((got - expected).abs() < 1e-9, "{count}: {got} for {expected}");
        }
        let tied = [1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 7.0, 7.0, 7.0, 8.0];
        assert!((dip(&tied) - 0.16).abs() < 1e-9, "{}", dip(&tied));
    }

    #[test]
    fn few_values() {
        assert_eq!(dip(&[]), 0.0);
        assert_eq!(dip(&[4.0]), 0.0);
        assert_eq!(dip(&[1.0, 2.0, 3.0, 4.0]), 0.125);
        assert_eq!(dip(&[4.0; 5]), 0.0);
    }
}
