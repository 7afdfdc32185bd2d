//! Finds the reads that waited for a device. Their distance is the length of the readahead.

use serde::{Deserialize, Serialize};

use crate::analysis::view::CellView;
use crate::stats::median;

/// A read that took this many times the median waited for a device.
const WAIT_FACTOR: f64 = 5.0;

/// Reads that waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// The share of all reads that waited.
    pub share: f64,
    /// Bytes from one to the next, the median: what the kernel reads ahead at a time.
    pub every_bytes: u64,
    /// What they took, the median.
    pub wait_ns: f64,
}

/// Reads that took much longer than half of them, and how far apart they lie. Only of sequences
/// that hold every call.
pub(crate) fn of(
    cell: &CellView<'_>,
    variant: &str,
    buffer_bytes: u64,
    median_ns: f64,
) -> Option<Waits> {
    let own = cell.sequences.iter().filter(|s| s.variant == variant && s.op == "read");
    let mut distances = Vec::new();
    let mut waited_ns = Vec::new();
    let mut reads = 0_usize;
    let mut previous: Option<(u32, u64)> = None;
    let mut before: Option<(u32, u64)> = None;
    for read in own {
        let follows = |call: u64| call.checked_add(1) == Some(read.call);
        if before.is_some_and(|(session, call)| session == read.session && !follows(call)) {
            return None;
        }
        before = Some((read.session, read.call));
        reads += 1;
        if (read.elapsed_ns as f64) < WAIT_FACTOR * median_ns {
            continue;
        }
        waited_ns.push(read.elapsed_ns as f64);
        if let Some((session, call)) = previous
            && session == read.session
        {
            // The reads of a session are in order, unless lines of others are between them.
            distances.push(read.call.checked_sub(call)? as f64 * buffer_bytes as f64);
        }
        previous = Some((read.session, read.call));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within a file.
    let every_bytes = median(&distances)?.round() as u64;
    Some(Waits {
        share: waited_ns.len() as f64 / reads as f64,
        every_bytes,
        wait_ns: median(&waited_ns)?,
    })
}
