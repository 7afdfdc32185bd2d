//! Ratios to a baseline with their intervals: which variant is faster, and by how much.

use lab::definition::Part;
use lab::stats::Answer;
use lab::verdict::Comparison;
use lab::words::{nanoseconds, three_digits};

use super::content::Content;
use crate::in_order::gathered;
use crate::palette;
use crate::plot::{
    Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Stroke, Table,
};
use crate::summary::{CellSummary, Summary, measure_words};

/// The figure. `None` if nothing is compared.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, .. } = Content::of_parts(summaries, |content, summary, part| {
        let cells: Vec<&CellSummary<'_>> =
            summary.of_part(part).filter(|cell| !compared(cell).is_empty()).collect();
        if cells.is_empty() {
            return;
        }
        content.tables.push(table(summary, part, &cells));
        content.groups.extend(groups_of(summary, part, &cells));
    })?;
    Some(Figure {
        id: "ratio",
        title: "Time as a ratio to the baseline".to_owned(),
        reading: "Each dot is a variant's time divided by the baseline's in the same round, so a \
                  disturbance of a whole round affects both. Left of 1 is faster. Bars are 95 % \
                  intervals over sessions, widened for the number of interim analyses. The shaded \
                  range around 1 is ±δ: smaller differences do not matter. A hollow symbol is \
                  unresolved: its interval crosses an end of that range, or the result does not \
                  hold after the correction for the number of comparisons. A bar that reaches the \
                  edge of the panel continues beyond it. The line 'floor' is a copy within \
                  memory; no copy of a file can be faster. The axis is logarithmic: twice and \
                  half as long are equally far from 1."
            .to_owned(),
        keys: vec![
            Key::new(Look::Full, "resolved: faster (left of 1), slower or equivalent"),
            Key::new(Look::Hollow, "unresolved"),
            Key::new(Look::Band, "a difference too small to matter (±δ)"),
        ],
        groups,
        notes: Vec::new(),
        tables,
    })
}

/// The comparisons of a cell that have a ratio.
fn compared<'s>(cell: &CellSummary<'s>) -> Vec<(&'s Comparison, f64)> {
    let comparisons = cell.verdict.map_or(&[][..], |verdict| &verdict.comparisons);
    // A floor is drawn as a line, not as a row, unless the baseline is a floor itself.
    let rows = |it: &&Comparison| {
        palette::is_floor(&cell.part.baseline) || !palette::is_floor(&it.variant)
    };
    comparisons.iter().filter(rows).filter_map(|it| Some((it, it.ratio?))).collect()
}

/// Cells that differ in the size only are side by side.
fn groups_of(summary: &Summary<'_>, part: &Part, cells: &[&CellSummary<'_>]) -> Vec<Group> {
    let group = |(_, cells): (String, Vec<&CellSummary<'_>>)| {
        let variants = ranked(&cells);
        let delta = cells[0].delta(summary.source);
        let title = format!(
            "{}, {} as a ratio to {}",
            cells[0].titled_part(),
            measure_words(part.measure),
            part.baseline
        );
        Group {
            title: summary.titled(&title),
            panels: cells.iter().map(|cell| panel(part, cell, &variants, delta)).collect(),
            height: Height::Rows,
        }
    };
    let cells = gathered(cells.iter().copied(), |cell| cell.circumstances());
    cells.into_iter().map(group).collect()
}

/// Variants by their ratio in the largest cell that has them, the fastest first.
fn ranked<'s>(cells: &[&CellSummary<'s>]) -> Vec<&'s str> {
    let mut ranked: Vec<(&str, f64)> = Vec::new();
    for cell in cells.iter().rev() {
        for (comparison, ratio) in compared(cell) {
            if ranked.iter().all(|(variant, _)| *variant != comparison.variant) {
                ranked.push((&comparison.variant, ratio));
            }
        }
    }
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranked.into_iter().map(|(variant, _)| variant).collect()
}

