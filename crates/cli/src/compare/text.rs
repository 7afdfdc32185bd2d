//! The changes between two runs as text.

use anstyle::Style;
use lab::compare::{CellChange, Change};
use lab::run_dir::Run;
use lab::stats::Answer;
use lab::studies::sheet::in_both_states;
use lab::words;

use crate::terminal::output::{BEST, BOLD, DIM, SLOWER, styled};
use crate::terminal::text::{wrapped, wrapped_each};

/// The columns of ratio, interval and answer, and the spaces before them.
const FIGURES_COLUMNS: usize = 2 + 2 + 6 + 2 + 14 + 2 + 10;

/// The most cells of only one run that are named.
const NAMED_MAX: usize = 20;

/// The differences of the environments, then those of the cells.
pub(super) fn render(change: &Change, runs: [&Run; 2], columns: usize) -> String {
    let mut lines: Vec<String> = ["First", "Second"]
        .iter()
        .zip(runs)
        .map(|(which, run)| {
            format!("{which}: {}, experiment {}", run.path.display(), run.definition.name)
        })
        .collect();
    lines.push(String::new());
    lines.extend(of_environments(change));
    lines.push(String::new());
    let mut text = wrapped_each(&lines, columns);
    text.push_str(&table(&change.cells, columns));
    text.push_str(&styled(BOLD, &wrapped(&summary(change), columns, "")));
    let mut lines = Vec::new();
    for (which, names) in [("first", &change.only_in_first), ("second", &change.only_in_second)] {
        if !names.is_empty() {
            let more = names.len().saturating_sub(NAMED_MAX);
            let named = words::listed(&names[..names.len() - more]);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            lines.push(format!("Only in the {which} run: {named}{more}."));
        }
    }
    lines.push(
        "The runs were made at different times and not interleaved. The ratios include all other changes \
         between them, and the intervals do not."
            .to_owned(),
    );
    text.push_str(&wrapped_each(&lines, columns));
    text
}

fn of_environments(change: &Change) -> Vec<String> {
    let mut lines = Vec::new();
    if change.environment.is_empty() {
        lines.push("No difference of machine, file systems or haulage is known.".to_owned());
    } else {
        lines.push("The environments differ:".to_owned());
    }
    for difference in &change.environment {
        let lab::compare::Difference { field, first, second } = difference;
        lines.push(format!("{field}: {first} -> {second}"));
    }
    if let Some(ratio) = change.probe_ratio {
        lines.push(format!(
            "A constant workload took {} x the time in the second run.",
            words::three_digits(ratio)
        ));
    }
    lines
}

/// A row for each variant and cell. If the columns do not suffice, a cell has a line of its own above its
/// variants.
fn table(cells: &[CellChange], columns: usize) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let width = |of: fn(&CellChange) -> &str, head: &str| {
        cells.iter().map(|cell| of(cell).chars().count()).max().unwrap_or(0).max(head.len())
    };
    let (cell_width, variant_width) =
        (width(|cell| &cell.cell, "cell"), width(|cell| &cell.variant, "variant"));
    let is_narrow = cell_width + variant_width + FIGURES_COLUMNS > columns;
    let cell_width = if is_narrow { 0 } else { cell_width };
    let row = |cell: &str, variant: &str, ratio: &str, interval: &str, answer: &str| {
        format!(
            "{cell:<cell_width$}  {variant:<variant_width$}  {ratio:>6}  {interval:<14}  {answer}"
        )
    };
    let head =
        row(if is_narrow { "" } else { "cell" }, "variant", "ratio", "95 % interval", "answer");
    let mut text = styled(BOLD, &head);
    let mut above = "";
    for change in cells {
        if is_narrow && change.cell != above {
            above = &change.cell;
            text.push_str(&format!("{above}\n"));
        }
        let three = |value: Option<f64>| value.map(words::three_digits);
        let ratio = three(change.ratio).unwrap_or_else(|| "none".to_owned());
        let interval = three(change.low).zip(three(change.high));
        let interval = interval
            .map_or_else(|| "few sessions".to_owned(), |(low, high)| format!("{low} to {high}"));
        let cell = if is_narrow { "" } else { &change.cell };
        let row = row(cell, &change.variant, &ratio, &interval, change.answer.word());
        text.push_str(&styled(style_of(change.answer), &row));
    }
    text.push('\n');
    text
}

fn style_of(answer: Answer) -> Style {
    match answer {
        Answer::Faster => BEST,
        Answer::Slower => SLOWER,
        Answer::Equivalent => Style::new(),
        Answer::Unresolved => DIM,
    }
}

fn summary(change: &Change) -> String {
    if change.cells.is_empty() {
        return change.sentence();
    }
    format!(
        "{} Differences up to {} do not matter.",
        change.sentence(),
        in_both_states(change.deltas)
    )
}
