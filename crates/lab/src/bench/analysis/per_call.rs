//! What single reads and writes cost by the size of their buffer: lines, modes, steps of readahead,
//! and the buffer that keeps the calls' own cost small.

use std::collections::{BTreeMap, BTreeSet};

use engines::Bytes;
use serde::{Deserialize, Serialize};

use super::Estimated;
use super::sheet::{Sheet, circumstances, cost, percent, plain_percent, rate, size};
use super::view::{CellView, View, by_session};
use crate::bench::definition::without_label;
use crate::bench::record::CallRecord;
use crate::bench::reference;
use crate::state::State;
use crate::stats::median;
use crate::stats::models::{Point, buffer_for_overhead, cost_line};
use crate::words;

/// The overhead that a buffer is recommended for: what the calls themselves may cost as a share of
/// what the bytes cost.
const OVERHEAD: f64 = 0.01;

/// Bins between a power of two and the next, in which modes are looked for.
const BINS_PER_OCTAVE: f64 = 8.0;

/// A mode with less of the calls is noise.
const MODE_SHARE_MIN: f64 = 0.02;

/// How deep the valley between two modes is, as a share of the smaller one, at the least; and in
/// standard deviations of a count as high as that one.
const VALLEY_DEPTH: f64 = 0.5;
const VALLEY_DEPTH_SDS: f64 = 3.0;

/// A cell with more rows than this has some of them in the table only.
const ROWS_MAX: usize = 24;

/// Modes that a row of the table names.
const MODES_NAMED_MAX: usize = 3;

/// How much longer than half of the reads a read is that waited for a device.
const WAIT_FACTOR: f64 = 5.0;

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
    /// What a read costs, c + f n; none with fewer than three buffers.
    pub read: Option<CallLine>,
    /// What a write costs.
    pub write: Option<CallLine>,
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
    /// Their mean, without the look at the clock.
    pub mean_ns: f64,
    /// The 5 % quantile, without the look at the clock; quantiles are exact to 1.6 %.
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
    /// Its share of the calls.
    pub share: f64,
}

/// Reads that waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Their share of the reads.
    pub share: f64,
    /// Bytes from one to the next, the median: what the kernel reads ahead at a time.
    pub every_bytes: u64,
    /// What they took, the median.
    pub wait_ns: f64,
}

/// c + f n for one kind of call: of means, so that what some calls wait for is in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallLine {
    /// c: what a call costs whatever it moves, in nanoseconds.
    pub call_ns: Estimated,
    /// f: what a byte costs, in nanoseconds.
    pub byte_ns: Estimated,
    /// The largest distance of a buffer's mean from the line, as a share of the line.
    pub misfit_largest: f64,
    /// The buffer at which that is.
    pub misfit_at_bytes: u64,
}

pub(super) fn of(view: &View<'_>) -> Option<PerCall> {
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
                cost.waits = waits(cell, variant, buffer_bytes, cost.median_ns);
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
        read: CallLine::through(of("read")),
        write: CallLine::through(of("write")),
        recommended_bytes: recommended.map(Estimated::from),
    })
}

