//! Quantiles and modes of the calls of one kind with one buffer.

use std::collections::BTreeMap;

use super::{CallCost, Mode};
use crate::sample::record::CallRecord;
use crate::stats::median;

/// Bins between a power of two and the next, in which modes are looked for.
const BINS_PER_OCTAVE: f64 = 8.0;

/// A mode with less of the calls is noise.
const MODE_SHARE_MIN: f64 = 0.02;

/// How deep the valley between two modes is, as a share of the smaller one, at the least; and in
/// standard deviations of a count as high as that one.
const VALLEY_DEPTH: f64 = 0.5;
const VALLEY_DEPTH_SDS: f64 = 3.0;

impl CallCost {
    pub(crate) fn of(op: &str, buffer_bytes: u64, records: &[&CallRecord]) -> Option<CallCost> {
        let clock_ns = median(records.iter().map(|c| c.clock_ns as f64))?;
        let mut buckets: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut sum_ns = 0_u128;
        for CallRecord { bucket, .. } in records {
            let (_, calls) = buckets.entry(bucket.from_ns).or_insert((bucket.to_ns, 0));
            *calls = calls.saturating_add(bucket.calls);
            sum_ns += u128::from(bucket.sum_ns);
        }
        let buckets: Vec<(f64, u64)> = buckets
            .into_iter()
            .map(|(from, (to, calls))| {
                let middle_ns = (from as f64 + to as f64 - 1.0) / 2.0;
                ((middle_ns - clock_ns).max(1.0), calls)
            })
            .collect();
        let calls = buckets.iter().fold(0, |sum: u64, (_, calls)| sum.saturating_add(*calls));
        let quantile = |q: f64| {
            let mut before = 0.0;
            let at = buckets.iter().find(|(_, of_bucket)| {
                before += *of_bucket as f64;
                before >= q * calls as f64
            });
            at.map_or(f64::NAN, |(ns, _)| *ns)
        };
        Some(CallCost {
            op: op.to_owned(),
            buffer_bytes,
            calls,
            mean_ns: (sum_ns as f64 / calls as f64 - clock_ns).max(1.0),
            p05_ns: quantile(0.05),
            median_ns: quantile(0.5),
            p95_ns: quantile(0.95),
            modes: modes(&buckets),
            waits: None,
            then_median_ns: None,
        })
    }
}

/// The groups in which calls lie, from counts of calls at ascending times. Counts are put into bins
/// of an eighth of an octave and smoothed a little; a valley separates two modes when it is at
/// least half as deep as the smaller is high.
fn modes(buckets: &[(f64, u64)]) -> Vec<Mode> {
    let bin = |ns: f64| (ns.log2() * BINS_PER_OCTAVE).round();
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return Vec::new() };
    let lowest = bin(first.0) - 2.0;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 64 octaves.
    let index = |ns: f64| (bin(ns) - lowest) as usize;
    let mut counts = vec![0.0; index(last.0) + 3];
    for &(ns, calls) in buckets {
        counts[index(ns)] += calls as f64;
    }
    let smooth: Vec<f64> = (0..counts.len())
        .map(|at| {
            let of = |at: Option<usize>| at.and_then(|at| counts.get(at)).copied().unwrap_or(0.0);
            (of(at.checked_sub(1)) + 2.0 * counts[at] + of(Some(at + 1))) / 4.0
        })
        .collect();
    let all: f64 = counts.iter().sum();
    let time = |at: usize| ((at as f64 + lowest) / BINS_PER_OCTAVE).exp2();
    let mut modes: Vec<Mode> = hills(&smooth)
        .into_iter()
        .map(|(top, range)| Mode {
            at_ns: time(top),
            share: counts[range].iter().sum::<f64>() / all,
        })
        .collect();
    modes.retain(|mode| mode.share >= MODE_SHARE_MIN);
    modes
}

/// The peaks of a histogram with the range around each; shallow valleys separate nothing.
fn hills(heights: &[f64]) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut hills: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    let (mut top, mut valley, mut began) = (0, 0, 0);
    for at in 1..heights.len() {
        let lower = heights[top].min(heights[at]);
        let depth = lower - heights[valley];
        let shallow = depth <= lower * VALLEY_DEPTH || depth <= VALLEY_DEPTH_SDS * lower.sqrt();
        if heights[at] > heights[top] && (shallow || valley <= top) {
            (top, valley) = (at, at);
        } else if heights[at] < heights[valley] || valley <= top {
            valley = at;
        } else if !shallow {
            hills.push((top, began..valley));
            began = valley;
            (top, valley) = (at, at);
        }
    }
    hills.push((top, began..heights.len()));
    hills
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hills_are_parted_by_deep_valleys_only() {
        let tops = |heights: &[f64]| hills(heights).iter().map(|(top, _)| *top).collect::<Vec<_>>();
        assert_eq!(tops(&[0.0, 50.0, 40.0, 60.0, 0.0]), [3]);
        assert_eq!(tops(&[0.0, 50.0, 10.0, 60.0, 0.0]), [1, 3]);
        assert_eq!(tops(&[0.0, 60.0, 10.0, 50.0, 0.0, 0.0]), [1, 3]);
        assert_eq!(tops(&[3.0, 2.0, 1.0]), [0]);
        // A few calls lie anywhere.
        assert_eq!(tops(&[0.0, 5.0, 1.0, 6.0, 0.0]), [3]);
    }
}
