//! The verdict of an experiment as text: for each part a table of ratios, and sentences.

use lab::definition::{Definition, Part};
use lab::stats::Answer;
use lab::studies::sheet::{Sheet, Table};
use lab::verdict::{CellVerdict, Comparison, PartVerdict, VariantSummary, Verdict};
use lab::{words, workload};
use report::columns::{lines, wrapped, wrapped_each};

/// The whole verdict, with the parts' tables before their sentences, in lines of at most `columns`
/// characters. A word that is longer has a line of its own.
pub(super) fn render(definition: &Definition, verdict: &Verdict, columns: usize) -> String {
    let mut text = format!("{}\n{}\n", definition.title, definition.question);
    for (part, of) in verdict.parts.iter().zip(&definition.parts) {
        text.push('\n');
        text.push_str(&of_part(part, of, columns));
    }
    let analysis = definition.analysis.trim();
    if !analysis.is_empty() {
        text.push_str("\nHow to read it\n");
        for paragraph in analysis.split("\n\n") {
            text.push_str(&wrapped(&paragraph.replace('\n', " "), columns, ""));
        }
    }
    if !verdict.notes.is_empty() {
        text.push('\n');
    }
    for note in &verdict.notes {
        text.push_str(&wrapped(&format!("Note: {note}."), columns, ""));
    }
    text
}

fn of_part(part: &PartVerdict, of: &Part, columns: usize) -> String {
    let mut text = String::new();
    text.push_str(&wrapped(&format!("{}: {}", part.part, part.question), columns, ""));
    if part.cells.iter().any(|cell| !cell.variants.is_empty()) {
        text.push_str(&of_sheet(&matrix(part, of), columns));
    }
    text.push_str(&wrapped_each(&refused(part), columns));
    text.push_str(&wrapped(&part.sentence, columns, ""));
    for finding in &part.analyses {
        text.push('\n');
        text.push_str(&of_sheet(&finding.sheet(), columns));
    }
    text
}

/// The variants that work in no cell, each with the reason.
fn refused(part: &PartVerdict) -> Vec<String> {
    let Some(first) = part.cells.first() else { return Vec::new() };
    let everywhere =
        |index: usize| part.cells.iter().all(|cell| !cell.variants[index].refused.is_empty());
    let of = |(index, variant): (usize, &VariantSummary)| {
        let words = format!("Left out: {}: {}.", variant.variant, variant.refused);
        everywhere(index).then_some(words)
    };
    first.variants.iter().enumerate().filter_map(of).collect()
}

fn of_sheet(sheet: &Sheet, columns: usize) -> String {
    let mut text = match sheet.table.title.as_str() {
        "" => String::new(),
        title => wrapped(title, columns, ""),
    };
    let keys = sheet.key_columns;
    let lines = lines(&sheet.table, keys, |column| column < keys, columns);
    lines.into_iter().for_each(|(_, line)| text.push_str(&(line + "\n")));
    text + &wrapped_each(&sheet.sentences, columns)
}

/// A row for each variant that works and a column for each cell: the median of the baseline, and the
/// ratios of the others to it.
fn matrix(part: &PartVerdict, of: &Part) -> Sheet {
    let calls = calls_of_run(of);
    let heads = part.cells.iter().map(|cell| head(part, cell));
    let row = |(index, variant): (usize, &VariantSummary)| {
        let cells = part.cells.iter().map(|cell| value(cell, index, calls));
        std::iter::once(variant.variant.clone()).chain(cells).collect::<Vec<String>>()
    };
    let mut rows: Vec<_> = part.cells[0].variants.iter().enumerate().map(row).collect();
    rows.retain(|row| row[1..].iter().any(|cell| cell != "-"));
    let what = if calls > 1 { "time of one call" } else { part.measure.words() };
    let legend = format!(
        "{what} as a ratio to {}; < faster, > slower, = equivalent, ? unresolved",
        part.baseline
    );
    let compares = part.cells.iter().any(|cell| !cell.comparisons.is_empty());
    let columns = std::iter::once(String::new()).chain(heads).collect();
    Sheet {
        table: Table { title: String::new(), columns, rows },
        key_columns: 1,
        sentences: compares.then_some(legend).into_iter().collect(),
    }
}

/// The calls of a run if the part measures the time of one call; otherwise 1.
fn calls_of_run(part: &Part) -> u64 {
    let workload = workload::by_name(&part.workload);
    workload.and_then(|workload| workload.calls_of_run).unwrap_or(1)
}

/// The name of a cell within its part.
fn head(part: &PartVerdict, cell: &CellVerdict) -> String {
    cell.cell.strip_prefix(&format!("{}/", part.part)).unwrap_or(&cell.cell).to_owned()
}

fn value(cell: &CellVerdict, variant: usize, calls: u64) -> String {
    let summary = &cell.variants[variant];
    if !summary.refused.is_empty() {
        return "-".to_owned();
    }
    let comparison = cell.comparisons.iter().find(|of| of.variant == summary.variant);
    match (comparison, summary.median_ns) {
        (Some(Comparison { ratio: Some(ratio), answer, .. }), _) => {
            let mark = match answer {
                Answer::Faster => '<',
                Answer::Slower => '>',
                Answer::Equivalent => '=',
                Answer::Unresolved => '?',
            };
            format!("{} {mark}", words::three_digits(*ratio))
        }
        (_, Some(median)) => words::nanoseconds(median / calls as f64),
        (_, None) => "none".to_owned(),
    }
}
