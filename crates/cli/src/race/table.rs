//! The table and the sentence at the end of a race.

use anstyle::{AnsiColor, Style};
use lab::page_cache::state::Proof;
use lab::race::report::Report;
use lab::race::summary::{Standing, Summary};
use lab::search::winner::Verdict;
use lab::words;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BEST: Style = AnsiColor::Green.on_default().bold();

/// One column: its head, how its cell is made, and how readily it is given up where the terminal is
/// narrow (0: never).
struct Column {
    head: &'static str,
    cell: fn(&Summary) -> String,
    expendable: u8,
}

/// The parts of the table: a title, and who belongs there by standing and by sharing extents.
const SECTIONS: &[(&str, Standing, bool)] = &[
    ("", Standing::Raced, false),
    ("sharing extents with the source, which moves no bytes:", Standing::Raced, true),
    ("in the elimination rounds only, on the start of the source:", Standing::Eliminated, false),
    ("in the elimination rounds only, sharing extents:", Standing::Eliminated, true),
    ("floors to compare with, which copy no file:", Standing::Floor, false),
];

/// The columns after the variant, which is always shown.
const COLUMNS: &[Column] = &[
    Column { head: "median", cell: |s| ns(s.elapsed_ns_median), expendable: 0 },
    Column { head: "MB/s", cell: rate, expendable: 0 },
    Column { head: "x best (95 %)", cell: ratio, expendable: 0 },
    Column { head: "runs", cell: |s| s.runs.to_string(), expendable: 1 },
    Column { head: "user", cell: |s| ns(s.user_ns_median), expendable: 4 },
    Column { head: "system", cell: |s| ns(s.system_ns_median), expendable: 5 },
    Column { head: "faults", cell: |s| count(s.faults_median), expendable: 2 },
    Column { head: "in cache", cell: resident, expendable: 3 },
];

/// The whole answer as text with colours, for `columns` columns.
pub(super) fn render(report: &Report, made_source: bool, columns: usize) -> String {
    let mut out = heading(report, made_source, columns);
    let shown = columns_that_fit(report, columns);
    let widths = widths(report, &shown);
    out.push_str(&styled(BOLD, &head_line(&shown, &widths)));
    for (title, standing, shares_extents) in SECTIONS {
        let belongs =
            |row: &&Summary| row.standing == *standing && row.shares_extents == *shares_extents;
        let rows: Vec<&Summary> = report.summary.iter().filter(belongs).collect();
        if !rows.is_empty() && !title.is_empty() {
            out.push_str(&styled(DIM, title));
        }
        for row in rows {
            out.push_str(&styled(style_of(row, report), &line(row, &shown, &widths)));
        }
    }
    out.push_str(&remarks(report, columns));
    out.push('\n');
    out.push_str(&styled(BOLD, &wrapped(&sentence(&report.verdict.sentence), columns, "")));
    if let Some(verdict) = &report.verdict_moving_bytes {
        let text = format!("Of those that move bytes: {}.", verdict.sentence);
        out.push_str(&styled(BOLD, &wrapped(&text, columns, "")));
    }
    out
}

fn style_of(row: &Summary, report: &Report) -> Style {
    let leads = |verdict: &Verdict| verdict.contenders.contains(&row.variant);
    match row.standing {
        Standing::Raced
            if leads(&report.verdict)
                || report.verdict_moving_bytes.as_ref().is_some_and(leads) =>
        {
            BEST
        }
        Standing::Raced => Style::new(),
        _ => DIM,
    }
}

fn heading(report: &Report, made_source: bool, columns: usize) -> String {
    let environment = &report.environment;
    let fs = |file_system: &lab::environment::FileSystem| {
        file_system.fs_type.clone().unwrap_or_else(|| "unknown file system".to_owned())
    };
    let src = match made_source {
        true => "random bytes".to_owned(),
        false => format!("'{}'", environment.src.path),
    };
    let files = match report.source_files {
        1 => String::new(),
        files => format!(" in {} files", words::grouped(&files.to_string())),
    };
    let race = format!(
        "{}{files} of {src} ({}) to '{}' ({}); {}; {} in {}; seed {}",
        words::bytes(report.raced_bytes),
        fs(&environment.src),
        environment.dst.path,
        fs(&environment.dst),
        state(report),
        plural(report.rounds, "round"),
        words::nanoseconds(report.elapsed_ns as f64),
        environment.seed,
    );
    let cpu = environment.cpu_model.as_deref().unwrap_or("unknown processor");
    let release = environment.kernel.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let machine = format!("{release}; {cpu}, {} processors", environment.cpu_count);
    format!("{}{}\n", styled(BOLD, &wrapped(&race, columns, "")), styled(DIM, &machine))
}

