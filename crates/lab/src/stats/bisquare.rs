//! A robust mean of small groups, with a scale from all groups together.

use super::median;

/// The cutoff beyond which a value has weight 0, in standard deviations of normal values. It gives
/// 95 % of the mean's efficiency on normal values (Beaton and Tukey, Technometrics 16, 1974).
pub(super) const CUTOFF_SDS: f64 = 4.685;

/// Steps of the iteration from the median. Further steps change the result negligibly.
const STEPS: usize = 5;

/// The median absolute deviation of a normal distribution, as a share of its standard deviation.
pub(super) const MEDIAN_DEVIATION_OF_NORMAL: f64 = 0.6745;

/// The bisquare-weighted mean of each group, in order; the group's median where all other values
/// have weight 0. The scale is the median distance of all values from the medians of their groups:
/// three values alone do not show which of them is an outlier, but forty groups of three show how
/// far values usually lie from their median.
///
/// # Panics
/// When a group is empty.
pub(super) fn means(groups: &[Vec<f64>]) -> Vec<f64> {
    let medians: Vec<f64> =
        groups.iter().map(|group| median(group).expect("a group has values")).collect();
    // Distances of 0 are left out: the middle value of an odd number is the median itself and shows
    // nothing about the scale.
    let distances = groups
        .iter()
        .zip(&medians)
        .flat_map(|(group, middle)| group.iter().map(move |value| (value - middle).abs()))
        .filter(|&distance| distance > 0.0);
    let Some(distance) = median(distances) else { return medians };
    let cutoff = CUTOFF_SDS * distance / MEDIAN_DEVIATION_OF_NORMAL;
    groups.iter().zip(medians).map(|(group, middle)| mean(group, middle, cutoff)).collect()
}

fn mean(group: &[f64], middle: f64, cutoff: f64) -> f64 {
    let mut mean = middle;
    for _ in 0..STEPS {
        let (mut weighted, mut weights) = (0.0, 0.0);
        for value in group {
            let weight = weight((value - mean) / cutoff);
            weighted += weight * value;
            weights += weight;
        }
        if weights == 0.0 {
            return middle;
        }
        mean = weighted / weights;
    }
    mean
}

/// The variance of a bisquare mean of values distributed as `remainders` around it, times their
/// number: the mean square of the influence function over the square of its mean slope (Huber,
/// Annals of Mathematical Statistics 35, 1964). `None` where the slope is not positive.
pub(super) fn variance(remainders: &[f64]) -> Option<f64> {
    let distance = median(remainders.iter().map(|it| it.abs()))?;
    let cutoff = CUTOFF_SDS * distance / MEDIAN_DEVIATION_OF_NORMAL;
    let (mut squares, mut slopes) = (0.0, 0.0);
    for remainder in remainders {
        let square = (remainder / cutoff).powi(2);
        squares += (remainder * weight(remainder / cutoff)).powi(2);
        slopes += if square < 1.0 { (1.0 - square) * (1.0 - 5.0 * square) } else { 0.0 };
    }
    (slopes > 0.0).then(|| squares * remainders.len() as f64 / (slopes * slopes))
}

/// Tukey's bisquare weight: 1 at 0, and 0 from the cutoff (1) on.
pub(super) fn weight(distance: f64) -> f64 {
    if distance.abs() >= 1.0 { 0.0 } else { (1.0 - distance * distance).powi(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pooled_scale_shows_the_outliers_of_small_groups() {
        let groups: Vec<Vec<f64>> = (0..9)
            .map(|group| {
                let base = f64::from(group);
                vec![base - 0.1, base, base + 0.1]
            })
            .chain([vec![20.0, 20.1, 25.0]])
            .collect();
        let means = means(&groups);
        assert!((means[3] - 3.0).abs() < 1e-12, "{means:?}");
        assert!((means[9] - 20.05).abs() < 0.01, "{means:?}");
    }

    #[test]
    fn few_or_equal_values_keep_their_median() {
        assert_eq!(means(&[vec![2.0], vec![5.0]]), [2.0, 5.0]);
        assert_eq!(means(&[vec![2.0; 4], vec![5.0; 3]]), [2.0, 5.0]);
        // Both values lie farther than the cutoff from the median between them.
        let apart = means(&[vec![0.0, 0.1], vec![0.0, 0.1], vec![0.0, 0.1], vec![-50.0, 50.0]]);
        assert_eq!(apart[3], 0.0);
    }
}
