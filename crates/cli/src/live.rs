//! A few lines at the bottom of a terminal that are drawn anew while something is measured: between
//! runs and never during one, so that they take nothing from what is measured.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::SIGCONT;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::complaint::visible;

/// Lines on standard error; nothing where that is no terminal.
pub(crate) struct LiveLines {
    terminal: bool,
    /// Runs may come faster than eyes follow.
    redraw_after: Duration,
    /// The columns that each line on the screen takes.
    drawn: Vec<usize>,
    drawn_at: Option<Instant>,
    /// The process was stopped since, and what is above the cursor is somebody else's.
    came_back: Arc<AtomicBool>,
}

impl LiveLines {
    pub(crate) fn new(redraw_after: Duration) -> LiveLines {
        let terminal = std::io::stderr().is_terminal();
        let came_back = Arc::new(AtomicBool::new(false));
        if terminal {
            // Where that fails the lines are drawn over what a shell wrote meanwhile, and no harm is done.
            let _ = signal_hook::flag::register(SIGCONT, came_back.clone());
        }
        LiveLines { terminal, redraw_after, drawn: Vec::new(), drawn_at: None, came_back }
    }

    /// Whether there is a terminal.
    pub(crate) fn are_shown(&self) -> bool {
        self.terminal
    }

    /// Draws what `lines` makes for so many columns and rows, unless the last drawing was a moment ago.
    pub(crate) fn draw(&mut self, lines: impl FnOnce(usize, usize) -> Vec<String>) {
        if !self.terminal || self.drawn_at.is_some_and(|at| at.elapsed() < self.redraw_after) {
            return;
        }
        let (columns, rows) = size_or_usual(&std::io::stderr());
        let lines = lines(columns, rows);
        self.forget_what_is_gone();
        // Line by line over the old board: erasing it first would flicker, and terminals that keep
        // what is cleared would fill their memory with it.
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

    /// Takes the lines away: something else follows.
    pub(crate) fn clear(&mut self) {
        let (columns, _) = size_or_usual(&std::io::stderr());
        self.forget_what_is_gone();
        let rows = rows_of(&self.drawn, columns);
        put(&format!("{}{}", up(rows), blank(rows)));
        self.drawn.clear();
        self.drawn_at = None;
    }

    fn forget_what_is_gone(&mut self) {
        if self.came_back.swap(false, Ordering::Relaxed) {
            self.drawn.clear();
        }
    }
}

/// Rows that lines of these widths take in so many columns: whoever makes a terminal narrower has its lines
/// broken.
pub(crate) fn rows_of(widths: &[usize], columns: usize) -> usize {
    widths.iter().map(|width| width.div_ceil(columns).max(1)).sum()
}

/// The columns that `line` takes, whatever colours it has.
fn width(line: &str) -> usize {
    anstream::adapter::strip_str(line).map(UnicodeWidthStr::width).sum()
}

/// The beginning of `text` that fits into `columns`, without what a terminal would obey.
pub(crate) fn fitting(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    visible(text).chars().take_while(fits).collect()
}

fn put(text: &str) {
    // Lines that cannot be drawn are no reason to end a measurement. They hold control sequences even
    // where no colours are wanted, hence not anstream's stream.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

const ERASE_LINE_END: &str = "\x1b[K";

fn up(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A") }
}

/// Empties that many lines from the cursor on and returns to where it was.
fn blank(lines: usize) -> String {
    format!("{}{}", format!("{ERASE_LINE_END}\n").repeat(lines), up(lines))
}

/// Columns of the terminal that `stream` is.
pub(crate) fn columns(stream: &impl AsFd) -> Option<usize> {
    size(stream).map(|(columns, _)| columns)
}

/// Columns and rows of the terminal that `stream` is; those of old where it does not know.
pub(crate) fn size_or_usual(stream: &impl AsFd) -> (usize, usize) {
    size(stream).unwrap_or((80, 24))
}

/// Columns and rows. Some terminals say 0 for what they do not know.
fn size(stream: &impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0)
        .then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_found_again_in_a_narrower_terminal() {
        let drawn = ["\x1b[1mtwelve chars\x1b[0m", "", "\x1b[2m表表\x1b[0m"].map(width);
        assert_eq!(drawn, [12, 0, 4]);
        for (columns, rows) in [(80, 3), (12, 3), (11, 4), (4, 5), (3, 7)] {
            assert_eq!(rows_of(&drawn, columns), rows, "{columns}");
        }
    }

    #[test]
    fn a_line_fits_and_commands_nothing() {
        for (text, columns, expected) in [
            ("within ext4 /data", 80, "within ext4 /data"),
            ("within ext4 /data", 6, "within"),
            ("表表", 3, "表"),
            ("表a", 1, ""),
            ("/a\x1b[2J\n", 80, "/a\u{fffd}[2J\u{fffd}"),
        ] {
            assert_eq!(fitting(text, columns), expected, "{text:?}");
        }
    }
}
