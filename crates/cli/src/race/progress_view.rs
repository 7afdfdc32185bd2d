//! The progress of a race on a terminal. It is drawn between runs and never during one, so that it
//! does not disturb a measurement.

use std::time::Duration;

use anstyle::Style;
use lab::race::config::Progress;
use lab::search::candidate::Line;
use lab::words;

use crate::terminal::output::{BEST, BOLD, DIM};
use crate::terminal::text::{counted, stage_in_words};

/// The headline, the current run and the ranking, in lines for a terminal of so many rows.
pub(super) fn lines(headline: &str, progress: &Progress<'_>, rows: usize) -> Vec<(Style, String)> {
    let mut lines =
        vec![(BOLD, format!("haulage race: {headline}")), (Style::new(), current_run(progress))];
    // The lines above, one below, and the line of the cursor.
    let room = rows.saturating_sub(4).max(1);
    let best = progress.ranking.iter().find(|line| !line.floor).map(|line| &line.variant);
    let shown = match progress.ranking.len() {
        all if all <= room => all,
        _ => room - 1,
    };
    for line in &progress.ranking[..shown] {
        let style = match line {
            line if Some(&line.variant) == best => BEST,
            line if line.running => Style::new(),
            _ => DIM,
        };
        lines.push((style, state_of(line)));
    }
    if shown < progress.ranking.len() {
        lines.push((DIM, format!("  and {} more", progress.ranking.len() - shown)));
    }
    lines
}

fn current_run(progress: &Progress<'_>) -> String {
    let stage = stage_in_words(progress.stage, progress.round);
    let left = match progress.left {
        Some(left) if left < Duration::from_secs(100_000) => {
            format!("about {} s left", left.as_secs_f64().ceil())
        }
        _ => format!("{:.0} s so far", progress.elapsed.as_secs_f64()),
    };
    format!("{stage}, {left}: {}", progress.variant)
}

fn state_of(line: &Line) -> String {
    let rate = line.bytes as f64 * 1e3 / line.median_ns.max(1.0);
    let mark = if line.floor { " (floor)" } else { "" };
    let out = if line.running { "" } else { "  out" };
    let name = format!("{}{mark}", line.variant);
    // Elimination rounds copy different lengths, so that only their rates can be compared.
    let (time, runs) = match line.in_final {
        true => (words::nanoseconds(line.median_ns), counted(line.runs, "run")),
        false => (String::new(), counted(line.runs, "round")),
    };
    let rate = words::grouped(&format!("{rate:.0}"));
    format!("  {name:<30} {rate:>7} MB/s {time:>9} {runs:>8}{out}")
}
