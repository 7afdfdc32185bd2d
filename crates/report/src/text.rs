//! The report for a terminal: conclusions, rows of intervals and violins, and tables.

use lab::verdict::conclusion::Conclusion;
use unicode_width::UnicodeWidthStr;

use crate::answer;
use crate::columns::{self, visible};
use crate::headline;
use crate::machine;
use crate::palette::{ROWS, Style};
use crate::plot::{Axis, Dot, Entry, Figure, Group, Panel, Shape, Table, Violin};
use crate::report::Report;
use crate::scale::Range;
use crate::summary::Summary;

/// The minimum and maximum columns of the names of rows.
const NAME_COLUMNS: [usize; 2] = [24, 36];

/// The maximum columns of the values at the end of a row.
const VALUE_COLUMNS: usize = 20;

/// Characters that are bars of ascending height.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The report in lines of at most `columns` columns and at least 60, with ANSI colours. The caller
/// removes them for an output without colours.
pub fn render(report: &Report<'_>, columns: usize) -> String {
    let columns = columns.max(60);
    let mut text = String::new();
    if let Some(change) = &report.change {
        for words in crate::headline::of_change(change) {
            paragraph(&mut text, &words, columns);
        }
        text.push('\n');
    }
    for record in &report.tuned {
        paragraph(&mut text, &crate::figure::tuning::sentence(record), columns);
    }
    for summary in &report.summaries {
        head(&mut text, summary, columns);
    }
    for figure in &report.figures {
        of_figure(&mut text, figure, report, columns);
    }
    text
}

fn head(text: &mut String, summary: &Summary<'_>, columns: usize) {
    let source = summary.source;
    let definition = &source.run.definition;
    paragraph(text, &format!("{}: {}", definition.title, definition.question), columns);
    text.push('\n');
    text.push_str(&answer::render(definition, &source.verdict, &source.run, columns));
    let main = definition.main_part();
    for part in source.verdict.parts.iter().filter(|part| part.part != main.name) {
        text.push('\n');
        paragraph(text, &format!("{}: {}", part.part, part.question), columns);
        let answer = headline::of_part(source, part);
        paragraph(text, &answer.sentence, columns);
        rows(text, &answer, columns);
    }
    text.push('\n');
    paragraph(text, &machine::line(&source.run.environment), columns);
    paragraph(text, &source.badge.words, columns);
    for note in &source.verdict.notes {
        paragraph(text, &format!("Note: {note}"), columns);
    }
    text.push('\n');
}

/// A line for each range of files of an answer.
fn rows(text: &mut String, answer: &Conclusion, columns: usize) {
    for row in &answer.rows {
        let row = plain(&format!("{}: {}.", row.files, row.text()));
        text.push_str(&columns::wrapped_behind("- ", &row, columns));
    }
}

fn of_figure(text: &mut String, figure: &Figure, report: &Report<'_>, columns: usize) {
    let title = figure.about.title;
    text.push_str(&format!("\x1b[1m{title}\x1b[0m\n{}\n", "─".repeat(title.width())));
    let before = text.len();
    for group in &figure.groups {
        of_group(text, group, report, columns);
    }
    if text.len() == before {
        for table in &figure.tables {
            of_table(text, table, columns);
        }
    }
    for note in &figure.notes {
        paragraph(text, &format!("Note: {note}."), columns);
    }
    text.push('\n');
}

fn of_group(text: &mut String, group: &Group, report: &Report<'_>, columns: usize) {
    for panel in &group.panels {
        let (rows, axis, range) = match panel.y.categories.is_empty() {
            false => (strips(panel), &panel.x, Range::of_x(panel)),
            true => (violins(panel), &panel.y, Range::of_y(panel)),
        };
        if rows.is_empty() {
            continue;
        }
        let title = match panel.title.as_str() {
            "" => group.title.clone(),
            title => format!("{}: {title}", group.title),
        };
        text.push('\n');
        paragraph(text, &title, columns);
        let [least, most] = NAME_COLUMNS;
        let longest = rows.iter().map(|row| row.name.width()).max().unwrap_or(least);
        let name_columns = longest.clamp(least, most.min(columns - 36));
        let strip_columns = columns - name_columns - VALUE_COLUMNS - 2;
        for row in rows {
            let style = report.styles.get(row.variant);
            text.push_str(&format!(
                "{} {} {}\n",
                padded(&row.name, name_columns),
                coloured(&row.picture(range, strip_columns), style),
                row.value
            ));
        }
        scale(text, axis, range, [name_columns, strip_columns]);
    }
}

