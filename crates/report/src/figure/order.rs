//! What other orders of runs would have concluded from the same samples.

use lab::analysis::Finding;
use lab::analysis::estimated::Estimated;
use lab::analysis::run_order::{Off, OrderOfRuns, Unproved};
use lab::definition::Part;
use lab::words::{nanoseconds, three_digits};

use super::content::Content;
use crate::in_order::{distinct, gathered};
use crate::plot::{
    Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Stroke, Table,
};
use crate::summary::{CellSummary, Summary, measure_words};

/// The figure. `None` if no part has this analysis.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, notes } =
        Content::of_findings(summaries, |content, summary, part, finding| {
            let Finding::Order(order) = finding else { return };
            let mut table = table(&summary.titled(&part.name));
            for (kind, pairs) in kinds(order) {
                content.groups.extend(groups_of(summary, part, kind, &pairs));
                table.rows.extend(pairs.iter().map(|pair| row(kind, pair)));
            }
            content.groups.extend(unproved(summary, part, &order.unproved));
            if !table.rows.is_empty() {
                content.tables.push(table);
            }
            let sentences = finding.sheet().sentences.into_iter();
            let note = |words: String| {
                format!("{}: {}", summary.titled(&part.name), words.trim_end_matches('.'))
            };
            content.notes.extend(sentences.map(note));
        })?;
    Some(Figure {
        id: "order",
        title: "Results by the order of runs".to_owned(),
        reading: "Full symbols are ratios of interleaved rounds, with 95 % intervals. Hollow \
                  symbols are the ratios that a shortcut gives on the same machine: the first run \
                  of each variant only; the first half of a variant's runs against the second \
                  half of the baseline's, as if one was measured after the other; or runs that \
                  were really made one after another. A line joins the two. If it is longer than \
                  the interval, the shortcut caused the difference. For runs with an unproved \
                  page cache state, hollow symbols are the medians of the proved states. Axes are \
                  logarithmic."
            .to_owned(),
        keys: vec![
            Key::new(Look::Full, "interleaved rounds; an unproved page cache state"),
            Key::new(Look::Hollow, "a shortcut; a proved state"),
        ],
        groups,
        notes,
        tables,
    })
}

/// A ratio by a shortcut and by interleaved rounds.
struct Pair<'s> {
    cell: &'s str,
    variant: &'s str,
    shortcut: f64,
    interleaved: Estimated,
}

/// The shortcuts that have ratios.
fn kinds(order: &OrderOfRuns) -> Vec<(&'static str, Vec<Pair<'_>>)> {
    let really = order.one_after_another.iter().map(|naive| Pair {
        cell: &naive.cell,
        variant: &naive.variant,
        shortcut: naive.ratio,
        interleaved: naive.interleaved,
    });
    let kinds: Vec<(&str, Vec<Pair<'_>>)> = vec![
        ("run one after another", really.collect()),
        ("the first run of each", order.first_runs.each.iter().map(pair).collect()),
        ("first half against the baseline's second", order.blocks.each.iter().map(pair).collect()),
    ];
    kinds.into_iter().filter(|(_, pairs)| !pairs.is_empty()).collect()
}

fn pair(off: &Off) -> Pair<'_> {
    Pair {
        cell: &off.cell,
        variant: &off.variant,
        shortcut: off.ratio,
        interleaved: off.interleaved,
    }
}

/// Cells that differ in the size only are side by side.
fn groups_of(summary: &Summary<'_>, part: &Part, kind: &str, pairs: &[Pair<'_>]) -> Vec<Group> {
    let variants = distinct(pairs.iter().map(|pair| pair.variant));
    let of_cell = |cell: &CellSummary<'_>| -> Vec<&Pair<'_>> {
        let id = cell.cell.id();
        pairs.iter().filter(|pair| pair.cell == id).collect()
    };
    let cells = summary.of_part(part).filter(|cell| !of_cell(cell).is_empty());
    let group = |(title, cells): (String, Vec<&CellSummary<'_>>)| {
        let panels = cells.iter().map(|cell| panel(part, cell, kind, &variants, &of_cell(cell)));
        let title = summary.titled(&format!("{title}; {kind}, as a ratio to {}", part.baseline));
        Group { title, panels: panels.collect(), height: Height::Rows }
    };
    gathered(cells, |cell| cell.titled_part()).into_iter().map(group).collect()
}

