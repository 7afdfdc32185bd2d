//! How far an experiment is, on standard error: one line that is drawn anew on a terminal, and a line
//! now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use lab::conduct::Progress;
use lab::words;

/// Between two drawings: short sessions come faster than eyes follow.
const REDRAW_AFTER: Duration = Duration::from_millis(100);

/// Between two lines where standard error is no terminal.
const LINE_AFTER: Duration = Duration::from_secs(10);

/// The line.
pub(super) struct Line {
    command: &'static str,
    experiment: String,
    terminal: bool,
    drawn_at: Option<Instant>,
}

impl Line {
    pub(super) fn new(command: &'static str, experiment: &str) -> Line {
        let terminal = std::io::stderr().is_terminal();
        Line { command, experiment: experiment.to_owned(), terminal, drawn_at: None }
    }

    /// Called between sessions and never while something is timed.
    pub(super) fn draw(&mut self, progress: &Progress<'_>) {
        let after = if self.terminal { REDRAW_AFTER } else { LINE_AFTER };
        if self.drawn_at.is_some_and(|at| at.elapsed() < after) {
            return;
        }
        let text = self.words(progress);
        self.say_all(&text);
    }

    /// Says what goes on when nothing is measured.
    pub(super) fn say(&mut self, words: &str) {
        let text = format!("{}: {words}", self.experiment);
        self.say_all(&text);
    }

    fn say_all(&mut self, text: &str) {
        self.drawn_at = Some(Instant::now());
        // A line that cannot be shown is no reason to end an experiment.
        let _ = if self.terminal {
            let size = rustix::termios::tcgetwinsize(std::io::stderr());
            let columns = size.map_or(80, |size| usize::from(size.ws_col)).max(20);
            let text: String = text.chars().take(columns - 1).collect();
            write!(std::io::stderr(), "\r{text}\x1b[K")
        } else {
            writeln!(std::io::stderr(), "haulage {}: {text}", self.command)
        };
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if self.terminal && self.drawn_at.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn words(&self, progress: &Progress<'_>) -> String {
        let seconds = |time: Duration| words::duration(time.as_secs_f64());
        let left = match progress.left {
            Some(left) => format!("at most {} left", seconds(left)),
            None => format!("{} so far", seconds(progress.elapsed)),
        };
        format!(
            "{}: {left}; {} of {} cells done, {} samples; now {}",
            self.experiment,
            progress.ended,
            progress.cells,
            words::grouped(&progress.samples.to_string()),
            progress.cell.id()
        )
    }
}
