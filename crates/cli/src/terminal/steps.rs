//! The progress of a command in a line on standard error: redrawn on a terminal, and otherwise, where a
//! command takes long, another line every few seconds.

use std::io::Write;
use std::time::{Duration, Instant};

use anstyle::Style;
use lab::words;

use super::live_lines::{LINE_AFTER, LiveLines};

/// The time left is told after so much time, when it is known well enough.
const TELL_LEFT_AFTER: Duration = Duration::from_secs(2);

pub(crate) struct Steps {
    heading: String,
    live: LiveLines,
    started: Instant,
    /// When the last line was written that stays, where any are.
    printed_at: Option<Option<Instant>>,
}

impl Steps {
    /// The steps of `command`, on a terminal only.
    pub(crate) fn new(command: &str) -> Steps {
        let heading = format!("haulage {command}: ");
        Steps { heading, live: LiveLines::new(), started: Instant::now(), printed_at: None }
    }

    /// These steps, with lines that stay where standard error is no terminal.
    pub(crate) fn with_lines(self) -> Steps {
        Steps { printed_at: Some(None), ..self }
    }

    /// Shows a step of unknown length.
    pub(crate) fn show(&mut self, what: &str) {
        self.draw(what);
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
        self.draw(&format!("{what} {} of {of}{left}", done + 1));
    }

    fn draw(&mut self, what: &str) {
        let line = format!("{}{what}", self.heading);
        let is_due = |at: &Option<Instant>| at.is_none_or(|at| at.elapsed() >= LINE_AFTER);
        if self.live.are_shown() {
            self.live.draw(|_| vec![(Style::new(), line)]);
        } else if self.printed_at.as_ref().is_some_and(is_due) {
            // A command does not fail because a line cannot be written.
            let _ = writeln!(std::io::stderr(), "{line}");
            self.printed_at = Some(Some(Instant::now()));
        }
    }

    /// Erases the line.
    pub(crate) fn clear(&mut self) {
        self.live.clear();
    }
}
