//! The table of one case.

use std::fmt::Write;

use lab::environment::Environment;
use lab::page_cache::state::Proof;
use lab::stats::{median, quantile};
use lab::words;

use super::outcome::{Report, Row, Sample};

/// Columns of the screen.
const WIDTH: usize = 100;

/// The table with its title and the machine.
pub(crate) fn render(report: &Report) -> String {
    let mut out = String::new();
    for line in title(report) {
        out.push_str(&line);
        out.push('\n');
    }
    let name_width =
        report.rows.iter().map(|row| row.copier.name.chars().count()).max().unwrap_or(0).max(6);
    let heading = format!(
        "{:<name_width$}  {:>9}  {:>5}  {:<14}  {:>6}  {:>8}  {:>8}",
        "copier", "median ms", "x cp", "95 %", "IQR", "user ms", "sys ms"
    );
    out.push_str(&heading);
    out.push_str("  note\n");
    for row in &report.rows {
        let cells = cells(row, report);
        let line = format!("{:<name_width$}  {cells}", row.copier.name);
        // Further lines of notes are aligned with their column.
        let indent = heading.chars().count() + 2;
        let mut notes = wrapped(&notes(row, report), WIDTH - indent).into_iter();
        let first = notes.next().unwrap_or_default();
        let _ = writeln!(out, "{}", format!("{line}  {first}").trim_end());
        for note in notes {
            let _ = writeln!(out, "{:indent$}{note}", "");
        }
    }
    out
}

fn title(report: &Report) -> Vec<String> {
    let Report { case, place, files, bytes, rounds, environment, .. } = report;
    let options = case.job.cp_options().join(" ");
    let counted = words::grouped(&files.to_string());
    vec![
        format!("{}: {} ({place})", case.name, ["cp", &options].join(" ").trim()),
        format!(
            "{}; here {counted} {}, {}, {}, {rounds} rounds, seed {}",
            case.about,
            if *files == 1 { "file" } else { "files" },
            words::bytes(*bytes),
            case.state.name(),
            environment.seed
        ),
        machine(environment),
    ]
}

/// `AMD EPYC, 2 CPUs, 23 GiB, Linux 6.18.5, virtual`
fn machine(environment: &Environment) -> String {
    let kernel: Vec<&str> = environment.kernel.split(' ').take(2).collect();
    let mut line = format!(
        "{}, {} CPUs, {}, {}",
        environment.cpu_model.as_deref().unwrap_or(&environment.machine),
        environment.cpu_count,
        words::bytes(environment.memory_bytes),
        kernel.join(" ")
    );
    if environment.virtual_machine {
        line.push_str(", virtual");
    }
    line
}

fn cells(row: &Row, report: &Report) -> String {
    let of = |field: fn(&Sample) -> u64| -> Vec<f64> {
        row.counted().map(|sample| field(sample) as f64 / 1e6).collect()
    };
    let elapsed = of(|sample| sample.elapsed_ns);
    let shown = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
    let base = report.base();
    let (ratio, interval) = match row.ratio_to(base) {
        _ if row.copier.is_cp() => ("1.00".to_owned(), String::new()),
        Some(ratio) => (
            format!("{:.2}", ratio.estimate),
            format!("{} to {}", shown_end(ratio.interval.low), shown_end(ratio.interval.high)),
        ),
        None => ("-".to_owned(), String::new()),
    };
    format!(
        "{:>9}  {ratio:>5}  {interval:<14}  {:>6}  {:>8}  {:>8}",
        shown(median(&elapsed)),
        spread(&elapsed).map_or("-".to_owned(), |share| format!("{share:.0} %")),
        shown(median(&of(|sample| sample.user_ns))),
        shown(median(&of(|sample| sample.system_ns))),
    )
}

/// An end of an interval. With few rounds it can be too large for the column.
fn shown_end(ratio: f64) -> String {
    if ratio < 99.995 { format!("{ratio:.2}") } else { "100+".to_owned() }
}

/// The distance between the quartiles, in percent of the median.
fn spread(values: &[f64]) -> Option<f64> {
    let distance = quantile(values, 0.75)? - quantile(values, 0.25)?;
    Some(100.0 * distance / median(values)?)
}

