//! Paragraphs and tables of text for a terminal.

use lab::studies::sheet::Table;
use textwrap::{Options, WordSplitter};
use unicode_width::UnicodeWidthStr;

/// The lines of a table, each with the index of its row, which the heads have not.
pub type Lines = Vec<(Option<usize>, String)>;

/// `text` in lines that end with a newline, of at most `columns` columns. A word that is longer has a
/// line of its own. All lines but the first start with `indent`.
pub fn wrapped(text: &str, columns: usize, indent: &str) -> String {
    textwrap::fill(text, options(columns).subsequent_indent(indent)) + "\n"
}

/// `text` behind `name`, with its other lines below its first.
pub fn wrapped_behind(name: &str, text: &str, columns: usize) -> String {
    let indent = " ".repeat(name.chars().count());
    let options = options(columns).initial_indent(name).subsequent_indent(&indent);
    textwrap::fill(text, options) + "\n"
}

/// Each of `paragraphs` on lines of its own.
pub fn wrapped_each<S: AsRef<str>>(paragraphs: &[S], columns: usize) -> String {
    paragraphs.iter().map(|text| wrapped(text.as_ref(), columns, "")).collect()
}

/// Variants and commands contain hyphens, and must be copied to a command line as they are.
fn options<'o>(columns: usize) -> Options<'o> {
    Options::new(columns).break_words(false).word_splitter(WordSplitter::NoHyphenation)
}

/// Replaces control characters: names can come from untrusted files, and a terminal would interpret
/// these characters.
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A table in as many blocks one below another as `columns` of a terminal need. Each block repeats
/// the first `keys` columns, which identify a row; if these fill half a line, only the first. Where
/// `is_left` says so, a column is left-aligned. A row of one cell is a heading among the rows.
///
/// A name that takes more than half a line is not cut. It has a line of its own above its
/// row.
pub fn lines<C: AsRef<str>>(
    table: &Table<C>,
    keys: usize,
    is_left: impl Fn(usize) -> bool,
    columns: usize,
) -> Lines {
    let heads: Vec<String> = table.columns.iter().map(|head| visible(head)).collect();
    let shown = |row: &Vec<C>| row.iter().map(|cell| visible(cell.as_ref())).collect();
    let rows: Vec<Vec<String>> = table.rows.iter().map(shown).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| row.len() > 1).map(|row| row[column].width());
        cells.chain([heads[column].width()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..heads.len()).map(width).collect();
    widths[0] = widths[0].min(columns / 2);
    let width_of = |block: &[usize]| block.iter().map(|&column| 2 + widths[column]).sum::<usize>();
    let mut lines = Lines::new();
    let mut rest = 1;
    while rest < widths.len() && !rows.is_empty() {
        let mut block: Vec<usize> = (1..keys.min(rest)).collect();
        if widths[0] + width_of(&block) > columns / 2 {
            block.clear();
        }
        let repeated = block.len();
        let fits = |block: &[usize], next: usize| {
            block.len() == repeated || widths[0] + width_of(block) + 2 + widths[next] <= columns
        };
        while rest < widths.len() && fits(&block, rest) {
            block.push(rest);
            rest += 1;
        }
        let all = rows.iter().enumerate().map(|(index, row)| (Some(index), row));
        for (index, row) in std::iter::once((None, &heads)).chain(all) {
            let [name, rest @ ..] = row.as_slice() else { continue };
            let mut line = name.clone();
            if !rest.is_empty() && line.width() > widths[0] {
                lines.push((index, std::mem::take(&mut line)));
            }
            let mut end = widths[0];
            for &column in block.iter().filter(|_| !rest.is_empty()) {
                let free = widths[column] - row[column].width();
                let before = if is_left(column) { 2 } else { 2 + free };
                line.push_str(&" ".repeat(end - line.width() + before));
                line.push_str(&row[column]);
                end += 2 + widths[column];
            }
            lines.push((index, line.trim_end().to_owned()));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(heads: &[&str], keys: usize, rows: &[&[&str]], columns: usize) -> String {
        let heads = heads.iter().map(|&head| head.to_owned()).collect();
        let rows = rows.iter().map(|row| row.to_vec()).collect();
        let table = Table { title: String::new(), columns: heads, rows };
        let lines = lines(&table, keys, |column| column < keys, columns);
        lines.into_iter().map(|(_, line)| line + "\n").collect()
    }

    #[test]
    fn names_are_never_cut() {
        let long = "rsync -rl --whole-file --inplace {src}/ {dst}";
        let short = "cp {src} {dst}";
        let text = table(&["", "1M"], 1, &[&[long, "1.2 >"], &[short, "45 ms"]], 80);
        let blank = " ".repeat(40);
        let expected = format!("{blank}     1M\n{long}\n{blank}  1.2 >\n{short:<40}  45 ms\n");
        assert_eq!(text, expected);
        assert_eq!(table(&["a", "b"], 1, &[&["漢字", "1"]], 80), "a     b\n漢字  1\n");
    }

    #[test]
    fn rows_of_a_later_block_repeat_their_names() {
        let rows: [&[&str]; 3] =
            [&["a", "warm", "1", "22222222"], &["these:"], &["a", "cold", "3", "4"]];
        let expected = "name  state  one\na     warm     1\nthese:\na     cold     3\n\
                        name  state       two\na     warm   22222222\nthese:\na     cold          4\n";
        assert_eq!(table(&["name", "state", "one", "two"], 2, &rows, 25), expected);
    }

    #[test]
    fn words_stay_whole() {
        let lines = |text: &str, columns| -> Vec<String> {
            wrapped(text, columns, "").lines().map(str::to_owned).collect()
        };
        let text = "run rsync --whole-file --inplace now";
        assert_eq!(lines(text, 12), ["run rsync", "--whole-file", "--inplace", "now"]);
        assert_eq!(lines(text, 5), ["run", "rsync", "--whole-file", "--inplace", "now"]);
        assert_eq!(wrapped("one two three", 9, "  "), "one two\n  three\n");
        assert_eq!(lines("", 9), [""]);
    }

    #[test]
    fn further_lines_are_below_the_first() {
        assert_eq!(wrapped_behind("warm  ", "one two three", 14), "warm  one two\n      three\n");
    }
}
