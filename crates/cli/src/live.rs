//! A few lines at the bottom of a terminal that are drawn anew while something is measured: between
//! runs and never during one, so that they take nothing from what is measured.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Lines on standard error; nothing where that is no terminal.
pub(crate) struct LiveLines {
    terminal: bool,
    /// Runs may come faster than eyes follow.
    redraw_after: Duration,
    lines_drawn: usize,
    drawn_at: Option<Instant>,
}

impl LiveLines {
    pub(crate) fn new(redraw_after: Duration) -> LiveLines {
        let terminal = std::io::stderr().is_terminal();
        LiveLines { terminal, redraw_after, lines_drawn: 0, drawn_at: None }
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
        let (columns, rows) = size(&std::io::stderr()).unwrap_or((80, 24));
        let lines = lines(columns, rows);
        // Line by line over the old board: erasing it first would flicker, and terminals that keep
        // what is cleared would fill their memory with it.
        let mut text = up(self.lines_drawn);
        for line in &lines {
            text.push_str(line);
            text.push_str(ERASE_LINE_END);
            text.push('\n');
        }
        let left_over = self.lines_drawn.saturating_sub(lines.len());
        text.push_str(&blank(left_over));
        put(&text);
        self.lines_drawn = lines.len();
        self.drawn_at = Some(Instant::now());
    }

    /// Takes the lines away: something else follows.
    pub(crate) fn clear(&mut self) {
        put(&format!("{}{}", up(self.lines_drawn), blank(self.lines_drawn)));
        self.lines_drawn = 0;
        self.drawn_at = None;
    }
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

/// Columns and rows. Some terminals say 0 for what they do not know.
fn size(stream: &impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0)
        .then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}