fn notes(row: &Row, report: &Report) -> String {
    let mut notes = Vec::new();
    if let Some(why) = &row.failed {
        notes.push(format!("FAILED: {why}"));
    }
    if let Some(why) = &row.wrong {
        notes.push(format!("WRONG COPY: {why}"));
    }
    if !row.lost.is_empty() {
        notes.push(format!("loses {}", words::listed(&row.lost)));
    }
    if let Some(why) = &row.missed {
        let all = row.samples.iter().filter(|sample| sample.round > 0).count();
        let (counted, state) = (row.counted().count(), report.case.state.name());
        if counted < all {
            notes.push(format!("{counted} of {all} runs {state}, others left out: {why}"));
        }
    }
    if row.counted().any(|sample| sample.state == Proof::Unverified) {
        notes.push(format!("{} unverified", report.case.state.name()));
    }
    if !row.note.is_empty() {
        notes.push(row.note.clone());
    }
    notes.join("; ")
}

/// `text` in lines of at most `width` characters, broken at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use lab::environment::FileSystem;
    use lab::page_cache::prover::{DropsBy, Prover};

    use super::super::cases::by_name;
    use super::super::copiers::Copier;
    use super::*;

    fn environment() -> Environment {
        let prover = Prover {
            counts_pages: true,
            counts_pages_note: String::new(),
            drops_pages: true,
            drops_by: DropsBy::PosixFadvise,
            counts_device_reads: true,
        };
        let here = std::path::Path::new(".");
        Environment {
            kernel: "Linux 6.18.5 #1 SMP".to_owned(),
            machine: "x86_64".to_owned(),
            cpu_model: Some("Processor".to_owned()),
            cpu_count: 2,
            memory_bytes: 4 << 30,
            virtual_machine: true,
            src: FileSystem::default(),
            dst: FileSystem::default(),
            ..Environment::look(here, here, prover, 9, None)
        }
    }

    fn row(copier: &Copier, times_ms: &[u64]) -> Row {
        let mut row = Row::new(copier, String::new());
        for (round, ms) in (0..).zip(times_ms) {
            row.samples.push(Sample {
                round,
                order_in_round: 1,
                elapsed_ns: ms * 1_000_000,
                user_ns: 1_500_000,
                system_ns: 20_000_000,
                state: Proof::Warm,
            });
        }
        row
    }

    fn report(rows: Vec<Row>) -> Report {
        Report {
            case: by_name("tree").expect("a case"),
            place: "ext4".to_owned(),
            files: 15_000,
            bytes: 270 << 20,
            rounds: 3,
            rows,
            environment: environment(),
        }
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The first run warms up. In each round one takes half the time of the other.
        let cp = row(&Copier::cp("cp".into()), &[7000, 100, 200, 400]);
        let ours = row(&Copier::haulage("haulage", "h".into()), &[9, 50, 100, 200]);
        assert_eq!(
            render(&report(vec![cp, ours])),
            "\
tree: cp -a (ext4)
15,000 files in 1,000 directories, 270 MB; here 15,000 files, 270 MiB, warm, 3 rounds, seed 9
Processor, 2 CPUs, 4 GiB, Linux 6.18.5, virtual
copier   median ms   x cp  95 %               IQR   user ms    sys ms  note
cp           200.0   1.00                    75 %       1.5      20.0
haulage      100.0   0.50  0.50 to 0.50      75 %       1.5      20.0
"
        );
    }

    #[test]
    fn what_went_wrong_is_told_and_not_counted() {
        let cp = row(&Copier::cp("cp".into()), &[100, 100, 100, 100]);
        let mut ours = row(&Copier::haulage("haulage", "h".into()), &[100, 50, 9999, 50]);
        ours.samples[2].state = Proof::NotReached;
        ours.missed = Some("a device had to read 5 MiB".to_owned());
        ours.lost = vec!["modes", "times"];
        let mut dead = Row::new(&Copier::haulage("base", "h".into()), String::new());
        dead.failed = Some("exit status: 1: no".to_owned());
        let mut report = report(vec![cp, ours, dead]);
        let text = render(&report);
        for expected in ["  50.0   0.50", "loses modes and times; 2 of 3", "FAILED: exit", " -  "] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(!report.ours_is_right());
        report.rows.pop();
        assert!(!report.ours_is_right(), "cp keeps modes and times");
        report.rows[0].lost = vec!["modes", "times"];
        assert!(report.ours_is_right());
        report.rows[1].wrong = Some("other bytes".to_owned());
        assert!(!report.ours_is_right());
    }

    #[test]
    fn ends_of_intervals_keep_to_their_column() {
        assert_eq!(shown_end(0.504), "0.50");
        assert_eq!(shown_end(79_816.93), "100+");
    }

    #[test]
    fn long_notes_are_broken() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert!(wrapped("", 7).is_empty());
    }
}