/// One row of a figure.
struct Row<'p> {
    name: String,
    variant: &'p str,
    value: String,
    /// Values, and whether their symbols are hollow. A line joins several.
    dots: Vec<(&'p Dot, bool)>,
    /// The lengths and strengths of stacked bars.
    bars: Vec<(f64, f32)>,
    violin: Option<&'p Violin>,
}

/// The rows of a panel whose vertical axis has names.
fn strips(panel: &Panel) -> Vec<Row<'_>> {
    let show = |value: f64| crate::scale::shown(panel.x.unit, value);
    let mut rows = Vec::new();
    for (index, name) in panel.y.categories.iter().enumerate() {
        let here = |at: f64| (at - index as f64).abs() < 0.5;
        let mut dots: Vec<(&Dot, bool)> = Vec::new();
        let mut bars: Vec<(f64, f32)> = Vec::new();
        for mark in &panel.marks {
            match &mark.shape {
                Shape::Dots { dots: of, hollow, .. } => {
                    dots.extend(of.iter().filter(|dot| here(dot.y)).map(|dot| (dot, *hollow)));
                }
                // Bars with names are left to the table, which has room for the names.
                Shape::Bar { row, length, strength, named: false, .. } if here(*row) => {
                    bars.push((*length, *strength));
                }
                _ => {}
            }
        }
        let value = match dots.as_slice() {
            [] if bars.is_empty() => continue,
            [] => show(bars.iter().map(|bar| bar.0).sum()),
            [(Dot { x, interval: Some((low, high)), .. }, _)] => {
                format!("{} ({}-{})", show(*x), show(*low), show(*high))
            }
            [(only, _)] => show(only.x),
            [(first, _), .., (last, _)] => format!("{} → {}", show(first.x), show(last.x)),
        };
        rows.push(Row { name: name.clone(), variant: name, value, dots, bars, violin: None });
    }
    rows
}

