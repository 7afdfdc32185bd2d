//! Taking out of log-ratios what the machine's speed just before the runs foretold.

use super::theil_sen;

/// More points than this tell the slope no better, and the work grows with their square.
const POINTS_MAX: usize = 600;

/// Kendall's z under which none of the slope is believed: twice what chance
/// gives on average.
const BELIEVED_FROM_Z: f64 = 2.0;

/// How far log-ratios of runs follow the log-ratios of probes of the machine's speed, made just
/// before them, which know nothing of variants. 0 when there is no telling that they do.
///
/// The slope is Theil and Sen's over all rounds of all sessions, each session's median taken off
/// where it has three rounds or more, since what distinguishes sessions need not follow the probe
/// as the rounds do. It is then shrunk by 1 - (2 / z)², where z is Kendall's: a probe that
/// foretells nothing would only add its own noise.
///
/// # Panics
/// When the shapes of the two differ.
pub(super) fn slope(log_ratios: &[Vec<f64>], probes: &[Vec<f64>]) -> f64 {
    let same = log_ratios.len() == probes.len()
        && log_ratios.iter().zip(probes).all(|(runs, probes)| runs.len() == probes.len());
    assert!(same, "each round has a log-ratio of runs and one of probes");
    let (y, x) = (thinned(&centered(log_ratios)), thinned(&centered(probes)));
    let Some(line) = theil_sen(&x, &y) else { return 0.0 };
    line.slope * (1.0 - (BELIEVED_FROM_Z / line.kendall_z).powi(2)).max(0.0)
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

fn thinned(values: &[f64]) -> Vec<f64> {
    values.iter().copied().step_by(values.len().div_ceil(POINTS_MAX).max(1)).collect()
}
