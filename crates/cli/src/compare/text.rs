//! The changes between two runs as text.

use anstyle::Style;
use lab::compare::{CellChange, Change};
use lab::run_dir::Run;
use lab::stats::Answer;
use lab::studies::sheet::{Table, in_both_states};
use lab::words;

use crate::terminal::output::{BEST, BOLD, DIM, SLOWER, styled};
use report::columns::{lines, wrapped, wrapped_each};
use report::headline;

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
    if change.environment.is_empty() {
        lines.push("No difference of machine, file systems or haulage is known.".to_owned());
    }
    lines.extend(headline::of_environments(change));
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

fn table(cells: &[CellChange], columns: usize) -> String {
    let ratio = |of: &&CellChange| of.ratio.map_or("none".to_owned(), words::three_digits);
    let interval = |of: &&CellChange| match [of.low, of.high].map(|it| it.map(words::three_digits))
    {
        [Some(low), Some(high)] => format!("{low} to {high}"),
        _ => "few sessions".to_owned(),
    };
    let table = Table::of(
        "",
        cells,
        &[
            ("cell", &|of| of.cell.clone()),
            ("variant", &|of| of.variant.clone()),
            ("ratio", &ratio),
            ("95 % interval", &interval),
            ("answer", &|of| of.answer.word().to_owned()),
        ],
    );
    let mut text = String::new();
    for (row, line) in lines(&table, 2, |column| column != 2, columns) {
        let style = row.map_or(BOLD, |row| style_of(cells[row].answer));
        text.push_str(&styled(style, &line));
    }
    if cells.is_empty() { text } else { text + "\n" }
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