fn panel(
    part: &Part,
    cell: &CellSummary<'_>,
    kind: &str,
    variants: &[&str],
    pairs: &[&Pair<'_>],
) -> Panel {
    let mut marks = vec![Mark::neutral(&part.baseline, Shape::ratio_one())];
    for pair in pairs {
        let row = variants.iter().position(|name| *name == pair.variant).unwrap_or(0) as f64;
        let Pair { variant, shortcut, interleaved, .. } = pair;
        let dot = |x: f64, [low, high]: [Option<f64>; 2], what: &str| {
            let text = format!("{variant}, {what}: {} ×", three_digits(x));
            Dot { x, y: row, low, high, text }
        };
        let hollow = dot(*shortcut, [None, None], kind);
        let full = dot(interleaved.value, [interleaved.low, interleaved.high], "interleaved");
        marks.extend(Mark::pair(variant, hollow, full));
    }
    Panel {
        title: cell.size_words(),
        alt: format!("Ratios at {} by interleaved rounds, and by {kind}.", cell.words()),
        facets: cell.facets(),
        x: Axis::ratio(&format!("{} / {}", measure_words(part.measure), part.baseline)),
        y: Axis::variants(variants.iter().copied()),
        marks,
    }
}

/// Times with an unproved page cache state, beside those of proved states.
fn unproved(summary: &Summary<'_>, part: &Part, all: &[Unproved]) -> Option<Group> {
    let variants = distinct(all.iter().map(|of| of.variant.as_str()));
    let panel = |cell: &CellSummary<'_>| {
        let id = cell.cell.id();
        let mut marks = Vec::new();
        for of in all.iter().filter(|of| of.cell == id) {
            let row = variants.iter().position(|name| *name == of.variant).unwrap_or(0) as f64;
            let proved = [("warm", of.warm_median_ns), ("cold", of.cold_median_ns)];
            let proved = proved.into_iter().filter_map(|(state, ns)| Some((state, ns?)));
            let times = || proved.clone().map(|(_, ns)| ns).chain([of.median_ns]);
            let [low, high] = [times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max)];
            let points = vec![[low, row], [high, row]];
            let line = Shape::Line { points, stroke: Stroke::Thin };
            marks.push(Mark::of(&of.variant, line).unlisted());
            let dots = |x: f64, what: &str, hollow: bool| {
                let text = format!("{}, {what}: {}", of.variant, nanoseconds(x));
                Mark::dot(&of.variant, Dot { x, y: row, low: None, high: None, text }, hollow)
            };
            marks.extend(proved.clone().map(|(state, ns)| dots(ns, state, true)));
            marks.push(dots(of.median_ns, "unproved", false));
        }
        (!marks.is_empty()).then(|| Panel {
            title: cell.size_words(),
            alt: format!("Times with an unproved page cache state, at {}.", cell.words()),
            facets: cell.facets(),
            x: Axis::time(measure_words(part.measure)),
            y: Axis::variants(variants.iter().copied()),
            marks,
        })
    };
    let panels: Vec<Panel> = summary.of_part(part).filter_map(panel).collect();
    let title = summary.titled(&format!("{}: unproved page cache state", part.name));
    (!panels.is_empty()).then_some(Group { title, panels, height: Height::Rows })
}

fn table(title: &str) -> Table {
    Table::new(
        &format!("{title}: ratios by other orders of runs"),
        &["order", "cell", "variant", "ratio", "interleaved", "95 % from", "to"],
    )
}

fn row(kind: &str, pair: &Pair<'_>) -> Vec<Entry> {
    vec![
        Entry::words(kind),
        Entry::words(pair.cell),
        Entry::words(pair.variant),
        Entry::digits(Some(pair.shortcut)),
        Entry::digits(Some(pair.interleaved.value)),
        Entry::digits(pair.interleaved.low),
        Entry::digits(pair.interleaved.high),
    ]
}
