//! The cost of one read and one write, by the size of the buffer, and the buffer that follows from
//! it.

use lab::in_order::distinct;
use lab::sample::record::SequenceRecord;
use lab::stats::Estimated;
use lab::stats::models::CostLine;
use lab::studies::Finding;
use lab::studies::per_call::{CallCost, CellCalls, PerCall};
use lab::studies::sheet::circumstances;
use lab::words::{about_bytes, bytes, nanoseconds};

use super::content;
use super::estimate::signed_ns;
use crate::plot::{
    About, Along, Axis, Dot, Entry, Figure, Group, Height, Look, Mark, Panel, Shape, Table, Unit,
};
use crate::summary::Summary;

/// For this many buffers the reads are drawn in their order.
const SEQUENCES: usize = 3;

/// Calls of each sequence that are drawn.
const SEQUENCE_POINTS: usize = 600;

const ABOUT: About = About {
    id: "per-call",
    title: "What one call costs",
    reading: "Dots are medians of single calls. Their bars are not intervals of the median: they extend from \
              the 5 % to the 95 % quantile of all calls, and a bar that reaches the edge of the panel \
              continues beyond it. Small points are modes of the distribution. Reads that wait for a device \
              or for readahead are a mode of their own, which the reads drawn in their order show. The \
              dotted line is the fit c + f·n through the means. The strong line is the smallest buffer with \
              which a read and a write add at most the share ε to the cost of their bytes, (c_r + c_w) / (ε \
              (f_r + f_w)); its 95 % interval is shaded. Both axes are logarithmic.",
    keys: &[
        (Look::Full, "median, 5 to 95 % of calls"),
        (Look::Fit, "fit c + f·n"),
        (Look::Hollow, "published median"),
    ],
};

/// The figure. `None` if no part times single calls.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_findings(&ABOUT, summaries, |figure, summary, part, finding| {
        let Finding::PerCall(per_call) = finding else { return };
        for cell in &per_call.cells {
            let title = summary.titled(&format!("{}: {}", part.name, of(cell)));
            figure.groups.push(costs(summary, &title, cell));
            let sequences = sequences(summary, cell);
            if !sequences.is_empty() {
                let title = format!("{title}, reads in their order");
                figure.groups.push(Group { title, panels: sequences, height: Height::Strip });
            }
            let factor = per_call.overhead / summary.epsilon;
            figure.notes.push(recommendation(cell, factor, summary.epsilon));
        }
        figure.tables.push(lines(&summary.titled(&part.name), per_call));
        figure.tables.push(table(&summary.titled(&part.name), per_call));
    })
}

fn of(cell: &CellCalls) -> String {
    format!("{}, {}", bytes(cell.file_bytes), circumstances(cell.state, cell.at_once))
}

/// Reads and writes, side by side with one axis of time.
fn costs(summary: &Summary<'_>, title: &str, cell: &CellCalls) -> Group {
    let panel = |op: &str, line: Option<&CostLine>| {
        let calls: Vec<&CallCost> = cell.calls.iter().filter(|cost| cost.op == op).collect();
        Panel {
            title: format!("{op}s"),
            alt: format!("Cost of single {op}s against the buffer, {}.", of(cell)),
            facets: summary.source.facets(Some(cell.file_bytes), cell.state),
            x: Axis::buffers(),
            y: Axis::time("time of a call"),
            marks: marks(op, &calls, line, recommended(cell, summary.epsilon)),
        }
    };
    let panels = vec![panel("read", cell.read.as_ref()), panel("write", cell.write.as_ref())];
    Group { title: title.to_owned(), panels, height: Height::Plot }
}

