//! How large a buffer has to be.

use super::{
    curve::{Curve, Point},
    fit::Fit,
    jackknife::{Estimate, jackknife},
};
use crate::stats::Interval;

/// The buffer, in bytes, from which on the calls cost no more than the share `overhead` of what the
/// bytes cost: B ≥ (c_r + c_w) / (ε (f_r + f_w)), with c the cost of a read or write call and f of
/// a byte, each from the line through `reads` and `writes` (single calls, of one state of the
/// cache). Sessions are left out of both at once for the interval, and it is taken of the
/// logarithm. When calls cost nothing that can be seen, the value is 0 with no interval, and when
/// they would not without some session, there is none either. `None` when either has fewer than
/// three sizes, or bytes cost nothing.
///
/// # Panics
/// When `overhead`, bytes or a time are not positive.
#[must_use]
pub fn buffer_for_overhead(reads: &[Point], writes: &[Point], overhead: f64) -> Option<Estimate> {
    assert!(overhead > 0.0, "an overhead of {overhead} takes a buffer without end");
    let costs = |samples: &[Vec<Point>]| -> Option<[f64; 2]> {
        let reads = Fit::of(&Curve::of(&samples[0]), None, None)?;
        let writes = Fit::of(&Curve::of(&samples[1]), None, None)?;
        Some([reads.costs[0] + writes.costs[0], reads.costs[1] + writes.costs[1]])
    };
    let [call, _] = costs(&[reads.to_vec(), writes.to_vec()]).filter(|[_, byte]| *byte > 0.0)?;
    if call <= 0.0 {
        return Some(Estimate { value: 0.0, interval: None });
    }
    let log_bytes = |samples: &[Vec<Point>]| {
        let [call, byte] = costs(samples)?;
        (call > 0.0 && byte > 0.0).then(|| [(call / byte / overhead).ln()])
    };
    let [log] = jackknife(&[reads, writes], log_bytes)?;
    let interval = log.interval.map(|it| Interval { low: it.low.exp(), high: it.high.exp() });
    Some(Estimate { value: log.value.exp(), interval })
}
