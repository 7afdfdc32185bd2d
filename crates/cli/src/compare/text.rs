//! The changes between two runs as text.

use lab::compare::{CellChange, Change};
use lab::run_dir::Run;
use lab::stats::Answer;
use lab::words;

use crate::bench::table::in_both_states;
use crate::terminal::text::wrapped_each;

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
    text.push_str(&table(&change.cells));
    let mut lines = vec![summary(change)];
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

fn table(cells: &[CellChange]) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let width = |of: fn(&CellChange) -> &str, head: &str| {
        cells.iter().map(|cell| of(cell).chars().count()).max().unwrap_or(0).max(head.len())
    };
    let (cell_width, variant_width) =
        (width(|cell| &cell.cell, "cell"), width(|cell| &cell.variant, "variant"));
    let row = |cell: &str, variant: &str, ratio: &str, interval: &str, answer: &str| {
        let line = format!(
            "{cell:<cell_width$}  {variant:<variant_width$}  {ratio:>6}  {interval:<16}  {answer}"
        );
        line.trim_end().to_owned() + "\n"
    };
    let mut text = row("cell", "variant", "ratio", "95 % interval", "answer");
    for change in cells {
        let three = |value: Option<f64>| value.map(words::three_digits);
        let ratio = three(change.ratio).unwrap_or_else(|| "none".to_owned());
        let interval = three(change.low).zip(three(change.high));
        let interval = interval.map_or_else(
            || "too few sessions".to_owned(),
            |(low, high)| format!("{low} to {high}"),
        );
        text.push_str(&row(&change.cell, &change.variant, &ratio, &interval, change.answer.word()));
    }
    text.push('\n');
    text
}

fn summary(change: &Change) -> String {
    let count = |answer: Answer| change.cells.iter().filter(|it| it.answer == answer).count();
    if change.cells.is_empty() {
        return "The two runs have no cell in common.".to_owned();
    }
    format!(
        "Of {} comparisons, {} are faster in the second run, {} slower, {} equivalent and {} unresolved. \
         Differences up to {} do not matter.",
        change.cells.len(),
        count(Answer::Faster),
        count(Answer::Slower),
        count(Answer::Equivalent),
        count(Answer::Unresolved),
        in_both_states(change.deltas.warm, change.deltas.cold)
    )
}
