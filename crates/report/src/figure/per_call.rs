//! The cost of one read and one write, by the size of the buffer, and the buffer that follows from
//! it.

use lab::analysis::Finding;
use lab::analysis::estimated::Estimated;
use lab::analysis::per_call::{CallCost, CallLine, CellCalls, PerCall};
use lab::sample::record::SequenceRecord;
use lab::words::{bytes, nanoseconds};

use super::content::Content;
use crate::plot::{
    Along, Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Stroke, Table,
    Unit,
};
use crate::summary::{Summary, state_words};

/// For this many buffers the reads are drawn in their order.
const SEQUENCES: usize = 3;

/// Calls of each sequence that are drawn.
const SEQUENCE_POINTS: usize = 600;

/// The figure. `None` if no part times single calls.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, notes } =
        Content::of_findings(summaries, |content, summary, part, finding| {
            let Finding::PerCall(per_call) = finding else { return };
            for cell in &per_call.cells {
                let title = summary.titled(&format!("{}: {}", part.name, of(cell)));
                content.groups.push(costs(summary, &title, cell));
                let sequences = sequences(summary, cell);
                if !sequences.is_empty() {
                    let title = format!("{title}, reads in their order");
                    content.groups.push(Group { title, panels: sequences, height: Height::Strip });
                }
                content.notes.push(recommendation(
                    cell,
                    per_call.overhead / summary.epsilon,
                    summary,
                ));
            }
            content.tables.push(lines(&summary.titled(&part.name), per_call));
            content.tables.push(table(&summary.titled(&part.name), per_call));
        })?;
    Some(Figure {
        id: "per-call",
        title: "What one call costs".to_owned(),
        reading: "Dots are medians of single calls. Their bars are not intervals of the median: \
                  they extend from the 5 % to the 95 % quantile of all calls, and a bar that \
                  reaches the edge of the panel continues beyond it. Small points are modes of \
                  the distribution. Reads that wait for a device or for readahead are a mode of \
                  their own, which the reads drawn in their order show. The dotted line is the \
                  fit c + f·n through the means. The strong line is the smallest buffer with \
                  which a read and a write add at most the share ε to the cost of their bytes, \
                  (c_r + c_w) / (ε (f_r + f_w)); its 95 % interval is shaded. Both axes are \
                  logarithmic."
            .to_owned(),
        keys: vec![
            Key::new(Look::Full, "median, 5 to 95 % of calls"),
            Key::new(Look::Fit, "fit c + f·n"),
            Key::new(Look::Hollow, "published median"),
        ],
        groups,
        notes,
        tables,
    })
}

fn of(cell: &CellCalls) -> String {
    let at_once = match cell.at_once {
        1 => String::new(),
        count => format!(", {count} at once"),
    };
    format!("{}, {}{at_once}", bytes(cell.file_bytes), state_words(cell.state))
}