fn marks(
    op: &str,
    calls: &[&CallCost],
    line: Option<&CostLine>,
    recommended: Option<Shape>,
) -> Vec<Mark> {
    let mut marks: Vec<Mark> = recommended.map(Mark::neutral).into_iter().collect();
    let buffer = |cost: &CallCost| cost.buffer_bytes as f64;
    if let (Some(line), Some(first), Some(last)) = (line, calls.first(), calls.last()) {
        let time = |bytes: f64| line.call_ns.value + line.byte_ns.value * bytes;
        marks.push(Mark::neutral(Shape::fit([buffer(first), buffer(last)], 32, time)));
    }
    let modes = |cost: &&CallCost| {
        cost.modes.iter().map(|mode| [buffer(cost), mode.at_ns]).collect::<Vec<_>>()
    };
    let modes: Vec<[f64; 2]> = calls.iter().flat_map(modes).collect();
    marks.push(Mark::neutral(Shape::Cloud { points: modes }));
    let then = |cost: &&CallCost| {
        let y = cost.then_median_ns?;
        let text = format!("published: {} with {}", nanoseconds(y), bytes(cost.buffer_bytes));
        Some(Dot::at(buffer(cost), y, text))
    };
    let then: Vec<Dot> = calls.iter().filter_map(then).collect();
    if !then.is_empty() {
        let dots = Shape::Dots { dots: then, along: Along::Y, hollow: true };
        marks.push(Mark::neutral(dots));
    }
    let dot = |cost: &&CallCost| {
        let text = format!(
            "{op} of {}: median {}, mean {}, 5 to 95 % {} to {}, {} calls",
            bytes(cost.buffer_bytes),
            nanoseconds(cost.median_ns),
            nanoseconds(cost.mean_ns),
            nanoseconds(cost.p05_ns),
            nanoseconds(cost.p95_ns),
            cost.calls
        );
        Dot::at(buffer(cost), cost.median_ns, text).within(cost.p05_ns.max(1.0), cost.p95_ns)
    };
    // A logarithmic axis cannot show zero, and a very short call can take zero after the cost of
    // reading the clock is subtracted.
    let dots = calls.iter().filter(|cost| cost.median_ns > 0.0).map(dot).collect();
    marks.push(Mark::neutral(Shape::Dots { dots, along: Along::Y, hollow: false }));
    marks
}

fn recommended(cell: &CellCalls, epsilon: f64) -> Option<Shape> {
    let (read, write) = (cell.read?, cell.write?);
    let call_ns = read.call_ns.value + write.call_ns.value;
    let byte_ns = read.byte_ns.value + write.byte_ns.value;
    let Estimated { value, low, high } = cell.recommended_bytes?;
    (call_ns > 0.0 && byte_ns > 0.0 && value > 0.0).then(|| Shape::Recommended {
        epsilon,
        product: call_ns / byte_ns,
        shares: low.zip(high).map(|(low, high)| (low / value, high / value)),
    })
}

/// The buffer for the share `epsilon`. It is `factor` times the one that the analysis found, and so
/// are the ends of its interval: half the share needs twice the buffer.
fn recommendation(cell: &CellCalls, factor: f64, epsilon: f64) -> String {
    let (at, percent) = (of(cell), crate::scale::shown(Unit::Ratio, epsilon * 100.0));
    let scaled = |bytes: f64| about_bytes(bytes * factor);
    match cell.recommended_bytes {
        Some(Estimated { value, low, high }) if value > 0.0 => {
            let interval = match low.zip(high) {
                Some((low, high)) => {
                    format!(" (95 % interval {} to {})", scaled(low), scaled(high))
                }
                None => ", without an interval".to_owned(),
            };
            format!("{at}: for ε = {percent} % the buffer is {}{interval}", scaled(value))
        }
        Some(_) => {
            format!("{at}: the cost of calls is too small to measure; any buffer is large enough")
        }
        None => format!("{at}: no line fits the cost of calls, so no buffer follows from it"),
    }
}

