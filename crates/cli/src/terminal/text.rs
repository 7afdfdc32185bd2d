//! Wraps paragraphs, and words counts and stages.

use lab::sample::Stage;
use textwrap::{Options, WordSplitter};

/// `text` in lines that end with a newline, of at most `columns` columns. A word that is longer has a
/// line of its own. All lines but the first start with `indent`.
pub(crate) fn wrapped(text: &str, columns: usize, indent: &str) -> String {
    textwrap::fill(text, options(columns).subsequent_indent(indent)) + "\n"
}

/// `text` behind `name`, with its other lines below its first.
pub(crate) fn wrapped_behind(name: &str, text: &str, columns: usize) -> String {
    let indent = " ".repeat(name.chars().count());
    let options = options(columns).initial_indent(name).subsequent_indent(&indent);
    textwrap::fill(text, options) + "\n"
}

/// Each of `paragraphs` on lines of its own.
pub(crate) fn wrapped_each<S: AsRef<str>>(paragraphs: &[S], columns: usize) -> String {
    paragraphs.iter().map(|text| wrapped(text.as_ref(), columns, "")).collect()
}

/// Variants and commands contain hyphens, and must be copied to a command line as they are.
fn options<'o>(columns: usize) -> Options<'o> {
    Options::new(columns).break_words(false).word_splitter(WordSplitter::NoHyphenation)
}

/// `1 round`, `2 rounds`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A round of a race or search: `elimination round 2`, `final round 3`.
pub(crate) fn stage_in_words(stage: Stage, round: u32) -> String {
    match stage {
        Stage::Elimination => format!("elimination round {round}"),
        Stage::WarmUp => "warm-up".to_owned(),
        Stage::Final => format!("final round {round}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
