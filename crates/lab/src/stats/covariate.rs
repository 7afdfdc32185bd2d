//! Adjusts log-ratios for the machine's speed just before the runs.

use super::theil_sen::theil_sen;

/// Below this value of Kendall's z the slope is taken as 0: twice its standard deviation by chance.
const SLOPE_Z_MIN: f64 = 2.0;

/// The slope of log-ratios of runs on log-ratios of probes of the machine's speed, which ran just
/// before them and do not depend on the variant. 0 when no slope is shown.
///
/// It is the Theil-Sen slope over all rounds of all sessions. The median of each session with three
/// or more rounds is subtracted first, since the differences between sessions need not follow the
/// probe as rounds do. The slope is then shrunk by the factor 1 - (2 / z)², where z is Kendall's: a
/// probe without influence would only add its own noise.
///
/// # Panics
/// When the shapes of the two differ.
pub(super) fn slope(log_ratios: &[Vec<f64>], probes: &[Vec<f64>]) -> f64 {
    let same = log_ratios.len() == probes.len()
        && log_ratios.iter().zip(probes).all(|(runs, probes)| runs.len() == probes.len());
    assert!(same, "each round has a log-ratio of runs and one of probes");
    let Some(slope) = theil_sen(&centered(probes), &centered(log_ratios)) else { return 0.0 };
    slope.value * (1.0 - (SLOPE_Z_MIN / slope.kendall_z).powi(2)).max(0.0)
}

fn centered(groups: &[Vec<f64>]) -> Vec<f64> {
    let rounds = groups.iter().map(Vec::len).min().unwrap_or(0);
    let middles = groups.iter().map(|group| match super::median(group) {
        Some(middle) if rounds >= 3 => middle,
        _ => 0.0,
    });
    let pairs = groups.iter().zip(middles);
    pairs.flat_map(|(group, middle)| group.iter().map(move |value| value - middle)).collect()
}
