//! The answer of an experiment as text: for each part a table of ratios, and sentences.

use std::path::Path;

use lab::bench::analysis::Sheet;
use lab::bench::answer::{CellVerdict, Comparison, PartVerdict, VariantSummary, Verdict};
use lab::bench::definition::{Definition, Measure};
use lab::stats::Answer;
use lab::words;

/// The verdict, with the parts' tables before their sentences.
pub(super) fn render(definition: &Definition, verdict: &Verdict, path: &Path) -> String {
    let mut text = format!("{}\n{}\n", definition.title, definition.question);
    for part in &verdict.parts {
        text.push('\n');
        text.push_str(&of_part(part, super::columns()));
    }
    text.push_str("\nHow to read it\n");
    for paragraph in definition.analysis.trim().split("\n\n") {
        push_wrapped(&mut text, &paragraph.replace('\n', " "));
    }
    text.push_str(&format!(
        "\nDifferences up to {} do not matter ({}).\n",
        in_both_states(verdict.delta, verdict.delta_cold),
        verdict.delta_from
    ));
    if !verdict.certificate.is_empty() {
        push_wrapped(&mut text, &format!("This machine: {}.", verdict.certificate));
    }
    for note in &verdict.notes {
        push_wrapped(&mut text, &format!("Note: {note}."));
    }
    text.push_str(&format!("Samples and verdict: {}\n", path.display()));
    text
}

/// δ, or one for each state.
pub(crate) fn in_both_states(warm: f64, cold: f64) -> String {
    if warm == cold {
        return format!("{} %", percent(warm));
    }
    format!("{} % warm and {} % cold", percent(warm), percent(cold))
}

fn of_part(part: &PartVerdict, columns: usize) -> String {
    let mut text = format!("{}: {}\n", part.part, part.question);
    if part.cells.iter().any(|cell| !cell.variants.is_empty()) {
        text.push_str(&matrix(part, columns));
    }
    for refused in refused(part) {
        push_wrapped(&mut text, &refused);
    }
    push_wrapped(&mut text, &part.sentence);
    for finding in &part.analyses {
        text.push('\n');
        text.push_str(&of_sheet(&finding.sheet(), columns));
    }
    text
}

/// What does not work in any cell, and why.
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

/// A share in percent without more digits than it has.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Columns side by side as far as they fit, and then the rest below, each time behind the names.
fn of_sheet(sheet: &Sheet, columns: usize) -> String {
    let mut text = format!("{}\n", sheet.title);
    let count = |text: &String| text.chars().count();
    let width = |column: usize| {
        let cells = sheet.rows.iter().map(|row| &row[column]);
        cells.chain([&sheet.columns[column]]).map(count).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sheet.columns.len()).map(width).collect();
    let mut rest = 1;
    while rest < widths.len() && !sheet.rows.is_empty() {
        let first = rest;
        let mut used = widths[0];
        while rest < widths.len() && (rest == first || used + 2 + widths[rest] <= columns) {
            used += 2 + widths[rest];
            rest += 1;
        }
        for row in std::iter::once(&sheet.columns).chain(&sheet.rows) {
            let mut line = format!("{:<width$}", row[0], width = widths[0]);
            for (cell, width) in row[first..rest].iter().zip(&widths[first..rest]) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    for sentence in &sheet.sentences {
        push_wrapped(&mut text, sentence);
    }
    text
}

/// A sentence on lines of its own.
fn push_wrapped(text: &mut String, sentence: &str) {
    for line in wrapped(sentence, super::columns()) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// Variants down, cells across: the median of the baseline, and for the others the ratio to it.
fn matrix(part: &PartVerdict, columns: usize) -> String {
    let variants: Vec<&str> =
        part.cells[0].variants.iter().map(|variant| variant.variant.as_str()).collect();
    let name_width = variants.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(40);
    let heads: Vec<String> = part.cells.iter().map(|cell| head(part, cell)).collect();
    let width = heads.iter().map(|head| head.chars().count()).max().unwrap_or(0).max(8) + 2;
    let per_block = ((columns.saturating_sub(name_width)) / width).max(1);
    let mut text = String::new();
    for block in (0..part.cells.len()).collect::<Vec<_>>().chunks(per_block) {
        text.push_str(&" ".repeat(name_width));
        for &cell in block {
            text.push_str(&format!("{:>width$}", heads[cell]));
        }
        text.push('\n');
        for (index, variant) in variants.iter().enumerate() {
            let cells: Vec<String> =
                block.iter().map(|&cell| value(part, &part.cells[cell], index)).collect();
            if cells.iter().all(|cell| cell == "-") {
                continue;
            }
            let name: String = variant.chars().take(name_width).collect();
            text.push_str(&format!("{name:<name_width$}"));
            for cell in cells {
                text.push_str(&format!("{cell:>width$}"));
            }
            text.push('\n');
        }
    }
    if !part.baseline.is_empty() {
        let what = match part.measure {
            Measure::Elapsed => "time",
            Measure::Durable => "time until on the medium",
            Measure::Processor => "processor time",
        };
        text.push_str(&format!(
            "{what} as a ratio to {}; < faster, > slower, = equivalent, ? unresolved\n",
            part.baseline
        ));
    }
    text
}

/// What tells a cell from the part's other cells.
fn head(part: &PartVerdict, cell: &CellVerdict) -> String {
    cell.cell.strip_prefix(&format!("{}/", part.part)).unwrap_or(&cell.cell).to_owned()
}

fn value(part: &PartVerdict, cell: &CellVerdict, variant: usize) -> String {
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
        (_, Some(median)) if part.baseline.is_empty() || summary.variant == part.baseline => {
            words::nanoseconds(median)
        }
        (_, Some(median)) => words::nanoseconds(median),
        (_, None) => "none".to_owned(),
    }
}

/// Lines of at most `columns` characters.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}