/// A row for each violin that is shown at first, by size.
fn violins(panel: &Panel) -> Vec<Row<'_>> {
    let mut rows: Vec<(f64, Row<'_>)> = Vec::new();
    for mark in panel.marks.iter().filter(|mark| !mark.hidden) {
        let Shape::Violin(violin) = &mark.shape else { continue };
        let variant = mark.variant.as_deref().unwrap_or_default();
        let size = match panel.x.categories.is_empty() {
            true => crate::scale::shown(panel.x.unit, violin.size) + " ",
            false => String::new(),
        };
        let (name, value) = (size + variant, crate::scale::shown(panel.y.unit, violin.median));
        let (dots, bars) = (Vec::new(), Vec::new());
        rows.push((violin.size, Row { name, variant, value, dots, bars, violin: Some(violin) }));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

impl Row<'_> {
    fn picture(&self, range: Range, columns: usize) -> String {
        let mut cells = vec![' '; columns];
        let last = columns - 1;
        // The clamp keeps it in range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = |value: f64| (range.share(value).clamp(0.0, 1.0) * last as f64).round() as usize;
        // A file that was edited may have the ends of an interval the wrong way round.
        let between = |from: usize, to: usize| from.min(to)..=from.max(to);
        if let [(dot, _)] = self.dots.as_slice() {
            if range.low < 1.0 && range.high > 1.0 {
                cells[at(1.0)] = '│';
            }
            if let Some((low, high)) = dot.interval {
                let (from, to) = (at(low), at(high));
                cells[between(from, to)].fill('─');
                cells[from] = if range.share(low) < 0.0 { '←' } else { '├' };
                cells[to] = if range.share(high) > 1.0 { '→' } else { '┤' };
            }
        }
        for pair in self.dots.windows(2) {
            cells[between(at(pair[0].0.x), at(pair[1].0.x))].fill('─');
        }
        for (dot, hollow) in &self.dots {
            cells[at(dot.x)] = if *hollow { '○' } else { '●' };
        }
        let mut end = 0.0;
        for (length, strength) in &self.bars {
            let from = at(end);
            end += length;
            let shade = match strength {
                0.8.. => '█',
                0.3.. => '▒',
                _ => '░',
            };
            cells[from..at(end).max(from)].fill(shade);
        }
        if let Some(violin) = self.violin {
            violin.runs.iter().for_each(|run| cells[at(*run)] = '·');
            for [value, share] in &violin.outline {
                // A share is at most 1.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let height = ((share * 8.0).ceil() as usize).clamp(1, 8);
                let cell = &mut cells[at(*value)];
                let before = HEIGHTS.iter().position(|of| of == cell).map_or(0, |it| it + 1);
                if *share > 0.01 && height > before {
                    *cell = HEIGHTS[height - 1];
                }
            }
            cells[at(violin.median)] = '┃';
        }
        cells.into_iter().collect()
    }
}

/// The axis below the rows: labels at the positions of their values.
fn scale(text: &mut String, axis: &Axis, range: Range, [name_columns, columns]: [usize; 2]) {
    let mut line = vec![' '; columns];
    let mut free = 0;
    for (value, label) in range.ticks(axis, columns / 9) {
        let share = range.share(value).clamp(0.0, 1.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to columns.
        let middle = (share * (columns - 1) as f64).round() as usize;
        let width = label.chars().count();
        let from = middle.saturating_sub(width / 2).min(columns.saturating_sub(width));
        if from < free {
            continue;
        }
        for (cell, c) in line[from..].iter_mut().zip(label.chars()) {
            *cell = c;
        }
        free = from + width + 1;
    }
    let line: String = line.into_iter().collect();
    let log = if range.log { ", log scale" } else { "" };
    let label = padded(&format!("{}{log}", axis.label), columns + VALUE_COLUMNS);
    let label = label.trim_end();
    text.push_str(&format!("{} {}\n", " ".repeat(name_columns), line.trim_end()));
    text.push_str(&format!("{} {label}\n", " ".repeat(name_columns)));
}

/// A table, in which columns of words are left-aligned.
fn of_table(text: &mut String, table: &Table, columns: usize) {
    text.push('\n');
    paragraph(text, &table.title, columns);
    let is_words = |column: usize| {
        let first = table.rows.first().map(|row| &row[column]);
        matches!(first, Some(Entry::Words(_)))
    };
    for (_, line) in columns::lines(table, 1, is_words, columns) {
        text.push_str(&format!("{line}\n"));
    }
}

/// `text`, cut or padded to exactly `columns` columns of a terminal.
fn padded(text: &str, columns: usize) -> String {
    let mut text = visible(text);
    if text.width() > columns {
        while text.width() >= columns && text.pop().is_some() {}
        text.push('…');
    }
    let free = columns.saturating_sub(text.width());
    text + &" ".repeat(free)
}

/// `text` in the colour of its engine. The colours for a dark background are readable on a light
/// one too.
fn coloured(text: &str, style: Option<&Style>) -> String {
    let Some(style) = style else { return text.to_owned() };
    let part = |at: usize| u8::from_str_radix(&ROWS[style.row].dark[at..at + 2], 16).unwrap_or(128);
    format!("\x1b[38;2;{};{};{}m{text}\x1b[0m", part(1), part(3), part(5))
}

fn paragraph(text: &mut String, words: &str, columns: usize) {
    text.push_str(&columns::wrapped(&plain(words), columns, ""));
}

/// Without control characters, and with a space where there is white space.
fn plain(words: &str) -> String {
    visible(&words.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_or_cut_to_the_columns() {
        let check = |text: &str, columns: usize, expected: &str| {
            assert_eq!(padded(text, columns), expected, "{text:?} in {columns} columns");
        };
        check("splice", 8, "splice  ");
        check("splice:1M,pipe=1M", 8, "splice:…");
        // Some characters are two columns wide, so a column may remain free after a cut.
        check("漢字漢字", 8, "漢字漢字");
        check("漢字漢字", 6, "漢字… ");
        check("\u{1b}[2J", 5, "\u{fffd}[2J ");
    }
}
