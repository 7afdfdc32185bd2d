//! Reduces the times of many sessions to one time a size.

use std::collections::BTreeMap;

use crate::stats::{bisquare, median};

/// The time of one run or call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes; positive.
    pub bytes: f64,
    /// Nanoseconds; positive.
    pub elapsed_ns: f64,
    /// The session in which it was measured. With one session only, its rounds may be passed as
    /// sessions; the intervals then lack the variation between sessions.
    pub session: u32,
}

/// The logarithms of typical times, of each session and of all.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// Bytes, ascending.
    pub(super) bytes: Vec<f64>,
    /// For each size.
    pub(super) logs: Vec<f64>,
    /// The residuals: each session's value less the effects of its size and of its session.
    remainders: Vec<f64>,
    sessions: usize,
}

impl Curve {
    /// The bisquare mean over sessions of the median of each session at each size. Each session is
    /// first shifted by its mean difference from the others at all sizes, so that a session without
    /// some sizes does not bend the curve.
    ///
    /// # Panics
    /// When bytes or a time are not positive.
    pub(super) fn of(points: &[Point]) -> Curve {
        let positive = |point: &Point| point.bytes > 0.0 && point.elapsed_ns > 0.0;
        assert!(points.iter().all(positive), "bytes and times are positive");
        let mut cells: BTreeMap<(u64, u32), Vec<f64>> = BTreeMap::new();
        for point in points {
            // Positive floats have the order of their bits.
            let cell = cells.entry((point.bytes.to_bits(), point.session)).or_default();
            cell.push(point.elapsed_ns.ln());
        }
        let mut sizes: BTreeMap<u64, Vec<(u32, f64)>> = BTreeMap::new();
        for ((bytes, session), logs) in cells {
            let log = median(&logs).expect("a cell has values");
            sizes.entry(bytes).or_default().push((session, log));
        }
        let shifts = shifts(&sizes);
        let moved: Vec<Vec<f64>> = sizes
            .values()
            .map(|size| size.iter().map(|(session, log)| log - shifts[session]).collect())
            .collect();
        let logs = bisquare::means(&moved);
        let remainders = moved.iter().zip(&logs);
        Curve {
            bytes: sizes.keys().map(|&bits| f64::from_bits(bits)).collect(),
            remainders: remainders
                .flat_map(|(size, log)| size.iter().map(move |it| it - log))
                .collect(),
            logs,
            sessions: shifts.len(),
        }
    }

    /// A curve of the same sizes with other values.
    pub(super) fn with_logs(&self, logs: Vec<f64>) -> Curve {
        Curve { logs, ..self.clone() }
    }

    /// The standard error of a size's value and its degrees of freedom, from the residuals of the
    /// sessions. `None` when no degree of freedom is left, as with one session.
    pub(super) fn error(&self) -> Option<(f64, f64)> {
        let sessions = self.sessions as f64;
        let freedom = (self.remainders.len() as f64) - self.bytes.len() as f64 - sessions + 1.0;
        if freedom < 1.0 {
            return None;
        }
        let variance = bisquare::variance(&self.remainders)?;
        let inflated = (variance * self.remainders.len() as f64 / freedom).sqrt();
        Some((inflated / sessions.sqrt(), freedom))
    }
}

/// How much slower each session is at all sizes than the mean session. The values add up to 0.
fn shifts(sizes: &BTreeMap<u64, Vec<(u32, f64)>>) -> BTreeMap<u32, f64> {
    let mut distances: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for size in sizes.values() {
        let middle = median(size.iter().map(|(_, log)| log)).expect("a size has values");
        for (session, log) in size {
            distances.entry(*session).or_default().push(log - middle);
        }
    }
    let shifts: BTreeMap<u32, f64> = distances
        .iter()
        .map(|(&session, it)| (session, median(it).expect("a session has values")))
        .collect();
    let mean = shifts.values().sum::<f64>() / shifts.len() as f64;
    shifts.into_iter().map(|(session, shift)| (session, shift - mean)).collect()
}
