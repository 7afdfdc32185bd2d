//! The board that lives while a race runs. It is drawn between runs and never during one, so that it
//! takes nothing from what is measured.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use lab::race::candidate::Line;
use lab::race::config::Progress;
use lab::sample::Stage;
use lab::words;

use crate::live::{LiveLines, fitting};

/// Short runs come faster than eyes follow.
const REDRAW_AFTER: Duration = Duration::from_millis(80);

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BEST: Style = AnsiColor::Green.on_default().bold();

/// A few lines at the bottom of the terminal on standard error; nothing where it is none.
pub(super) struct Board {
    headline: String,
    live: LiveLines,
}

impl Board {
    pub(super) fn new(headline: String) -> Board {
        Board { headline, live: LiveLines::new(REDRAW_AFTER) }
    }

    pub(super) fn draw(&mut self, progress: &Progress<'_>) {
        let headline = &self.headline;
        self.live.draw(|columns, rows| lines(headline, progress, columns, rows));
    }

    /// Takes the board away: the table follows.
    pub(super) fn clear(&mut self) {
        self.live.clear();
    }
}

fn lines(headline: &str, progress: &Progress<'_>, columns: usize, rows: usize) -> Vec<String> {
    let colours = anstream::stderr().current_choice() != anstream::ColorChoice::Never;
    let styled = |style: Style, text: &str| {
        let text = fitting(text, columns.saturating_sub(1));
        if colours { format!("{style}{text}{style:#}") } else { text }
    };
    let mut lines = vec![
        styled(BOLD, &format!("haulage race: {headline}")),
        styled(Style::new(), &now_line(progress)),
    ];
    // The lines above, one below, and the line of the cursor.
    let room = rows.saturating_sub(4).max(1);
    let best = progress.standings.iter().find(|line| !line.floor).map(|line| &line.variant);
    let shown = match progress.standings.len() {
        all if all <= room => all,
        _ => room - 1,
    };
    for line in &progress.standings[..shown] {
        let style = match line {
            line if Some(&line.variant) == best => BEST,
            line if line.running => Style::new(),
            _ => DIM,
        };
        lines.push(styled(style, &standing(line)));
    }
    if shown < progress.standings.len() {
        let more = progress.standings.len() - shown;
        lines.push(styled(DIM, &format!("  and {more} more")));
    }
    lines
}

fn now_line(progress: &Progress<'_>) -> String {
    let stage = match progress.stage {
        Stage::Elimination => format!("elimination round {}", progress.round),
        Stage::WarmUp => "warm-up".to_owned(),
        Stage::Final => format!("round {}", progress.round),
    };
    let left = match progress.left {
        Some(left) if left < Duration::from_secs(100_000) => {
            format!("about {} s left", left.as_secs_f64().ceil())
        }
        _ => format!("{:.0} s so far", progress.elapsed.as_secs_f64()),
    };
    format!("{stage}, {left}: {}", progress.variant)
}

fn standing(line: &Line) -> String {
    let rate = line.bytes as f64 * 1e3 / line.median_ns.max(1.0);
    let mark = if line.floor { " (floor)" } else { "" };
    let out = if line.running { "" } else { "  out" };
    let name = format!("{}{mark}", line.variant);
    // Elimination rounds copy several lengths, so that only rates can be compared.
    let time = if line.in_final { words::nanoseconds(line.median_ns) } else { String::new() };
    let runs = if line.runs == 1 { "1 run".to_owned() } else { format!("{} runs", line.runs) };
    let rate = words::grouped(&format!("{rate:.0}"));
    format!("  {name:<30} {rate:>7} MB/s {time:>9} {runs:>8}{out}")
}
