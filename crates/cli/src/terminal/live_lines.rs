//! A few lines at the bottom of a terminal that are redrawn during a measurement: between runs, never
//! during one, so that they do not disturb it.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstyle::Style;
use report::columns::visible;
use signal_hook::consts::SIGCONT;

use super::screen::{Screen, width_of};

/// The shortest time between two redraws. Short runs end more often than an eye can follow.
const REDRAW_AFTER: Duration = Duration::from_millis(100);

/// Where standard error is no terminal, the time between two lines that tell how far a command is.
pub(crate) const LINE_AFTER: Duration = Duration::from_secs(10);

/// Lines on standard error. Nothing is drawn if that is no terminal.
pub(crate) struct LiveLines {
    terminal: bool,
    screen: Screen,
    drawn_at: Option<Instant>,
    /// SIGCONT arrived since the last redraw: another process may have written to the terminal.
    resumed: Arc<AtomicBool>,
}

impl LiveLines {
    pub(crate) fn new() -> LiveLines {
        let terminal = std::io::stderr().is_terminal();
        let resumed = Arc::new(AtomicBool::new(false));
        if terminal {
            // If that fails, lines may overwrite what the shell wrote during a stop.
            let _ = signal_hook::flag::register(SIGCONT, resumed.clone());
        }
        LiveLines { terminal, screen: Screen::default(), drawn_at: None, resumed }
    }

    /// Whether standard error is a terminal.
    pub(crate) fn are_shown(&self) -> bool {
        self.terminal
    }

    /// Draws what `lines` returns for the terminal's number of rows, cut to its width. Does nothing if
    /// the last redraw was less than [`REDRAW_AFTER`] ago.
    pub(crate) fn draw(&mut self, lines: impl FnOnce(usize) -> Vec<(Style, String)>) {
        if !self.terminal || self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW_AFTER) {
            return;
        }
        let (columns, rows) = terminal_size(&std::io::stderr());
        let colours = anstream::stderr().current_choice() != anstream::ColorChoice::Never;
        let styled = |(style, text): (Style, String)| {
            let text = truncated(&text, columns.saturating_sub(1));
            if colours { format!("{style}{text}{style:#}") } else { text }
        };
        // The cursor stays below the lines, where messages begin.
        let lines: Vec<String> =
            lines(rows).into_iter().map(styled).chain([String::new()]).collect();
        self.forget_after_stop();
        let text = self.screen.draw(&lines, columns);
        // Not at the start of a line in which another process has written.
        put_stderr(text.trim_start_matches('\r').as_bytes());
        self.drawn_at = Some(Instant::now());
    }

    /// Erases the lines.
    pub(crate) fn clear(&mut self) {
        let (columns, _) = terminal_size(&std::io::stderr());
        self.forget_after_stop();
        put_stderr(self.screen.erase(columns).as_bytes());
        self.drawn_at = None;
    }

    fn forget_after_stop(&mut self) {
        if self.resumed.swap(false, Ordering::Relaxed) {
            self.screen.forget();
        }
    }
}

/// The start of `text` that fits into `columns`, without control characters.
fn truncated(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| {
        let wide = width_of(*c);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    visible(text).chars().take_while(fits).collect()
}

/// Writes to standard error. There is nowhere to report a failure. Not anstream's stream, which would remove the
/// control sequences where colours are off.
pub(crate) fn put_stderr(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}

/// Columns and rows of the terminal `stream`; 80 and 24 if they are unknown.
pub(crate) fn terminal_size(stream: &impl AsFd) -> (usize, usize) {
    size(stream).unwrap_or((80, 24))
}

/// Columns and rows. Some terminals report 0 if they do not know.
pub(super) fn size(stream: &impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0)
        .then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
