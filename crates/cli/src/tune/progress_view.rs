//! The progress of a search: a few lines that are redrawn on a terminal, and otherwise a line for each
//! situation, and one with the time left where a situation takes long.

use std::time::Instant;

use anstyle::Style;
use engines::profile::FileSystems;
use lab::tune::record::Finding;
use lab::tune::{Event, Progress};
use lab::words;

use crate::terminal::live_lines::{LINE_AFTER, LiveLines};
use crate::terminal::output::{BEST, BOLD, DIM};
use crate::terminal::text::stage_in_words;

/// The most leading candidates that are shown.
const LEADERS_MAX: usize = 6;

/// The most findings that are shown, the latest ones.
const FINDINGS_MAX: usize = 4;

pub(super) struct ProgressView {
    headline: String,
    live: LiveLines,
    findings: Vec<String>,
    printed_at: Instant,
}

impl ProgressView {
    pub(super) fn new(file_systems: &FileSystems) -> ProgressView {
        let headline = format!("haulage tune: {}", file_systems.in_words());
        let (live, findings) = (LiveLines::new(), Vec::new());
        ProgressView { headline, live, findings, printed_at: Instant::now() }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(progress) if self.live.are_shown() => {
                let (headline, findings) = (&self.headline, &self.findings);
                self.live.draw(|rows| lines(headline, findings, progress, rows));
            }
            Event::Run(progress) if self.printed_at.elapsed() >= LINE_AFTER => {
                eprintln!("haulage tune: {}", time_left(progress));
                self.printed_at = Instant::now();
            }
            Event::Run(_) => {}
            Event::Found { finding, number, of } => {
                let line = in_words(finding);
                if self.live.are_shown() {
                    self.findings.push(line);
                } else {
                    eprintln!("haulage tune: {number} of {of}: {line}");
                    self.printed_at = Instant::now();
                }
            }
        }
    }

    /// Erases the lines: the table follows.
    pub(super) fn clear(&mut self) {
        self.live.clear();
    }
}

fn in_words(finding: &Finding) -> String {
    match finding.chosen() {
        Some(result) => {
            format!("{}: {}, {}", finding.words, result.name, rate(result.megabytes_per_second))
        }
        None => format!("{}: not measured: {}", finding.words, finding.why_not),
    }
}

fn rate(megabytes_per_second: Option<f64>) -> String {
    let rate = megabytes_per_second.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    format!("{} MB/s", words::grouped(&rate))
}

fn time_left(progress: &Progress<'_>) -> String {
    let left = progress.left.as_secs_f64().ceil();
    format!("{} of {}, {left} s left: {}", progress.number, progress.of, progress.case.words())
}

fn lines(
    headline: &str,
    findings: &[String],
    progress: &Progress<'_>,
    rows: usize,
) -> Vec<(Style, String)> {
    let mut lines = vec![(BOLD, headline.to_owned())];
    // The four lines that are always there, and the line of the cursor.
    let room = rows.saturating_sub(5);
    let running = progress.race.ranking.iter().filter(|line| line.running);
    let leaders = running.clone().count().min(LEADERS_MAX).min(room.max(1));
    let shown = findings.len().min(FINDINGS_MAX).min(room.saturating_sub(leaders));
    for line in &findings[findings.len() - shown..] {
        lines.push((DIM, format!("  {line}")));
    }
    lines.push((Style::new(), time_left(progress)));
    let stage = stage_in_words(progress.race.stage, progress.race.round);
    // At a later visit the number starts again, and an answer may change.
    let stage = match progress.visit {
        0 | 1 => stage,
        visit => format!("{stage}, visit {visit}"),
    };
    lines.push((DIM, stage));
    for (place, line) in running.take(leaders).enumerate() {
        // Elimination rounds copy different lengths.
        let bytes_per_ns = line.bytes as f64 / line.median_ns.max(1.0);
        let time = words::nanoseconds(progress.case.file_bytes as f64 / bytes_per_ns);
        let (name, rate) = (&line.variant, rate(Some(bytes_per_ns * 1e3)));
        let style = if place == 0 { BEST } else { Style::new() };
        lines.push((style, format!("  {name:<30} {rate:>12} {time:>9} a file")));
    }
    lines
}
