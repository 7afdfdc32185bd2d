//! The progress of a command that measures nothing: on a terminal a line with the step that is being
//! done, and how long the others take.

use std::time::{Duration, Instant};

use anstyle::Style;
use lab::words;

use super::live_lines::LiveLines;

/// Short steps end more often than an eye can follow.
const REDRAW_AFTER: Duration = Duration::from_millis(100);

/// The time left is told after so much time, when it is known well enough.
const TELL_LEFT_AFTER: Duration = Duration::from_secs(2);

pub(crate) struct Steps {
    command: &'static str,
    live: LiveLines,
    started: Instant,
}

impl Steps {
    pub(crate) fn new(command: &'static str) -> Steps {
        Steps { command, live: LiveLines::new(REDRAW_AFTER), started: Instant::now() }
    }

    /// Shows a step of unknown length.
    pub(crate) fn show(&mut self, what: &str) {
        let text = format!("haulage {}: {what}", self.command);
        self.live.draw(|_| vec![(Style::new(), text)]);
        self.started = Instant::now();
    }

    /// Shows the step after `done` of `of` steps of about the same length, `what`.
    pub(crate) fn show_nth(&mut self, what: &str, done: usize, of: usize) {
        let elapsed = self.started.elapsed();
        let left = match done {
            1.. if elapsed >= TELL_LEFT_AFTER => {
                let left = elapsed.as_secs_f64() / done as f64 * (of - done) as f64;
                format!(", about {} left", words::duration(left))
            }
            _ => String::new(),
        };
        let text = format!("haulage {}: {what} {} of {of}{left}", self.command, done + 1);
        self.live.draw(|_| vec![(Style::new(), text)]);
    }

    /// Erases the line.
    pub(crate) fn clear(&mut self) {
        self.live.clear();
    }
}
