//! What changed between two runs: the time in the second divided by that in the first, by cell.

use lab::compare::{CellChange, Change};
use lab::in_order::distinct;

use super::ratio::{KEYS, Ratio};
use super::rows;
use crate::plot::{About, Axis, Entry, Facets, Figure, Group, Mark, Panel, Shape, Table};
use crate::summary::{CellSummary, Summary};

const ABOUT: About = About {
    id: "change",
    title: "The second run's time over the first's",
    reading: "Each dot is a variant's time in the second run divided by its time in the first: right of 1 \
              it became slower. Bars are 95 % intervals over the sessions of both. The runs were not \
              interleaved, so every other change of the machine is in the ratio too. The sentence about \
              the fixed piece of work says how much the machine itself changed. The shaded range is ±δ, \
              and hollow symbols are unresolved. The axis is logarithmic.",
    keys: KEYS,
};

/// The figure. `None` if the runs have no cell in common. `summaries` are those of the two runs.
pub fn figure(change: &Change, summaries: &[Summary<'_>]) -> Option<Figure> {
    super::content::of_runs(&ABOUT, &summaries[..1], |figure, summary| {
        for part in &summary.source.run.definition.parts {
            let groups = summary.series(part).into_iter().filter_map(|cells| group(change, &cells));
            figure.groups.extend(groups);
        }
        figure.tables.push(table(change));
    })
}

fn of_cell<'c>(change: &'c Change, cell: &CellSummary<'_>) -> Vec<Ratio<'c>> {
    let id = cell.cell.id();
    let ratio = |of: &'c CellChange| {
        let CellChange { variant, low, high, answer, .. } = of;
        Some(Ratio { variant, ratio: of.ratio?, low: *low, high: *high, answer: *answer })
    };
    change.cells.iter().filter(|of| of.cell == id).filter_map(ratio).collect()
}

fn group(change: &Change, cells: &[&CellSummary<'_>]) -> Option<Group> {
    let ratios: Vec<_> = cells.iter().map(|cell| (*cell, of_cell(change, cell))).collect();
    let variants = distinct(ratios.iter().flat_map(|(_, of)| of).map(|of| of.variant));
    let panels = ratios.iter().filter(|(_, of)| !of.is_empty());
    let panels = panels.map(|(cell, of)| panel(change, cell, &variants, of)).collect();
    Group::of_rows(cells[0].titled_part(), panels)
}

fn panel(change: &Change, cell: &CellSummary<'_>, rows: &[&str], ratios: &[Ratio<'_>]) -> Panel {
    let mut marks = vec![
        Mark::neutral(Shape::delta_band(change.deltas.of(cell.cell.state))),
        Mark::neutral(Shape::rule(1.0)),
    ];
    marks.extend(ratios.iter().map(|of| of.mark(rows)));
    let alt = format!("What changed at {}.", cell.words());
    let panel = rows::panel(cell, alt, Axis::ratio("second run / first run"), rows, marks);
    // The panel has both runs, whose file systems may differ.
    Panel { facets: Facets { file_system: None, ..cell.facets.clone() }, ..panel }
}

fn table(change: &Change) -> Table {
    Table::of(
        "Every variant in every cell of both runs",
        &change.cells,
        &[
            ("cell", &|of| Entry::words(&of.cell)),
            ("variant", &|of| Entry::words(&of.variant)),
            ("second / first", &|of| Entry::digits(of.ratio)),
            ("95 % from", &|of| Entry::digits(of.low)),
            ("to", &|of| Entry::digits(of.high)),
            ("answer", &|of| Entry::words(of.answer.word())),
            ("sessions, first", &|of| Entry::count(of.sessions[0] as f64)),
            ("second", &|of| Entry::count(of.sessions[1] as f64)),
        ],
    )
}