fn panel(part: &Part, cell: &CellSummary<'_>, variants: &[&str], delta: f64) -> Panel {
    let mut marks = vec![
        Mark::neutral("±δ", Shape::delta_band(delta)),
        Mark::neutral(&part.baseline, Shape::ratio_one()),
    ];
    marks.extend(floor(part, cell));
    for (comparison, ratio) in compared(cell) {
        let Some(row) = variants.iter().position(|variant| *variant == comparison.variant) else {
            continue;
        };
        let dot = Dot {
            x: ratio,
            y: row as f64,
            low: comparison.low,
            high: comparison.high,
            text: words(comparison),
        };
        let hollow = comparison.answer == Answer::Unresolved;
        marks.push(Mark::dot(&comparison.variant, dot, hollow));
    }
    let fastest = compared(cell).into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let alt = match fastest {
        Some((comparison, _)) => format!(
            "{}: the smallest ratio to {} is that of {}.",
            cell.words(),
            part.baseline,
            words(comparison)
        ),
        None => cell.words(),
    };
    Panel {
        title: cell.size_words(),
        alt,
        facets: cell.facets(),
        x: Axis::ratio(&format!("{} / {}", measure_words(part.measure), part.baseline)),
        y: Axis::variants(variants.iter().copied()),
        marks,
    }
}

/// The line at the time of a copy within memory, which makes no system call: no copy of a file is
/// faster.
fn floor(part: &Part, cell: &CellSummary<'_>) -> Option<Mark> {
    // `untouched` includes page faults, so it is not a lower bound.
    let is_floor = |name: &str| palette::is_floor(name) && !name.contains("untouched");
    if palette::is_floor(&part.baseline) {
        return None;
    }
    let floor = cell.variants.iter().find(|variant| is_floor(variant.variant))?;
    let baseline = cell.variant(&part.baseline)?;
    let rule = Shape::Rule {
        at: floor.median_ns / baseline.median_ns,
        text: "floor".to_owned(),
        stroke: Stroke::Own,
    };
    Some(Mark::of(floor.variant, rule).unlisted())
}

/// A comparison in a line.
fn words(comparison: &Comparison) -> String {
    let Some(ratio) = comparison.ratio else { return comparison.variant.clone() };
    let interval = match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => {
            format!(" (95 % {} to {})", three_digits(low), three_digits(high))
        }
        _ => String::new(),
    };
    let answer = answer_words(comparison.answer);
    format!("{}: {} ×{interval}, {answer}", comparison.variant, three_digits(ratio))
}

/// An answer in a word.
#[must_use]
pub fn answer_words(answer: Answer) -> &'static str {
    match answer {
        Answer::Faster => "faster",
        Answer::Slower => "slower",
        Answer::Equivalent => "equivalent",
        Answer::Unresolved => "unresolved",
    }
}

fn table(summary: &Summary<'_>, part: &Part, cells: &[&CellSummary<'_>]) -> Table {
    let title = format!("{}: ratios to {}", part.name, part.baseline);
    let mut table = Table::new(
        &summary.titled(&title),
        &[
            "variant",
            "file size",
            "state",
            "ratio",
            "95 % from",
            "to",
            "answer",
            "median",
            "runs",
            "sessions",
            "to resolve it",
        ],
    );
    for cell in cells {
        for (comparison, ratio) in compared(cell) {
            let variant = cell.variant(&comparison.variant);
            table.rows.push(vec![
                Entry::words(&comparison.variant),
                cell.size_entry(),
                Entry::words(&cell.circumstances()),
                Entry::digits(Some(ratio)),
                Entry::digits(comparison.low),
                Entry::digits(comparison.high),
                Entry::words(answer_words(comparison.answer)),
                Entry::ns(variant.map(|variant| variant.median_ns)),
                Entry::count(variant.map(|variant| variant.counted.len() as f64)),
                Entry::count(cell.verdict.map(|verdict| f64::from(verdict.sessions))),
                match comparison.seconds_needed {
                    Some(seconds) => Entry::Number {
                        value: seconds,
                        shown: format!("about {}", lab::words::duration(seconds)),
                    },
                    None => Entry::Nothing,
                },
            ]);
        }
        if let Some(baseline) = cell.variant(&part.baseline) {
            table.rows.push(baseline_row(cell, baseline.median_ns, baseline.counted.len()));
        }
    }
    table
}

fn baseline_row(cell: &CellSummary<'_>, median_ns: f64, runs: usize) -> Vec<Entry> {
    let mut row = vec![
        Entry::words(&cell.part.baseline),
        cell.size_entry(),
        Entry::words(&cell.circumstances()),
        Entry::Number { value: 1.0, shown: "1".to_owned() },
        Entry::Nothing,
        Entry::Nothing,
        Entry::words("baseline"),
        Entry::Number { value: median_ns, shown: nanoseconds(median_ns) },
        Entry::count(Some(runs as f64)),
    ];
    row.push(Entry::count(cell.verdict.map(|verdict| f64::from(verdict.sessions))));
    row.push(Entry::Nothing);
    row
}
