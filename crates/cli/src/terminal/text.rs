//! Wrapping of paragraphs.

use textwrap::{Options, WordSplitter};

/// `text` in lines of at most `columns` columns. A word that is longer has a line of its own.
pub(crate) fn wrapped_lines(text: &str, columns: usize) -> Vec<String> {
    let lines = textwrap::wrap(text, options(columns));
    lines.into_iter().map(|line| line.into_owned()).collect()
}

/// `text` in lines that end with a newline. All but the first start with `indent`.
pub(crate) fn wrapped(text: &str, columns: usize, indent: &str) -> String {
    textwrap::fill(text, options(columns).subsequent_indent(indent)) + "\n"
}

/// Variants and commands contain hyphens, and must be copied to a command line as they are.
fn options<'o>(columns: usize) -> Options<'o> {
    Options::new(columns).break_words(false).word_splitter(WordSplitter::NoHyphenation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole() {
        let text = "run rsync --whole-file --inplace now";
        assert_eq!(wrapped_lines(text, 12), ["run rsync", "--whole-file", "--inplace", "now"]);
        assert_eq!(wrapped_lines(text, 5), ["run", "rsync", "--whole-file", "--inplace", "now"]);
        assert_eq!(wrapped("one two three", 9, "  "), "one two\n  three\n");
        assert_eq!(wrapped_lines("", 9), [""]);
    }
}
