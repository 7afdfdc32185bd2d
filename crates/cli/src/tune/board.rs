//! What is shown while it is measured: a few living lines on a terminal, and a line for each situation
//! where there is none.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use engines::profile::FileSystems;
use lab::sample::Stage;
use lab::tune::record::Finding;
use lab::tune::{Event, Progress};
use lab::words;

use crate::live::{LiveLines, fitting};

/// Ten times a second.
const REDRAW_AFTER: Duration = Duration::from_millis(100);

/// Leaders that are shown.
const SHOWN: usize = 6;

/// The last findings that stay on the board.
const FOUND_SHOWN: usize = 4;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BEST: Style = AnsiColor::Green.on_default().bold();

pub(super) struct Board {
    headline: String,
    live: LiveLines,
    found: Vec<String>,
}

impl Board {
    pub(super) fn new(file_systems: &FileSystems) -> Board {
        let headline = format!("haulage tune: {}", file_systems.in_words());
        Board { headline, live: LiveLines::new(REDRAW_AFTER), found: Vec::new() }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(progress) => {
                let (headline, found) = (&self.headline, &self.found);
                self.live.draw(|columns, rows| lines(headline, found, progress, columns, rows));
            }
            Event::Found { finding, number, of } => {
                let line = found(finding);
                if self.live.are_shown() {
                    self.found.push(line);
                } else {
                    eprintln!("haulage tune: {number} of {of}: {line}");
                }
            }
        }
    }

    /// Takes the board away: the table follows.
    pub(super) fn clear(&mut self) {
        self.live.clear();
    }
}

fn found(finding: &Finding) -> String {
    match finding.chosen() {
        Some(way) => format!("{}: {}, {}", finding.words, way.name, rate(way.megabytes_per_second)),
        None => format!("{}: not measured: {}", finding.words, finding.why_not),
    }
}

fn rate(megabytes_per_second: Option<f64>) -> String {
    let rate = megabytes_per_second.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    format!("{} MB/s", words::grouped(&rate))
}

fn lines(
    headline: &str,
    found: &[String],
    progress: &Progress<'_>,
    columns: usize,
    rows: usize,
) -> Vec<String> {
    let colours = anstream::stderr().current_choice() != anstream::ColorChoice::Never;
    let styled = |style: Style, text: &str| {
        let text = fitting(text, columns.saturating_sub(1));
        if colours { format!("{style}{text}{style:#}") } else { text }
    };
    let mut lines = vec![styled(BOLD, headline)];
    // The four lines that are always there, and the line of the cursor.
    let room = rows.saturating_sub(5);
    let leaders = progress.leaders.len().min(SHOWN).min(room.max(1));
    let shown = found.len().min(FOUND_SHOWN).min(room.saturating_sub(leaders));
    for line in &found[found.len() - shown..] {
        lines.push(styled(DIM, &format!("  {line}")));
    }
    let left = progress.left.as_secs_f64().ceil();
    let (number, of) = (progress.number, progress.of);
    lines.push(styled(
        Style::new(),
        &format!("{number} of {of}, {left} s left: {}", progress.case.words()),
    ));
    let stage = match progress.stage {
        Stage::WarmUp => "warm-up".to_owned(),
        Stage::Elimination => format!("elimination round {}", progress.round),
        Stage::Final => format!("round {}", progress.round),
    };
    // The number goes back to the first then, and an answer may change.
    let stage = match progress.visit {
        0 | 1 => stage,
        visit => format!("{stage}, visit {visit}"),
    };
    lines.push(styled(DIM, &stage));
    for (place, (name, ns)) in progress.leaders.iter().take(leaders).enumerate() {
        let megabytes = progress.case.file_bytes as f64 * 1e3 / ns.max(1.0);
        let (rate, time) = (rate(Some(megabytes)), words::nanoseconds(*ns));
        let style = if place == 0 { BEST } else { Style::new() };
        lines.push(styled(style, &format!("  {name:<30} {rate:>12} {time:>9} a file")));
    }
    lines
}