fn state(report: &Report) -> String {
    let wanted = report.state_wanted.name();
    let proofs =
        report.samples.iter().filter(|sample| sample.measured.counted && sample.measured.verified);
    let mut proofs = proofs.map(|sample| sample.measured.state_proved).peekable();
    if report.samples.is_empty() {
        return wanted.to_owned();
    }
    if proofs.peek().is_none() {
        return format!("{wanted} not reached");
    }
    if proofs.any(|proof| proof == Proof::Unverified) {
        format!("{wanted}, unverified")
    } else {
        format!("{wanted}, proved")
    }
}

/// The indices of the columns for which there is room; the most expendable go first.
fn columns_that_fit(report: &Report, columns: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..COLUMNS.len()).collect();
    loop {
        let width: usize = widths(report, &shown).iter().map(|width| width + 2).sum();
        let expendable = shown
            .iter()
            .copied()
            .filter(|&index| COLUMNS[index].expendable > 0)
            .min_by_key(|&index| COLUMNS[index].expendable);
        match expendable {
            Some(index) if width - 2 > columns => shown.retain(|&kept| kept != index),
            _ => return shown,
        }
    }
}

/// The width of the variant's column, and those of the columns shown.
fn widths(report: &Report, shown: &[usize]) -> Vec<usize> {
    let rows = || report.summary.iter().filter(|row| row.standing != Standing::Refused);
    let widest = |cell: &dyn Fn(&Summary) -> String, head: &str| {
        rows().map(|row| cell(row).chars().count()).chain([head.len()]).max().unwrap_or(0)
    };
    let variant = widest(&|row| row.variant.clone(), "variant");
    let others = shown.iter().map(|&index| widest(&COLUMNS[index].cell, COLUMNS[index].head));
    std::iter::once(variant).chain(others).collect()
}

fn head_line(shown: &[usize], widths: &[usize]) -> String {
    let mut line = format!("{:<width$}", "variant", width = widths[0]);
    for (&index, width) in shown.iter().zip(&widths[1..]) {
        line.push_str(&format!("  {:>width$}", COLUMNS[index].head));
    }
    line
}

fn line(row: &Summary, shown: &[usize], widths: &[usize]) -> String {
    let mut line = format!("{:<width$}", row.variant, width = widths[0]);
    for (&index, width) in shown.iter().zip(&widths[1..]) {
        line.push_str(&format!("  {:>width$}", (COLUMNS[index].cell)(row)));
    }
    line
}

/// Who could not take part and why, and what else there is to know.
fn remarks(report: &Report, columns: usize) -> String {
    let mut out = String::new();
    let mut remark = |text: &str| out.push_str(&wrapped(text, columns, "  "));
    for row in &report.summary {
        match row.standing {
            Standing::Refused => {
                remark(&format!("not here: {} ({})", row.variant, row.reason));
            }
            Standing::Eliminated if row.reason.starts_with("left out") => {
                remark(&format!("{} {}", row.variant, row.reason));
            }
            _ => {}
        }
    }
    for note in &report.notes {
        remark(&format!("note: {note}"));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

fn sentence(text: &str) -> String {
    format!("{text}.")
}

fn styled(style: Style, text: &str) -> String {
    let text = text.trim_end();
    format!("{style}{text}{style:#}\n")
}

/// `text` broken between words into lines of at most `columns`, all but the first indented.
fn wrapped(text: &str, columns: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let full = line.chars().count() + 1 + word.chars().count() > columns;
        if full && !line.trim().is_empty() {
            out.push_str(&line);
            out.push('\n');
            line = indent.to_owned();
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out + &line + "\n"
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn ns(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), words::nanoseconds)
}

fn count(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| words::grouped(&format!("{value:.0}")))
}

fn rate(row: &Summary) -> String {
    match row.megabytes_per_second {
        Some(rate) if rate < 10.0 => words::three_digits(rate),
        rate => count(rate),
    }
}

fn resident(row: &Summary) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a number of bytes
    row.resident_bytes_after_median.map_or_else(|| "-".to_owned(), |b| words::bytes(b as u64))
}

fn ratio(row: &Summary) -> String {
    let digits = words::three_digits;
    match (row.ratio_to_best, row.ratio_low, row.ratio_high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("{} ({}-{})", digits(ratio), digits(low), digits(high))
        }
        (Some(ratio), ..) => digits(ratio),
        _ => "-".to_owned(),
    }
}
