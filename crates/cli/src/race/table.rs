//! The result of a race as text: the table and the sentence.

use anstyle::Style;
use lab::in_order::gathered;
use lab::page_cache::state::Proof;
use lab::race::report::Report;
use lab::race::summary::{Summary, VariantStage};
use lab::search::winner::Verdict;
use lab::studies::sheet::Table;
use lab::words;

use crate::terminal::output::{BEST, BOLD, DIM, REFUSED, styled};
use crate::terminal::text::counted;
use report::columns::{lines, wrapped};

/// The head of a column, and its text in a row.
type Column = (&'static str, fn(&Summary) -> String);

/// The sections of the table: the title, and the stage and sharing of extents of its rows.
const SECTIONS: &[(&str, VariantStage, bool)] = &[
    ("", VariantStage::Raced, false),
    ("sharing extents with the source, which moves no bytes:", VariantStage::Raced, true),
    ("floors, which copy no file:", VariantStage::Floor, false),
];

const COLUMNS: &[Column] = &[
    ("variant", |s| s.variant.clone()),
    ("median", |s| shown(s.elapsed_ns_median, words::nanoseconds)),
    ("MB/s", rate),
    ("x best (95 %)", ratio),
    ("runs", |s| s.runs.to_string()),
    ("user", |s| shown(s.user_ns_median, words::nanoseconds)),
    ("system", |s| shown(s.system_ns_median, words::nanoseconds)),
    ("faults", |s| shown(s.faults_median, count)),
    ("in cache", |s| shown(s.resident_bytes_after_median, words::about_bytes)),
];

/// The whole result with styles, in lines of at most `columns` columns.
pub(super) fn render(report: &Report, made_source: bool, columns: usize) -> String {
    let mut out = heading(report, made_source, columns);
    let mut styles = Vec::new();
    let heads = COLUMNS.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut table = Table { title: String::new(), columns: heads, rows: Vec::new() };
    for (title, stage, shares_extents) in SECTIONS {
        let belongs = |row: &&Summary| row.stage == *stage && row.shares_extents == *shares_extents;
        let of_section: Vec<&Summary> = report.summary.iter().filter(belongs).collect();
        if !of_section.is_empty() && !title.is_empty() {
            styles.push(DIM);
            table.rows.push(vec![(*title).to_owned()]);
        }
        for row in of_section {
            styles.push(style_of(row, report));
            let mut cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(row)).collect();
            // A floor that was left out of the final was measured with less.
            if row.stage == VariantStage::Floor && row.bytes < report.raced_bytes {
                cells[0].push_str(&format!(" of {}", words::bytes(row.bytes)));
            }
            table.rows.push(cells);
        }
    }
    let mut lines = lines(&table, 1, |column| column == 0, columns);
    // The answer below the table is read first: the columns of further blocks are left out.
    let block = lines.iter().skip(1).position(|(row, _)| row.is_none());
    lines.truncate(block.map_or(usize::MAX, |rows| 1 + rows));
    for (row, line) in lines {
        out.push_str(&styled(row.map_or(BOLD, |row| styles[row]), &line));
    }
    out.push_str(&remarks(report, columns));
    out.push('\n');
    out.push_str(&styled(BOLD, &wrapped(&format!("{}.", report.verdict.sentence), columns, "")));
    if let Some(verdict) = &report.verdict_moving_bytes {
        let text = format!("Of the variants that move bytes: {}.", verdict.sentence);
        out.push_str(&styled(BOLD, &wrapped(&text, columns, "")));
    }
    out
}

fn style_of(row: &Summary, report: &Report) -> Style {
    let leads = |verdict: &Verdict| verdict.contenders.contains(&row.variant);
    match row.stage {
        VariantStage::Raced
            if leads(&report.verdict)
                || report.verdict_moving_bytes.as_ref().is_some_and(leads) =>
        {
            BEST
        }
        VariantStage::Raced => Style::new(),
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
        counted(report.rounds as usize, "round"),
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

/// The variants that ran in elimination rounds only. They have no rows: what they copied there is the
/// start of the source, so that their figures are no times of the race.
fn dropped(report: &Report, columns: usize) -> String {
    let mut text = String::new();
    for (shares_extents, title) in
        [(false, "dropped in the elimination rounds"), (true, "the same, sharing extents")]
    {
        let belongs = |row: &&Summary| {
            row.stage == VariantStage::Eliminated && row.shares_extents == shares_extents
        };
        let named = |row: &Summary| match row.ratio_to_best {
            Some(ratio) => format!("{} ({})", row.variant, words::three_digits(ratio)),
            None => row.variant.clone(),
        };
        let named: Vec<String> = report.summary.iter().filter(belongs).map(named).collect();
        if !named.is_empty() {
            let about = format!("{title} (x best there, on the start of the source): ");
            let line = wrapped(&format!("{about}{}", named.join(", ")), columns, "  ");
            text.push_str(&styled(DIM, &line));
        }
    }
    text
}

/// The variants that did not work or were left out, with the reasons, and the notes.
fn remarks(report: &Report, columns: usize) -> String {
    let mut out = dropped(report, columns);
    let mut remark = |style: Style, text: &str| {
        out.push_str(&styled(style, &wrapped(text, columns, "  ")));
    };
    let refused = report.summary.iter().filter(|row| row.stage == VariantStage::Refused);
    for (reason, variants) in gathered(refused, |row| row.reason.as_str()) {
        let variants: Vec<&str> = variants.iter().map(|row| row.variant.as_str()).collect();
        remark(REFUSED, &format!("does not work here: {} ({reason})", variants.join(", ")));
    }
    for row in &report.summary {
        if row.stage == VariantStage::Eliminated && row.reason.starts_with("left out") {
            remark(Style::new(), &format!("{} {}", row.variant, row.reason));
        }
    }
    for note in &report.notes {
        remark(Style::new(), &format!("note: {note}"));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

fn shown(value: Option<f64>, words: fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), words)
}

fn count(value: f64) -> String {
    words::grouped(&format!("{value:.0}"))
}

fn rate(row: &Summary) -> String {
    let few = |rate| if rate < 10.0 { words::three_digits(rate) } else { count(rate) };
    shown(row.megabytes_per_second, few)
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