/// The mean of each run's calls, without the look at the clock.
fn run_means(buffer_bytes: u64, calls: &[&CallRecord]) -> Vec<Point> {
    let mut runs: BTreeMap<(u32, u32), (u64, u64, u64)> = BTreeMap::new();
    for call in calls {
        let (count, sum_ns, clock_ns) = runs.entry((call.session, call.round)).or_default();
        *count += call.bucket.calls;
        *sum_ns += call.bucket.sum_ns;
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

impl CallLine {
    fn through(points: &[Point]) -> Option<CallLine> {
        let line = cost_line(points)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A buffer.
        let misfit_at_bytes = line.misfit.at_bytes as u64;
        Some(CallLine {
            call_ns: line.call_ns.into(),
            byte_ns: line.byte_ns.into(),
            misfit_largest: line.misfit.largest,
            misfit_at_bytes,
        })
    }
}

impl CallCost {
    fn of(op: &str, buffer_bytes: u64, records: &[&CallRecord]) -> Option<CallCost> {
        let clock_ns = median(&records.iter().map(|c| c.clock_ns as f64).collect::<Vec<_>>())?;
        let mut buckets: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut sum_ns = 0;
        for CallRecord { bucket, .. } in records {
            let (_, calls) = buckets.entry(bucket.from_ns).or_insert((bucket.to_ns, 0));
            *calls += bucket.calls;
            sum_ns += bucket.sum_ns;
        }
        let buckets: Vec<(f64, u64)> = buckets
            .into_iter()
            .map(|(from, (to, calls))| (((from + to - 1) as f64 / 2.0 - clock_ns).max(1.0), calls))
            .collect();
        let calls: u64 = buckets.iter().map(|(_, calls)| calls).sum();
        let quantile = |q: f64| {
            let mut before = 0;
            let at = buckets.iter().find(|(_, calls)| {
                before += calls;
                before as f64 >= q * buckets_calls(&buckets)
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

fn buckets_calls(buckets: &[(f64, u64)]) -> f64 {
    buckets.iter().map(|(_, calls)| *calls as f64).sum()
}

/// The groups in which calls lie, from counts of calls at ascending times. Counts are put into bins
/// of an eighth of an octave and smoothed a little; a valley separates two modes when it is at least
/// half as deep as the smaller is high.
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

/// The tops of a landscape and the stretch around each, where valleys that are too shallow part
/// nothing.
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

/// Reads that took much longer than half of them, and how far apart they lie. Only of sequences that
/// hold every call.
fn waits(cell: &CellView<'_>, variant: &str, buffer_bytes: u64, median_ns: f64) -> Option<Waits> {
    let own = cell.sequences.iter().filter(|s| s.variant == variant && s.op == "read");
    let mut distances = Vec::new();
    let mut waited_ns = Vec::new();
    let mut reads = 0_usize;
    let mut previous: Option<(u32, u64)> = None;
    let mut before: Option<(u32, u64)> = None;
    for read in own {
        if before.is_some_and(|(session, call)| session == read.session && call + 1 != read.call) {
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
            distances.push(((read.call - call) * buffer_bytes) as f64);
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

impl PerCall {
    pub(super) fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "What single calls cost",
            &[
                "buffer",
                "call",
                "file",
                "mean",
                "median",
                "5 %",
                "95 %",
                "modes",
                "waits every",
                "then",
            ],
        )
        .told_apart_by(3);
        for cell in &self.cells {
            let file =
                format!("{} {}", size(cell.file_bytes), circumstances(cell.state, cell.at_once));
            // The table has every buffer that is a power of two, or all where there are few.
            let few = cell.calls.len() <= ROWS_MAX;
            for call in cell.calls.iter().filter(|c| few || c.buffer_bytes.is_power_of_two()) {
                let mut modes = call.modes.clone();
                modes.sort_by(|a, b| b.share.total_cmp(&a.share));
                modes.truncate(MODES_NAMED_MAX);
                let modes: Vec<String> = modes.iter().map(|m| cost(m.at_ns)).collect();
                let none = || "-".to_owned();
                sheet.row(vec![
                    size(call.buffer_bytes),
                    call.op.clone(),
                    file.clone(),
                    cost(call.mean_ns),
                    cost(call.median_ns),
                    cost(call.p05_ns),
                    cost(call.p95_ns),
                    modes.join(" "),
                    call.waits.map_or_else(none, |waits| size(waits.every_bytes)),
                    call.then_median_ns.map_or_else(none, cost),
                ]);
            }
            for sentence in cell.in_words(self.overhead) {
                sheet.say(sentence);
            }
        }
        sheet
    }
}

impl PerCall {
    /// The buffers recommended.
    pub(super) fn headline(&self) -> Option<String> {
        let of = |cell: &CellCalls| {
            let bytes = cell.recommended_bytes?;
            let state = circumstances(cell.state, cell.at_once);
            Some(format!("{} {state}", bytes.in_words(in_bytes)))
        };
        let said: Vec<String> = self.cells.iter().filter_map(of).collect();
        (!said.is_empty()).then(|| {
            format!(
                "calls cost {} % with a buffer of {}",
                plain_percent(self.overhead),
                words::listed(&said)
            )
        })
    }
}

/// An estimate that may lie below nothing, in bytes.
fn in_bytes(bytes: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Bytes.
    let bytes = bytes.max(0.0).round() as u64;
    words::bytes(bytes)
}

impl CellCalls {
    fn in_words(&self, overhead: f64) -> Vec<String> {
        let state = circumstances(self.state, self.at_once);
        let mut said = Vec::new();
        for (op, line) in [("read", &self.read), ("write", &self.write)] {
            let Some(line) = line else { continue };
            said.push(format!(
                "A {op}, {state}: {} and {} a byte ({}); the line is off by up to {}, at {}.",
                line.call_ns.in_words(cost),
                line.byte_ns.in_words(cost),
                rate(line.byte_ns.value),
                percent(line.misfit_largest),
                size(line.misfit_at_bytes)
            ));
        }
        if let Some(bytes) = self.recommended_bytes {
            said.push(format!(
                "With a buffer of {} or more the calls add no more than {} % to what the bytes cost, \
                 {state}.",
                bytes.in_words(in_bytes),
                plain_percent(overhead)
            ));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Synthetic;
    use super::*;
    use crate::bench::call_times::OpTimes;
    use crate::bench::record::SequenceRecord;

    const CLOCK_NS: u64 = 25;

    /// The lines of one run's calls of one kind, in nanoseconds with the look at the clock.
    fn add_calls(
        made: &mut Synthetic,
        cell: &str,
        variant: &str,
        place: (u32, u32),
        op: &str,
        ns: &[u32],
    ) {
        let times = OpTimes::of(ns);
        made.calls.extend(times.buckets.iter().map(|&bucket| CallRecord {
            cell: cell.to_owned(),
            variant: variant.to_owned(),
            session: place.0,
            round: place.1,
            repeat: 0,
            op: op.to_owned(),
            clock_ns: CLOCK_NS,
            bucket,
        }));
    }

    /// Reads cost 200 + 0.1 n ns and writes 300 + 0.3 n ns.
    fn made(variants: &[&str]) -> Synthetic {
        let mut made = Synthetic::new("calls", variants, &["10M"]);
        made.measure(6, 2, |_, _| 1e6);
        let mut rng = fastrand::Rng::with_seed(11);
        for session in 1..=6 {
            for variant in variants {
                let Bytes(bytes) = variant.parse().expect("a buffer");
                for round in 1..=2 {
                    for (op, call_ns, byte_ns) in [("read", 200.0, 0.1), ("write", 300.0, 0.3)] {
                        let mean = call_ns + byte_ns * bytes as f64;
                        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                        let ns: Vec<u32> = (0..400)
                            .map(|_| (mean * (0.97 + 0.06 * rng.f64())).round() as u32 + 25)
                            .collect();
                        add_calls(&mut made, "part/10M", variant, (session, round), op, &ns);
                    }
                }
            }
        }
        made
    }

    #[test]
    fn costs_of_call_and_byte_and_the_buffer_that_follows() {
        let made = made(&["1K", "4K", "16K", "64K", "256K"]);
        let found = of(&made.view()).expect("calls");
        let cell = &found.cells[0];
        assert_eq!(cell.calls.len(), 10);
        assert_eq!((cell.calls[0].op.as_str(), cell.calls[0].calls), ("read", 4800));
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.05;
        let (read, write) = (cell.read.expect("a line"), cell.write.expect("a line"));
        assert!(near(read.call_ns.value, 200.0) && near(read.byte_ns.value, 0.1), "{read:?}");
        assert!(near(write.call_ns.value, 300.0) && near(write.byte_ns.value, 0.3), "{write:?}");
        let buffer = cell.recommended_bytes.expect("a buffer");
        assert!(near(buffer.value, 500.0 / 0.4 / 0.01), "{buffer:?}");
        assert_eq!(cell.calls[3].modes.len(), 1, "{:?}", cell.calls[3]);
        let said = found.sheet().sentences.join(" ");
        assert!(said.contains("the calls add no more than 1 %"), "{said}");
        let short = found.headline().expect("a buffer");
        assert!(short.starts_with("calls cost 1 % with a buffer of 12"), "{short}");
    }

    #[test]
    fn modes_and_the_steps_of_readahead() {
        let mut made = Synthetic::new("calls", &["16K"], &["10M"]);
        made.part().states = vec![State::Cold];
        made.measure(2, 1, |_, _| 1e6);
        // Every eighth read waits: 128 KiB.
        let ns: Vec<u32> = (0..640)
            .map(|call| if call % 8 == 0 { 300_000 + call } else { 2_000 + call })
            .collect();
        for session in [1, 2] {
            add_calls(&mut made, "part/10M/cold", "16K", (session, 1), "read", &ns);
            made.sequences.extend((0..).zip(&ns).map(|(call, &ns)| SequenceRecord {
                cell: "part/10M/cold".to_owned(),
                variant: "16K".to_owned(),
                session,
                op: "read".to_owned(),
                call,
                elapsed_ns: u64::from(ns),
            }));
        }
        let found = of(&made.view()).expect("calls");
        let read = &found.cells[0].calls[0];
        let waits = read.waits.expect("reads that waited");
        assert_eq!((waits.every_bytes, waits.share), (128 << 10, 0.125));
        assert_eq!(read.modes.len(), 2, "{read:?}");
        assert!((read.modes[1].share - 0.125).abs() < 1e-9, "{read:?}");
        assert!((250_000.0..350_000.0).contains(&read.modes[1].at_ns), "{read:?}");
        assert_eq!(found.cells[0].read, None, "one buffer makes no line");
    }

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
