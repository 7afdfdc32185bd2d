//! What changed between two runs: the second's time over the first's, cell by cell.

use lab::compare::{CellChange, Change};
use lab::stats::Answer;
use lab::words::three_digits;

use super::ratio::answer_words;
use super::{Along, Axis, Dot, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Stroke};
use crate::in_order::{distinct, gathered};
use crate::summary::{CellSummary, Summary};
use crate::table::{Entry, Table};

/// The figure; none when the runs have nothing in common. `summaries` are those of the two runs.
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
                  of both. The runs were not interleaved, so that everything that was different \
                  then is in the ratio; the sentence about a piece of work that is always the \
                  same tells how much of it the machine is. The shaded range is ±δ, and hollow \
                  symbols are unresolved. The axis is logarithmic."
            .to_owned(),
        keys: vec![
            Key::new(Look::Full, "faster, slower or equivalent"),
            Key::new(Look::Hollow, "unresolved"),
            Key::new(Look::Band, "±δ: does not matter"),
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
    let (from, to) = (1.0 / (1.0 + delta), 1.0 + delta);
    let text = String::new;
    let band = Shape::Band { cuts: Along::X, from, to, text: text(), warning: false };
    let one = Shape::Rule { cuts: Along::X, at: 1.0, text: text(), stroke: Stroke::Thin };
    let mut marks = vec![Mark::neutral("±δ", band), Mark::neutral("as before", one)];
    for (of, ratio) in of_cell(change, cell) {
        let Some(row) = variants.iter().position(|name| *name == of.variant) else { continue };
        let dot = Dot { x: ratio, y: row as f64, low: of.low, high: of.high, text: words(of) };
        let hollow = of.answer == Answer::Unresolved;
        let dots = Shape::Dots { dots: vec![dot], along: Along::X, hollow };
        marks.push(Mark::of(&of.variant, dots).unlisted());
    }
    Panel {
        title: cell.size_words(),
        alt: format!("What changed at {}.", cell.words()),
        // Both runs are in it, whatever file systems they were on.
        facets: super::Facets { file_system: None, ..cell.facets() },
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
