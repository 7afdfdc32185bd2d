//! What other orders of runs would have concluded from the same samples.

use lab::definition::Part;
use lab::in_order::distinct;
use lab::stats::Estimated;
use lab::studies::Finding;
use lab::studies::run_order::{Off, OrderOfRuns, Unproved};
use lab::words::{nanoseconds, three_digits};

use super::{content, rows};
use crate::plot::{
    About, Axis, Dot, Entry, Figure, Group, Look, Mark, Panel, Shape, Stroke, Table,
};
use crate::summary::{CellSummary, Summary};

const ABOUT: About = About {
    id: "order",
    title: "Results by the order of runs",
    reading: "Full symbols are ratios of interleaved rounds, with 95 % intervals. Hollow symbols are the \
              ratios that a shortcut gives on the same machine: the first run of each variant only; the \
              first half of a variant's runs against the second half of the baseline's, as if one was \
              measured after the other; or runs that were really made one after another. A line joins the \
              two. If it is longer than the interval, the shortcut caused the difference. For runs with an \
              unproved page cache state, hollow symbols are the medians of the proved states. Axes are \
              logarithmic.",
    keys: &[
        (Look::Full, "interleaved rounds; an unproved page cache state"),
        (Look::Hollow, "a shortcut; a proved state"),
    ],
};

/// The figure. `None` if no part has this analysis.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_findings(&ABOUT, summaries, |figure, summary, part, finding| {
        let Finding::Order(order) = finding else { return };
        let kinds = kinds(order);
        for (kind, pairs) in &kinds {
            figure.groups.extend(groups_of(summary, part, kind, pairs));
        }
        figure.groups.extend(unproved(summary, part, &order.unproved));
        let title = summary.titled(&part.name);
        let pairs = kinds.iter().flat_map(|(kind, pairs)| pairs.iter().map(move |it| (*kind, *it)));
        let table = table(&title, pairs);
        figure.tables.extend((!kinds.is_empty()).then_some(table));
        let sentences = finding.sheet().sentences.into_iter();
        let note = |words: String| format!("{title}: {}", words.trim_end_matches('.'));
        figure.notes.extend(sentences.map(note));
    })
}

/// The shortcuts that have ratios.
fn kinds(order: &OrderOfRuns) -> Vec<(&'static str, Vec<&Off>)> {
    let really = order.one_after_another.iter().map(|naive| &naive.off);
    let mut kinds: Vec<(&str, Vec<&Off>)> = vec![
        ("run one after another", really.collect()),
        ("the first run of each", order.first_runs.each.iter().collect()),
        ("first half against the baseline's second", order.blocks.each.iter().collect()),
    ];
    kinds.retain(|(_, pairs)| !pairs.is_empty());
    kinds
}

fn groups_of(summary: &Summary<'_>, part: &Part, kind: &str, pairs: &[&Off]) -> Vec<Group> {
    let variants = distinct(pairs.iter().map(|pair| pair.variant.as_str()));
    let panel = |cell: &&CellSummary<'_>| {
        let id = cell.cell.id();
        let of_cell: Vec<&Off> = pairs.iter().copied().filter(|pair| pair.cell == id).collect();
        (!of_cell.is_empty()).then(|| panel(part, cell, kind, &variants, &of_cell))
    };
    let group = |cells: Vec<&CellSummary<'_>>| {
        let title = cells[0].titled_part();
        let title = summary.titled(&format!("{title}; {kind}, as a ratio to {}", part.baseline));
        Group::of_rows(title, cells.iter().filter_map(panel).collect())
    };
    summary.series(part).into_iter().filter_map(group).collect()
}

fn panel(part: &Part, cell: &CellSummary<'_>, kind: &str, rows: &[&str], pairs: &[&Off]) -> Panel {
    let mut marks = vec![Mark::neutral(Shape::rule(1.0))];
    for Off { variant, ratio, interleaved, .. } in pairs {
        let dot = |x: f64, what: &str| {
            let text = format!("{variant}, {what}: {} ×", three_digits(x));
            Dot::at(x, rows::row_of(rows, variant), text)
        };
        let Estimated { value, low, high } = *interleaved;
        let full = dot(value, "interleaved").within(low, high);
        marks.extend(Mark::pair(variant, dot(*ratio, kind), full));
    }
    let alt = format!("Ratios at {} by interleaved rounds, and by {kind}.", cell.words());
    let x = Axis::ratio(&format!("{} / {}", part.measure.words(), part.baseline));
    rows::panel(cell, alt, x, rows, marks)
}

/// Times with an unproved page cache state, beside those of proved states.
fn unproved(summary: &Summary<'_>, part: &Part, all: &[Unproved]) -> Option<Group> {
    let variants = distinct(all.iter().map(|of| of.variant.as_str()));
    let panel = |cell: &CellSummary<'_>| {
        let id = cell.cell.id();
        let mut marks = Vec::new();
        for of in all.iter().filter(|of| of.cell == id) {
            let row = rows::row_of(&variants, &of.variant);
            let proved = [("warm", of.warm_median_ns), ("cold", of.cold_median_ns)];
            let proved = proved.into_iter().filter_map(|(state, ns)| Some((state, ns?)));
            let times = || proved.clone().map(|(_, ns)| ns).chain([of.median_ns]);
            let [low, high] = [times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max)];
            let points = vec![[low, row], [high, row]];
            let line = Shape::Line { points, stroke: Stroke::Thin };
            marks.push(Mark::of(&of.variant, line));
            let dots = |x: f64, what: &str, hollow: bool| {
                let text = format!("{}, {what}: {}", of.variant, nanoseconds(x));
                Mark::dot(&of.variant, Dot::at(x, row, text), hollow)
            };
            marks.extend(proved.clone().map(|(state, ns)| dots(ns, state, true)));
            marks.push(dots(of.median_ns, "unproved", false));
        }
        let alt = format!("Times with an unproved page cache state, at {}.", cell.words());
        let x = Axis::time(part.measure.words());
        (!marks.is_empty()).then(|| rows::panel(cell, alt, x, &variants, marks))
    };
    let title = summary.titled(&format!("{}: unproved page cache state", part.name));
    let cells = summary.cells.iter().filter(|cell| cell.part.name == part.name);
    Group::of_rows(title, cells.filter_map(panel).collect())
}

fn table<'p>(title: &str, pairs: impl Iterator<Item = (&'p str, &'p Off)>) -> Table {
    Table::of(
        &format!("{title}: ratios by other orders of runs"),
        pairs,
        &[
            ("order", &|(kind, _)| Entry::words(kind)),
            ("cell", &|(_, pair)| Entry::words(&pair.cell)),
            ("variant", &|(_, pair)| Entry::words(&pair.variant)),
            ("ratio", &|(_, pair)| Entry::digits(pair.ratio)),
            ("interleaved", &|(_, pair)| Entry::digits(pair.interleaved.value)),
            ("95 % from", &|(_, pair)| Entry::digits(pair.interleaved.low)),
            ("to", &|(_, pair)| Entry::digits(pair.interleaved.high)),
        ],
    )
}
