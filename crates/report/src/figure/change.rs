//! What changed between two runs: the time in the second divided by that in the first, by cell.

use lab::compare::{CellChange, Change};
use lab::stats::Answer;
use lab::words::three_digits;

use super::ratio::answer_words;
use crate::in_order::{distinct, gathered};
use crate::plot::{Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Table};
use crate::summary::{CellSummary, Summary};

/// The figure. `None` if the runs have no cell in common. `summaries` are those of the two runs.
#[must_use]
pub fn figure(change: &Change, summaries: &[Summary<'_>]) -> Option<Figure> {
    let summary = summaries.first()?;
    let mut groups = Vec::new();
    for part in &summary.source.run.definition.parts {
        for (title, cells) in gathered(summary.of_part(part), |cell| cell.titled_part()) {
            groups.extend(group(change, title, &cells));
        }
    }
    if groups.is_empty() {
        return None;
    }
    Some(Figure {
        id: "change",
        title: "The second run's time over the first's".to_owned(),
        reading: "Each dot is a variant's time in the second run divided by its time in the \
                  first: right of 1 it became slower. Bars are 95 % intervals over the sessions \
                  of both. The runs were not interleaved, so every other change of the machine is \
                  in the ratio too. The sentence about the fixed piece of work says how much the \
                  machine itself changed. The shaded range is ±δ, and hollow symbols are \
                  unresolved. The axis is logarithmic."
            .to_owned(),
        keys: vec![
            Key::new(Look::Full, "resolved: faster (left of 1), slower or equivalent"),
            Key::new(Look::Hollow, "unresolved"),
            Key::new(Look::Band, "a difference too small to matter (±δ)"),
        ],
        groups,
        notes: Vec::new(),
        tables: vec![table(change)],
    })
}

fn of_cell<'c>(change: &'c Change, cell: &CellSummary<'_>) -> Vec<(&'c CellChange, f64)> {
    let id = cell.cell.id();
    let cells = change.cells.iter().filter(|of| of.cell == id);
    cells.filter_map(|of| Some((of, of.ratio?))).collect()
}

fn group(change: &Change, title: String, cells: &[&CellSummary<'_>]) -> Option<Group> {
    let compared = cells.iter().flat_map(|cell| of_cell(change, cell));
    let variants = distinct(compared.map(|(of, _)| of.variant.as_str()));
    let panels: Vec<Panel> = cells
        .iter()
        .filter(|cell| !of_cell(change, cell).is_empty())
        .map(|cell| panel(change, cell, &variants))
        .collect();
    (!panels.is_empty()).then_some(Group { title, panels, height: Height::Rows })
}

fn panel(change: &Change, cell: &CellSummary<'_>, variants: &[&str]) -> Panel {
    let delta = change.deltas.of(cell.cell.state);
    let mut marks = vec![
        Mark::neutral("±δ", Shape::delta_band(delta)),
        Mark::neutral("as before", Shape::ratio_one()),
    ];
    for (of, ratio) in of_cell(change, cell) {
        let Some(row) = variants.iter().position(|name| *name == of.variant) else { continue };
        let dot = Dot { x: ratio, y: row as f64, low: of.low, high: of.high, text: words(of) };
        let hollow = of.answer == Answer::Unresolved;
        marks.push(Mark::dot(&of.variant, dot, hollow));
    }
    Panel {
        title: cell.size_words(),
        alt: format!("What changed at {}.", cell.words()),
        // The panel has both runs, whose file systems may differ.
        facets: crate::plot::Facets { file_system: None, ..cell.facets() },
        x: Axis::ratio("second run / first run"),
        y: Axis::variants(variants.iter().copied()),
        marks,
    }
}

fn words(of: &CellChange) -> String {
    let three = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), three_digits);
    format!(
        "{}: {} × (95 % {} to {}), {}",
        of.variant,
        three(of.ratio),
        three(of.low),
        three(of.high),
        answer_words(of.answer)
    )
}

fn table(change: &Change) -> Table {
    let mut table = Table::new(
        "Every variant in every cell of both runs",
        &[
            "cell",
            "variant",
            "second / first",
            "95 % from",
            "to",
            "answer",
            "sessions, first",
            "second",
        ],
    );
    for of in &change.cells {
        table.rows.push(vec![
            Entry::words(&of.cell),
            Entry::words(&of.variant),
            Entry::digits(of.ratio),
            Entry::digits(of.low),
            Entry::digits(of.high),
            Entry::words(answer_words(of.answer)),
            Entry::count(Some(of.sessions[0] as f64)),
            Entry::count(Some(of.sessions[1] as f64)),
        ]);
    }
    table
}
