//! Ratios to a baseline with their intervals: which variant is faster, and by how much.

use lab::definition::{Part, is_floor};
use lab::stats::Answer;
use lab::verdict::Comparison;
use lab::words::{duration, three_digits};

use super::{content, rows};
use crate::plot::{About, Axis, Dot, Entry, Figure, Group, Look, Mark, Panel, Shape, Table};
use crate::summary::{CellSummary, Summary};

const ABOUT: About = About {
    id: "ratio",
    title: "Time as a ratio to the baseline",
    reading: "Each dot is a variant's time divided by the baseline's in the same round, so a disturbance \
              of a whole round affects both. Left of 1 is faster. Bars are 95 % intervals over sessions, \
              widened for the number of interim analyses. The shaded range around 1 is ±δ: smaller \
              differences do not matter. A hollow symbol is unresolved: its interval crosses an end of \
              that range, or the result does not hold after the correction for the number of \
              comparisons. A bar that reaches the edge of the panel continues beyond it. The line \
              'floor' is a copy within memory; no copy of a file can be faster. The axis is logarithmic: \
              twice and half as long are equally far from 1.",
    keys: KEYS,
};

/// The looks of ratios with an answer.
pub(super) const KEYS: &[(Look, &str)] = &[
    (Look::Full, "resolved: faster (left of 1), slower or equivalent"),
    (Look::Hollow, "unresolved"),
    (Look::Band, "a difference too small to matter (±δ)"),
];

/// The figure. `None` if nothing is compared.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_parts(&ABOUT, summaries, |figure, summary, part| {
        let mut series = summary.series(part);
        series.iter_mut().for_each(|cells| cells.retain(|cell| !compared(cell).is_empty()));
        series.retain(|cells| !cells.is_empty());
        if !series.is_empty() {
            figure.tables.push(table(summary, part, &series.concat()));
        }
        figure.groups.extend(series.iter().filter_map(|cells| group(summary, part, cells)));
    })
}

/// A ratio of times and what it shows.
pub(super) struct Ratio<'s> {
    pub(super) variant: &'s str,
    pub(super) ratio: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) answer: Answer,
}

impl Ratio<'_> {
    /// The ratio as a dot in the row of its variant.
    pub(super) fn mark(&self, rows: &[&str]) -> Mark {
        let dot = Dot::at(self.ratio, rows::row_of(rows, self.variant), self.words());
        let hollow = self.answer == Answer::Unresolved;
        Mark::dot(self.variant, dot.within(self.low, self.high), hollow)
    }

    fn words(&self) -> String {
        let interval = match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!(" (95 % {} to {})", three_digits(low), three_digits(high))
            }
            _ => String::new(),
        };
        let (ratio, answer) = (three_digits(self.ratio), self.answer.word());
        format!("{}: {ratio} ×{interval}, {answer}", self.variant)
    }
}

/// The comparisons of a cell that have a ratio.
fn compared<'s>(cell: &CellSummary<'s>) -> Vec<(&'s Comparison, Ratio<'s>)> {
    let comparisons = cell.verdict.map_or(&[][..], |verdict| &verdict.comparisons);
    // A floor is drawn as a line, not as a row, unless the baseline is a floor itself.
    let rows = |it: &&Comparison| is_floor(&cell.part.baseline) || !is_floor(&it.variant);
    let ratio = |of: &'s Comparison| {
        let Comparison { variant, low, high, answer, .. } = of;
        Some((of, Ratio { variant, ratio: of.ratio?, low: *low, high: *high, answer: *answer }))
    };
    comparisons.iter().filter(rows).filter_map(ratio).collect()
}

fn group(summary: &Summary<'_>, part: &Part, cells: &[&CellSummary<'_>]) -> Option<Group> {
    let variants = ranked(cells);
    let delta = summary.source.deltas().of(cells[0].cell.state);
    let (title, measure) = (cells[0].titled_part(), part.measure.words());
    let title = format!("{title}, {measure} as a ratio to {}", part.baseline);
    let panels = cells.iter().map(|cell| panel(part, cell, &variants, delta)).collect();
    Group::of_rows(summary.titled(&title), panels)
}

