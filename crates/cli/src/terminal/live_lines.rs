//! A few lines at the bottom of a terminal that are redrawn during a measurement: between runs, never
//! during one, so that they do not disturb it.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstyle::Style;
use signal_hook::consts::SIGCONT;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error_text::printable;

/// Lines on standard error. Nothing is drawn if that is no terminal.
pub(crate) struct LiveLines {
    terminal: bool,
    /// The shortest time between two redraws.
    redraw_after: Duration,
    /// The width of each line on the terminal, in columns.
    drawn: Vec<usize>,
    drawn_at: Option<Instant>,
    /// SIGCONT arrived since the last redraw: another process may have written to the terminal.
    resumed: Arc<AtomicBool>,
}

impl LiveLines {
    pub(crate) fn new(redraw_after: Duration) -> LiveLines {
        let terminal = std::io::stderr().is_terminal();
        let resumed = Arc::new(AtomicBool::new(false));
        if terminal {
            // If that fails, lines may overwrite what the shell wrote during a stop.
            let _ = signal_hook::flag::register(SIGCONT, resumed.clone());
        }
        LiveLines { terminal, redraw_after, drawn: Vec::new(), drawn_at: None, resumed }
    }

    /// Whether standard error is a terminal.
    pub(crate) fn are_shown(&self) -> bool {
        self.terminal
    }

    /// Draws what `lines` returns for the terminal's number of rows, cut to its width. Does nothing if
    /// the last redraw was less than `redraw_after` ago.
    pub(crate) fn draw(&mut self, lines: impl FnOnce(usize) -> Vec<(Style, String)>) {
        if !self.terminal || self.drawn_at.is_some_and(|at| at.elapsed() < self.redraw_after) {
            return;
        }
        let (columns, rows) = terminal_size(&std::io::stderr());
        let colours = anstream::stderr().current_choice() != anstream::ColorChoice::Never;
        let styled = |(style, text): (Style, String)| {
            let text = truncated(&text, columns.saturating_sub(1));
            if colours { format!("{style}{text}{style:#}") } else { text }
        };
        let lines: Vec<String> = lines(rows).into_iter().map(styled).collect();
        self.forget_after_stop();
        // Each line overwrites the old one: to erase them first would flicker, and would fill the
        // scrollback of terminals that keep cleared lines.
        let rows_drawn = rows_of(&self.drawn, columns);
        let mut text = up(rows_drawn);
        for line in &lines {
            text.push_str(line);
            text.push_str(ERASE_LINE_END);
            text.push('\n');
        }
        let left_over = rows_drawn.saturating_sub(lines.len());
        text.push_str(&blank(left_over));
        put(&text);
        self.drawn = lines.iter().map(|line| width(line)).collect();
        self.drawn_at = Some(Instant::now());
    }

    /// Erases the lines.
    pub(crate) fn clear(&mut self) {
        let (columns, _) = terminal_size(&std::io::stderr());
        self.forget_after_stop();
        let rows = rows_of(&self.drawn, columns);
        put(&format!("{}{}", up(rows), blank(rows)));
        self.drawn.clear();
        self.drawn_at = None;
    }

    fn forget_after_stop(&mut self) {
        if self.resumed.swap(false, Ordering::Relaxed) {
            self.drawn.clear();
        }
    }
}

/// The rows that lines of these widths take in `columns` columns: a terminal that becomes narrower wraps
/// its lines.
pub(crate) fn rows_of(widths: &[usize], columns: usize) -> usize {
    widths.iter().map(|width| width.div_ceil(columns).max(1)).sum()
}

/// The columns that `line` takes, without its styles.
fn width(line: &str) -> usize {
    anstream::adapter::strip_str(line).map(UnicodeWidthStr::width).sum()
}

/// The start of `text` that fits into `columns`, without control characters.
fn truncated(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    printable(text).chars().take_while(fits).collect()
}

fn put(text: &str) {
    // A measurement does not fail because a line cannot be drawn. Not anstream's stream, which would
    // remove the control sequences where colours are off.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

const ERASE_LINE_END: &str = "\x1b[K";

fn up(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A") }
}

/// Erases that many lines from the cursor on and moves it back.
fn blank(lines: usize) -> String {
    format!("{}{}", format!("{ERASE_LINE_END}\n").repeat(lines), up(lines))
}

/// The columns of the terminal `stream`, if it is one.
pub(crate) fn columns(stream: &impl AsFd) -> Option<usize> {
    size(stream).map(|(columns, _)| columns)
}

/// Columns and rows of the terminal `stream`; 80 and 24 if they are unknown.
pub(crate) fn terminal_size(stream: &impl AsFd) -> (usize, usize) {
    size(stream).unwrap_or((80, 24))
}

/// Columns and rows. Some terminals report 0 if they do not know.
fn size(stream: &impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0)
        .then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_again_in_a_narrower_terminal() {
        let drawn = ["\x1b[1mtwelve chars\x1b[0m", "", "\x1b[2m表表\x1b[0m"].map(width);
        assert_eq!(drawn, [12, 0, 4]);
        for (columns, rows) in [(80, 3), (12, 3), (11, 4), (4, 5), (3, 7)] {
            assert_eq!(rows_of(&drawn, columns), rows, "{columns}");
        }
    }

    #[test]
    fn a_line_fits_and_has_no_control_characters() {
        for (text, columns, expected) in [
            ("within ext4 /data", 80, "within ext4 /data"),
            ("within ext4 /data", 6, "within"),
            ("表表", 3, "表"),
            ("表a", 1, ""),
            ("/a\x1b[2J\n", 80, "/a\u{fffd}[2J\u{fffd}"),
        ] {
            assert_eq!(truncated(text, columns), expected, "{text:?}");
        }
    }
}
