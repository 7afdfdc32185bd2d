//! The buffer size that a given overhead requires.

use super::{
    curve::{Curve, Point},
    fit::Fit,
    jackknife::jackknife,
};
use crate::stats::Estimated;

/// The buffer, in bytes, from which on the calls cost at most the share `overhead` (ε) of the cost
/// of the bytes: B ≥ (c_r + c_w) / (ε (f_r + f_w)). c is the cost of a read or write call and f
/// that of a byte, each from the line through `reads` and `writes` (single calls in one state of
/// the cache).
///
/// The interval is that of the logarithm, by a jackknife that leaves a session out of both lines at
/// once. The value is 0 without interval when the cost of calls is too small to be measured; there
/// is no interval either when that is so without some session. `None` when either line has fewer
/// than three sizes, or the cost of bytes is not positive.
///
/// # Panics
/// When `overhead`, bytes or a time are not positive.
pub fn buffer_for_overhead(reads: &[Point], writes: &[Point], overhead: f64) -> Option<Estimated> {
    assert!(overhead > 0.0, "an overhead of {overhead} takes a buffer without end");
    let costs = |samples: &[Vec<Point>]| -> Option<[f64; 2]> {
        let reads = Fit::of(&Curve::of(&samples[0]), None, None)?;
        let writes = Fit::of(&Curve::of(&samples[1]), None, None)?;
        Some([reads.costs[0] + writes.costs[0], reads.costs[1] + writes.costs[1]])
    };
    let [call, _] = costs(&[reads.to_vec(), writes.to_vec()]).filter(|[_, byte]| *byte > 0.0)?;
    if call <= 0.0 {
        return Some(Estimated::new(0.0, None));
    }
    let log_bytes = |samples: &[Vec<Point>]| {
        let [call, byte] = costs(samples)?;
        (call > 0.0 && byte > 0.0).then(|| [(call / byte / overhead).ln()])
    };
    let [log] = jackknife(&[reads, writes], log_bytes)?;
    Some(log.map(f64::exp))
}