/// Variants by their ratio in the largest cell that has them, the fastest first.
fn ranked<'s>(cells: &[&CellSummary<'s>]) -> Vec<&'s str> {
    let mut ranked: Vec<(&str, f64)> = Vec::new();
    for (_, of) in cells.iter().rev().flat_map(|cell| compared(cell)) {
        if ranked.iter().all(|(variant, _)| *variant != of.variant) {
            ranked.push((of.variant, of.ratio));
        }
    }
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranked.into_iter().map(|(variant, _)| variant).collect()
}

fn panel(part: &Part, cell: &CellSummary<'_>, rows: &[&str], delta: f64) -> Panel {
    let mut marks = vec![Mark::neutral(Shape::delta_band(delta)), Mark::neutral(Shape::rule(1.0))];
    marks.extend(floor(part, cell));
    let ratios = compared(cell);
    marks.extend(ratios.iter().map(|(_, of)| of.mark(rows)));
    let fastest = ratios.iter().map(|(_, of)| of).min_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let fastest = fastest
        .map(|of| format!(": the smallest ratio to {} is that of {}.", part.baseline, of.words()));
    let alt = cell.words() + &fastest.unwrap_or_default();
    let x = Axis::ratio(&format!("{} / {}", part.measure.words(), part.baseline));
    rows::panel(cell, alt, x, rows, marks)
}

/// The line at the time of a copy within memory, which makes no system call: no copy of a file is
/// faster.
fn floor(part: &Part, cell: &CellSummary<'_>) -> Option<Mark> {
    // `untouched` includes page faults, so it is not a lower bound.
    let is_bound = |name: &str| is_floor(name) && !name.contains("untouched");
    if is_floor(&part.baseline) {
        return None;
    }
    let floor = cell.variants.iter().find(|variant| is_bound(variant.variant))?;
    let at = floor.median_ns / cell.variant(&part.baseline)?.median_ns;
    Some(Mark::of(floor.variant, Shape::Rule { at, text: "floor".to_owned() }))
}

/// A row of the table: a variant of a cell and what it was compared by; `None` for the baseline.
type Row<'s> = (&'s CellSummary<'s>, &'s str, Option<&'s Comparison>);

/// The comparisons of a cell, and its baseline.
fn rows_of<'s>(cell: &'s CellSummary<'s>) -> Vec<Row<'s>> {
    let compared = compared(cell).into_iter().map(|(it, of)| (cell, of.variant, Some(it)));
    let baseline = cell.variant(&cell.part.baseline).map(|it| (cell, it.variant, None));
    compared.chain(baseline).collect()
}

fn table(summary: &Summary<'_>, part: &Part, cells: &[&CellSummary<'_>]) -> Table {
    Table::of(
        &summary.titled(&format!("{}: ratios to {}", part.name, part.baseline)),
        cells.iter().flat_map(|cell| rows_of(cell)),
        &[
            ("variant", &|(_, variant, _)| Entry::words(variant)),
            ("file size", &|(cell, ..)| cell.size_entry()),
            ("state", &|(cell, ..)| Entry::words(&cell.circumstances())),
            ("ratio", &|(_, _, of)| of.map_or(Entry::count(1.0), |it| Entry::digits(it.ratio))),
            ("95 % from", &|(_, _, of)| Entry::digits(of.and_then(|it| it.low))),
            ("to", &|(_, _, of)| Entry::digits(of.and_then(|it| it.high))),
            ("answer", &|(_, _, of)| Entry::words(of.map_or("baseline", |it| it.answer.word()))),
            ("median", &|(cell, of, _)| Entry::ns(cell.variant(of).map(|it| it.median_ns))),
            ("runs", &|(cell, of, _)| {
                Entry::count(cell.variant(of).map(|it| it.counted.len() as f64))
            }),
            ("sessions", &|(cell, ..)| Entry::count(cell.verdict.map(|it| f64::from(it.sessions)))),
            ("to resolve it", &|(_, _, of)| {
                let seconds = of.and_then(|it| it.seconds_needed);
                Entry::number(seconds, |it| format!("about {}", duration(it)))
            }),
        ],
    )
}