/// Single reads by their offset in the file, for the smallest buffers. Their waits show how far the
/// kernel reads ahead.
fn sequences(summary: &Summary<'_>, cell: &CellCalls) -> Vec<Panel> {
    let reads = summary.source.run.sequences.iter();
    let reads: Vec<&SequenceRecord> =
        reads.filter(|it| it.cell == cell.cell && it.op == "read").collect();
    let names = distinct(reads.iter().map(|it| it.variant.as_str()));
    let buffer = |name: &str| name.parse::<engines::Bytes>().map(|buffer| buffer.0);
    let mut variants: Vec<(&str, u64)> =
        names.into_iter().filter_map(|name| Some((name, buffer(name).ok()?))).collect();
    variants.sort_by_key(|(_, buffer)| *buffer);
    let panel = |&(variant, buffer): &(&str, u64)| {
        let of: Vec<&&SequenceRecord> = reads.iter().filter(|it| it.variant == variant).collect();
        let first = of.iter().map(|it| it.session).min().unwrap_or(1);
        let points: Vec<[f64; 2]> = of
            .iter()
            .filter(|it| it.session == first)
            .take(SEQUENCE_POINTS)
            .map(|it| [(it.call * buffer) as f64, (it.elapsed_ns as f64).max(1.0)])
            .collect();
        Panel {
            title: format!("buffer {}", bytes(buffer)),
            alt: format!("Single reads with a buffer of {} in their order.", bytes(buffer)),
            facets: summary.source.facets(Some(cell.file_bytes), cell.state),
            x: Axis::amount("offset in the file", Unit::Bytes),
            y: Axis::time("time of a read"),
            marks: vec![Mark::of(variant, Shape::Cloud { points })],
        }
    };
    variants.iter().take(SEQUENCES).map(panel).collect()
}

fn lines(title: &str, per_call: &PerCall) -> Table {
    let lines = |cell: &CellCalls| {
        let lines = [("read", cell.read), ("write", cell.write)].into_iter();
        let (bytes, state) = (cell.file_bytes as f64, cell.state);
        lines.filter_map(move |(op, line)| Some((bytes, state, op, line?)))
    };
    let digits = |value: Option<f64>| Entry::number(value, |value| format!("{value:.4}"));
    let signed = |value: Option<f64>| Entry::number(value, signed_ns);
    Table::of(
        &format!("{title}: fits c + f·n, with 95 % intervals"),
        per_call.cells.iter().flat_map(lines),
        &[
            ("file size", &|(bytes, ..)| Entry::bytes(*bytes)),
            ("state", &|(_, state, ..)| Entry::words(state.name())),
            ("call", &|(_, _, op, _)| Entry::words(op)),
            ("c", &|(.., line)| signed(Some(line.call_ns.value))),
            ("c from", &|(.., line)| signed(line.call_ns.low)),
            ("c to", &|(.., line)| signed(line.call_ns.high)),
            ("f, ns/byte", &|(.., line)| digits(Some(line.byte_ns.value))),
            ("f from", &|(.., line)| digits(line.byte_ns.low)),
            ("f to", &|(.., line)| digits(line.byte_ns.high)),
            ("largest misfit, %", &|(.., line)| {
                Entry::number(line.misfit.largest * 100.0, |misfit| format!("{misfit:+.0}"))
            }),
            ("at buffer", &|(.., line)| Entry::bytes(line.misfit.at_bytes as f64)),
        ],
    )
}

fn table(title: &str, per_call: &PerCall) -> Table {
    Table::of(
        &format!("{title}: single calls"),
        per_call.cells.iter().flat_map(|cell| cell.calls.iter().map(move |cost| (cell, cost))),
        &[
            ("file size", &|(cell, _)| Entry::bytes(cell.file_bytes as f64)),
            ("state", &|(cell, _)| Entry::words(cell.state.name())),
            ("call", &|(_, cost)| Entry::words(&cost.op)),
            ("buffer", &|(_, cost)| Entry::bytes(cost.buffer_bytes as f64)),
            ("median", &|(_, cost)| Entry::ns(cost.median_ns)),
            ("mean", &|(_, cost)| Entry::ns(cost.mean_ns)),
            ("5 %", &|(_, cost)| Entry::ns(cost.p05_ns)),
            ("95 %", &|(_, cost)| Entry::ns(cost.p95_ns)),
            ("calls", &|(_, cost)| Entry::count(cost.calls as f64)),
            ("modes", &|(_, cost)| {
                let modes = cost.modes.iter().map(|mode| nanoseconds(mode.at_ns));
                Entry::Words(modes.collect::<Vec<_>>().join(", "))
            }),
            ("reads that waited, %", &|(_, cost)| {
                Entry::digits(cost.waits.map(|waits| waits.share * 100.0))
            }),
            ("every", &|(_, cost)| Entry::bytes(cost.waits.map(|it| it.every_bytes as f64))),
            ("published median", &|(_, cost)| Entry::ns(cost.then_median_ns)),
        ],
    )
}
