//! What one read(2) or write(2) costs by the size of its buffer: a line c + f n, modes, the steps
//! of readahead, and the buffer from which on the calls themselves cost little.

use waits::Waits;

pub(crate) mod cost;
#[cfg(test)]
mod tests;
pub(crate) mod waits;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use engines::Bytes;
use serde::{Deserialize, Serialize};

use crate::analysis::view::{CellView, View, by_session};
use crate::definition::{reference, without_label};
use crate::page_cache::state::State;
use crate::sample::record::CallRecord;
use crate::stats::Estimated;
use crate::stats::models::{CostLine, Point, buffer_for_overhead, cost_line};

/// The overhead that a buffer is recommended for: what the calls themselves may cost as a share of
/// what the bytes cost.
const OVERHEAD: f64 = 0.01;

/// Single calls of all cells. Cells in different states are never put together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerCall {
    /// Each cell.
    pub cells: Vec<CellCalls>,
    /// The share of the bytes' cost that the calls may add with the buffer recommended.
    pub overhead: f64,
}

/// The calls of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellCalls {
    /// The cell's short name.
    pub cell: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The page cache state.
    pub state: State,
    /// Runs at once.
    pub at_once: u32,
    /// Each buffer, reads before writes.
    pub calls: Vec<CallCost>,
    /// What a read costs, c + f n: of means, so that what some calls wait for is in it; none with
    /// fewer than three buffers.
    pub read: Option<CostLine>,
    /// What a write costs.
    pub write: Option<CostLine>,
    /// From this buffer on the calls add no more than `overhead`: (c_r + c_w) / (ε (f_r + f_w)).
    pub recommended_bytes: Option<Estimated>,
}

/// Calls of one kind with one buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallCost {
    /// `read` or `write`.
    pub op: String,
    /// Bytes of the buffer.
    pub buffer_bytes: u64,
    /// Calls of all runs that count.
    pub calls: u64,
    /// The mean of the calls, without the reading of the clock.
    pub mean_ns: f64,
    /// The 5 % quantile, without the reading of the clock; quantiles are exact to 1.6 %.
    pub p05_ns: f64,
    /// The median.
    pub median_ns: f64,
    /// The 95 % quantile.
    pub p95_ns: f64,
    /// Around which times the calls gather, fastest first.
    pub modes: Vec<Mode>,
    /// Reads that waited for the device, and how far apart they lie; none where there are too few.
    pub waits: Option<Waits>,
    /// The median that was published for this buffer.
    pub then_median_ns: Option<f64>,
}

/// A group of calls that took about as long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// Where it is the densest.
    pub at_ns: f64,
    /// The group's share of the calls.
    pub share: f64,
}

pub(crate) fn of(view: &View<'_>) -> Option<PerCall> {
    let cells: Vec<CellCalls> = view.cells.iter().filter_map(|cell| of_cell(view, cell)).collect();
    (!cells.is_empty()).then_some(PerCall { cells, overhead: OVERHEAD })
}

fn of_cell(view: &View<'_>, cell: &CellView<'_>) -> Option<CellCalls> {
    let mut calls = Vec::new();
    let mut points: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for (index, variant) in view.part.variants.iter().enumerate() {
        let Ok(Bytes(buffer_bytes)) = without_label(variant).parse() else { continue };
        let counted: BTreeSet<(u32, u32, u32)> = cell.counted[index]
            .iter()
            .map(|record| (record.session, record.round, record.repeat))
            .collect();
        for op in ["read", "write"] {
            let own: Vec<&CallRecord> = cell
                .calls
                .iter()
                .copied()
                .filter(|c| c.variant == *variant && c.op == op)
                .filter(|c| counted.contains(&(c.session, c.round, c.repeat)))
                .collect();
            let Some(mut cost) = CallCost::of(op, buffer_bytes, &own) else { continue };
            if op == "read" {
                cost.waits = waits::of(cell, variant, buffer_bytes, cost.median_ns);
            }
            cost.then_median_ns = published(view, variant, op);
            calls.push(cost);
            points.entry(op).or_default().extend(by_session(run_means(buffer_bytes, &own)));
        }
    }
    if calls.is_empty() {
        return None;
    }
    calls.sort_by(|a, b| (&a.op, a.buffer_bytes).cmp(&(&b.op, b.buffer_bytes)));
    let of = |op: &str| points.get(op).map_or(&[] as &[Point], Vec::as_slice);
    let recommended = buffer_for_overhead(of("read"), of("write"), OVERHEAD);
    Some(CellCalls {
        cell: cell.cell.id(),
        file_bytes: cell.cell.file_bytes,
        state: cell.cell.state,
        at_once: cell.cell.at_once,
        calls,
        read: cost_line(of("read")),
        write: cost_line(of("write")),
        recommended_bytes: recommended,
    })
}

/// The mean of each run's calls, without the reading of the clock.
fn run_means(buffer_bytes: u64, calls: &[&CallRecord]) -> Vec<Point> {
    let mut runs: BTreeMap<(u32, u32), (u64, u128, u64)> = BTreeMap::new();
    for call in calls {
        let (count, sum_ns, clock_ns) = runs.entry((call.session, call.round)).or_default();
        *count += call.bucket.calls;
        *sum_ns += u128::from(call.bucket.sum_ns);
        *clock_ns = call.clock_ns;
    }
    runs.into_iter()
        .map(|((session, _), (count, sum_ns, clock_ns))| Point {
            bytes: buffer_bytes as f64,
            elapsed_ns: (sum_ns as f64 / count as f64 - clock_ns as f64).max(1.0),
            session,
        })
        .collect()
}

fn published(view: &View<'_>, variant: &str, op: &str) -> Option<f64> {
    let reference = view.part.reference.as_ref()?;
    let (_, buffer) = reference.series.get(variant)?.rsplit_once('@')?;
    let figures = reference::by_name(&reference.data)?.figures(&format!("call_{op}@{buffer}"));
    figures.first().map(|figure| figure.elapsed_ns)
}
