//! The progress of an experiment on standard error: one line that is redrawn on a terminal, and
//! otherwise a line every few seconds.

use std::io::Write;
use std::time::{Duration, Instant};

use anstyle::Style;
use lab::conduct::Progress;
use lab::words;

use crate::terminal::live_lines::LiveLines;

/// Short sessions end more often than an eye can follow.
const REDRAW_AFTER: Duration = Duration::from_millis(100);

/// The time between two lines if standard error is no terminal.
const LINE_AFTER: Duration = Duration::from_secs(10);

pub(super) struct ProgressView {
    command: &'static str,
    experiment: String,
    live: LiveLines,
    printed_at: Option<Instant>,
}

impl ProgressView {
    pub(super) fn new(command: &'static str, experiment: &str) -> ProgressView {
        let live = LiveLines::new(REDRAW_AFTER);
        ProgressView { command, experiment: experiment.to_owned(), live, printed_at: None }
    }

    /// Called between sessions and never while something is timed.
    pub(super) fn draw(&mut self, progress: &Progress<'_>) {
        self.show(|| in_words(progress));
    }

    /// Shows what is done while nothing is measured.
    pub(super) fn draw_text(&mut self, text: &str) {
        self.show(|| text.to_owned());
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        let text = || format!("{}: {}", self.experiment, text());
        if self.live.are_shown() {
            self.live.draw(|_| vec![(Style::new(), text())]);
        } else if self.printed_at.is_none_or(|at| at.elapsed() >= LINE_AFTER) {
            // An experiment does not fail because a line cannot be written.
            let _ = writeln!(std::io::stderr(), "haulage {}: {}", self.command, text());
            self.printed_at = Some(Instant::now());
        }
    }

    /// Erases the line.
    pub(super) fn clear(&mut self) {
        self.live.clear();
    }
}

fn in_words(progress: &Progress<'_>) -> String {
    let seconds = |time: Duration| words::duration(time.as_secs_f64());
    let left = match progress.left {
        Some(left) => format!("at most {} left", seconds(left)),
        None => format!("{} so far", seconds(progress.elapsed)),
    };
    format!(
        "{left}; {} of {} cells done, {} samples; now {}",
        progress.ended,
        progress.cells,
        words::grouped(&progress.samples.to_string()),
        progress.cell.id()
    )
}
