//! A few lines at the bottom of a terminal that are drawn over again and again. Whatever else is
//! written there comes above them: they are taken away first.

use std::os::fd::AsFd;

use super::progress::width;
use crate::live::rows_of;

/// What stands on the terminal.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// The columns that each line takes.
    widths: Vec<usize>,
}

const ERASE_LINE_END: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

impl Screen {
    /// What puts `lines` in the place of those that stand there, on a terminal of so many columns.
    pub(super) fn draw(&mut self, lines: &[String], columns: usize) -> String {
        // Line by line over the old ones: erasing them first would flicker.
        let mut text = self.to_first(columns);
        for (index, line) in lines.iter().enumerate() {
            let end = if index + 1 < lines.len() { "\n" } else { "" };
            text.push_str(&format!("{line}{ERASE_LINE_END}{end}"));
        }
        text.push_str(ERASE_BELOW);
        self.widths = lines.iter().map(|line| width(line)).collect();
        text
    }

    /// What takes the lines away; empty where there are none.
    pub(super) fn erase(&mut self, columns: usize) -> String {
        if self.widths.is_empty() {
            return String::new();
        }
        let text = format!("{}{ERASE_BELOW}", self.to_first(columns));
        self.widths.clear();
        text
    }

    /// Leaves what stands there to somebody else, who has the terminal now.
    pub(super) fn forget(&mut self) {
        self.widths.clear();
    }

    /// The way to the start of the first line. A terminal that was made narrower since has broken
    /// lines in two.
    fn to_first(&self, columns: usize) -> String {
        match rows_of(&self.widths, columns) {
            0 | 1 => String::from("\r"),
            rows => format!("\r\x1b[{}A", rows - 1),
        }
    }
}

/// Whether this process may write to the terminal that `stream` is: not while the shell has put it
/// in the background.
pub(super) fn is_in_foreground(stream: &impl AsFd) -> bool {
    // A terminal that is not the one of this session has no foreground that could be another's.
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
        // On half as many columns the first line takes two rows.
        screen.draw(&lines(&["0123456789", "name"]), 80);
        assert_eq!(screen.erase(5), "\r\x1b[2A\x1b[J");
        screen.draw(&lines(&["bar", "name"]), 80);
        screen.forget();
        assert_eq!(screen.erase(80), "");
    }
}
