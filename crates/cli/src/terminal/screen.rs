//! A few lines at the bottom of a terminal that are redrawn. Other output is written above them: they
//! are erased first.

use std::os::fd::AsFd;

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthChar;

/// What is on the terminal.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// The width of each line without its styles, in columns.
    widths: Vec<usize>,
}

const ERASE_LINE_END: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

impl Screen {
    /// The text that replaces the lines on a terminal of `columns` columns by `lines`.
    pub(crate) fn draw(&mut self, lines: &[String], columns: usize) -> String {
        // Each line overwrites the old one: to erase them first would flicker.
        let mut text = self.to_first(columns);
        for (index, line) in lines.iter().enumerate() {
            let end = if index + 1 < lines.len() { "\n" } else { "" };
            text.push_str(&format!("{line}{ERASE_LINE_END}{end}"));
        }
        text.push_str(ERASE_BELOW);
        self.widths = lines.iter().map(|line| strip_str(line).map(width).sum()).collect();
        text
    }

    /// The text that erases the lines; empty if there are none.
    pub(crate) fn erase(&mut self, columns: usize) -> String {
        if self.widths.is_empty() {
            return String::new();
        }
        let text = format!("{}{ERASE_BELOW}", self.to_first(columns));
        self.widths.clear();
        text
    }

    /// Leaves the lines where they are: another process has written to the terminal.
    pub(crate) fn forget(&mut self) {
        self.widths.clear();
    }

    /// The text that moves the cursor to the start of the first line. A terminal that became narrower
    /// has wrapped lines.
    fn to_first(&self, columns: usize) -> String {
        let rows = self.widths.iter().map(|width| width.div_ceil(columns).max(1));
        match rows.sum::<usize>() {
            0 | 1 => String::from("\r"),
            rows => format!("\r\x1b[{}A", rows - 1),
        }
    }
}

/// The columns that `text` takes at most. Terminals differ in what they combine, and no line may wrap.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// Makes the character before it an emoji, which is wider.
pub(crate) const EMOJI_SELECTOR: char = '\u{fe0f}';

pub(crate) fn width_of(c: char) -> usize {
    if c == EMOJI_SELECTOR { 1 } else { c.width().unwrap_or(0) }
}

/// Whether this process is in the foreground of the terminal `stream`. Only then may it draw.
pub(crate) fn is_in_foreground(stream: &impl AsFd) -> bool {
    // A terminal that is not the controlling one has no foreground process group: ENOTTY.
    rustix::termios::tcgetpgrp(stream).map_or(true, |group| group == rustix::process::getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_replace_those_before() {
        let mut screen = Screen::default();
        let lines = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        assert_eq!(screen.erase(80), "");
        assert_eq!(screen.draw(&lines(&["bar", "name"]), 80), "\rbar\x1b[K\nname\x1b[K\x1b[J");
        assert_eq!(screen.draw(&lines(&["bar"]), 80), "\r\x1b[1Abar\x1b[K\x1b[J");
        assert_eq!(screen.erase(80), "\r\x1b[J");
        assert_eq!(screen.erase(80), "");
        screen.draw(&lines(&["bar", "name"]), 80);
        screen.forget();
        assert_eq!(screen.erase(80), "");
    }

    #[test]
    fn lines_are_found_again_in_a_narrower_terminal() {
        let mut screen = Screen::default();
        let lines = ["\x1b[1mtwelve chars\x1b[0m", "", "\x1b[2m表表\x1b[0m"].map(str::to_owned);
        for (columns, rows) in [(80, 3), (12, 3), (11, 4), (4, 5), (3, 7)] {
            screen.draw(&lines, columns);
            let erased = format!("\r\x1b[{}A\x1b[J", rows - 1);
            assert_eq!(screen.erase(columns), erased, "{columns}");
        }
    }
}