/// Reads and writes, side by side with one axis of time.
fn costs(summary: &Summary<'_>, title: &str, cell: &CellCalls) -> Group {
    let panel = |op: &str, line: Option<&CallLine>| {
        let calls: Vec<&CallCost> = cell.calls.iter().filter(|cost| cost.op == op).collect();
        Panel {
            title: format!("{op}s"),
            alt: format!("Cost of single {op}s against the buffer, {}.", of(cell)),
            facets: summary.facets(Some(cell.file_bytes), cell.state),
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
    line: Option<&CallLine>,
    recommended: Option<Shape>,
) -> Vec<Mark> {
    let mut marks: Vec<Mark> =
        recommended.map(|shape| Mark::neutral("recommended", shape)).into_iter().collect();
    let buffer = |cost: &CallCost| cost.buffer_bytes as f64;
    if let (Some(line), Some(first), Some(last)) = (line, calls.first(), calls.last()) {
        let (low, high) = (buffer(first), buffer(last));
        let at = |step: u32| low * (high / low).powf(f64::from(step) / 32.0);
        let time = |bytes: f64| line.call_ns.value + line.byte_ns.value * bytes;
        let points: Vec<[f64; 2]> =
            (0..=32).map(|step| [at(step), time(at(step))]).filter(|it| it[1] > 0.0).collect();
        marks.push(Mark::neutral("fit", Shape::Line { points, stroke: Stroke::Fit }));
    }
    let modes = |cost: &&CallCost| {
        cost.modes.iter().map(|mode| [buffer(cost), mode.at_ns]).collect::<Vec<_>>()
    };
    let modes: Vec<[f64; 2]> = calls.iter().flat_map(modes).collect();
    marks.push(Mark::neutral("mode", Shape::Cloud { points: modes }));
    let then: Vec<Dot> = calls
        .iter()
        .filter_map(|cost| {
            let y = cost.then_median_ns?;
            let text = format!("published: {} with {}", nanoseconds(y), bytes(cost.buffer_bytes));
            Some(Dot { x: buffer(cost), y, low: None, high: None, text })
        })
        .collect();
    if !then.is_empty() {
        let dots = Shape::Dots { dots: then, along: Along::Y, hollow: true };
        marks.push(Mark::neutral("published", dots));
    }
    // A logarithmic axis cannot show zero, and a very short call can take zero after the cost of
    // reading the clock is subtracted.
    let dots: Vec<Dot> = calls
        .iter()
        .filter(|cost| cost.median_ns > 0.0)
        .map(|cost| Dot {
            x: buffer(cost),
            y: cost.median_ns,
            low: Some(cost.p05_ns.max(1.0)),
            high: Some(cost.p95_ns),
            text: format!(
                "{op} of {}: median {}, mean {}, 5 to 95 % {} to {}, {} calls",
                bytes(cost.buffer_bytes),
                nanoseconds(cost.median_ns),
                nanoseconds(cost.mean_ns),
                nanoseconds(cost.p05_ns),
                nanoseconds(cost.p95_ns),
                cost.calls
            ),
        })
        .collect();
    marks.push(Mark::neutral(op, Shape::Dots { dots, along: Along::Y, hollow: false }));
    marks
}

fn recommended(cell: &CellCalls, epsilon: f64) -> Option<Shape> {
    let (read, write) = (cell.read?, cell.write?);
    let call_ns = read.call_ns.value + write.call_ns.value;
    let byte_ns = read.byte_ns.value + write.byte_ns.value;
    let Estimated { value, low, high } = cell.recommended_bytes?;
    (call_ns > 0.0 && byte_ns > 0.0 && value > 0.0).then(|| Shape::Recommended {
        epsilon,
        call_ns,
        byte_ns,
        low_share: low.map(|low| low / value),
        high_share: high.map(|high| high / value),
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Lengths are not negative.
fn whole(value: f64) -> String {
    bytes(value.round() as u64)
}

/// The buffer for the share ε of the summary. It is `factor` times the one that the analysis found,
/// and so are the ends of its interval: half the share needs twice the buffer.
fn recommendation(cell: &CellCalls, factor: f64, summary: &Summary<'_>) -> String {
    let at = of(cell);
    let percent = crate::scale::shown(Unit::Ratio, summary.epsilon * 100.0);
    let scaled = |it: Estimated| Estimated {
        value: it.value * factor,
        low: it.low.map(|low| low * factor),
        high: it.high.map(|high| high * factor),
    };
    match cell.recommended_bytes.map(scaled) {
        Some(Estimated { value, low: Some(low), high: Some(high) }) if value > 0.0 => format!(
            "{at}: for ε = {percent} % the buffer is {} (95 % interval {} to {})",
            whole(value),
            whole(low),
            whole(high)
        ),
        Some(Estimated { value, .. }) if value > 0.0 => {
            format!("{at}: for ε = {percent} % the buffer is {}, without an interval", whole(value))
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
    let mut variants: Vec<(&str, u64)> = Vec::new();
    for record in &reads {
        let buffer = record.variant.parse::<engines::Bytes>();
        if let Ok(engines::Bytes(buffer)) = buffer
            && variants.iter().all(|(variant, _)| *variant != record.variant)
        {
            variants.push((&record.variant, buffer));
        }
    }
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
            facets: summary.facets(Some(cell.file_bytes), cell.state),
            x: Axis {
                label: "offset in the file".to_owned(),
                unit: Unit::Bytes,
                ..Axis::default()
            },
            y: Axis::time("time of a read"),
            marks: vec![Mark::of(variant, Shape::Cloud { points }).unlisted()],
        }
    };
    variants.iter().take(SEQUENCES).map(panel).collect()
}

fn lines(title: &str, per_call: &PerCall) -> Table {
    let mut table = Table::new(
        &format!("{title}: fits c + f·n, with 95 % intervals"),
        &[
            "file size",
            "state",
            "call",
            "c",
            "c from",
            "c to",
            "f, ns/byte",
            "f from",
            "f to",
            "largest misfit, %",
            "at buffer",
        ],
    );
    let digits = |value: Option<f64>| match value {
        Some(value) => Entry::Number { value, shown: format!("{value:.4}") },
        None => Entry::Nothing,
    };
    let signed = |value: Option<f64>| match value {
        Some(value) if value < 0.0 => {
            Entry::Number { value, shown: format!("−{}", nanoseconds(-value)) }
        }
        value => Entry::ns(value),
    };
    for cell in &per_call.cells {
        for (op, line) in [("read", cell.read), ("write", cell.write)] {
            let Some(line) = line else { continue };
            let misfit = line.misfit_largest * 100.0;
            table.rows.push(vec![
                Entry::bytes(Some(cell.file_bytes as f64)),
                Entry::words(state_words(cell.state)),
                Entry::words(op),
                signed(Some(line.call_ns.value)),
                signed(line.call_ns.low),
                signed(line.call_ns.high),
                digits(Some(line.byte_ns.value)),
                digits(line.byte_ns.low),
                digits(line.byte_ns.high),
                Entry::Number { value: misfit, shown: format!("{misfit:+.0}") },
                Entry::bytes(Some(line.misfit_at_bytes as f64)),
            ]);
        }
    }
    table
}

fn table(title: &str, per_call: &PerCall) -> Table {
    let mut table = Table::new(
        &format!("{title}: single calls"),
        &[
            "file size",
            "state",
            "call",
            "buffer",
            "median",
            "mean",
            "5 %",
            "95 %",
            "calls",
            "modes",
            "reads that waited, %",
            "every",
            "published median",
        ],
    );
    for cell in &per_call.cells {
        for cost in &cell.calls {
            let modes: Vec<String> =
                cost.modes.iter().map(|mode| nanoseconds(mode.at_ns)).collect();
            table.rows.push(vec![
                Entry::bytes(Some(cell.file_bytes as f64)),
                Entry::words(state_words(cell.state)),
                Entry::words(&cost.op),
                Entry::bytes(Some(cost.buffer_bytes as f64)),
                Entry::ns(Some(cost.median_ns)),
                Entry::ns(Some(cost.mean_ns)),
                Entry::ns(Some(cost.p05_ns)),
                Entry::ns(Some(cost.p95_ns)),
                Entry::count(Some(cost.calls as f64)),
                Entry::words(&modes.join(", ")),
                Entry::digits(cost.waits.map(|waits| waits.share * 100.0)),
                Entry::bytes(cost.waits.map(|waits| waits.every_bytes as f64)),
                Entry::ns(cost.then_median_ns),
            ]);
        }
    }
    table
}
