//! The plan and the results of a search, as tables that fit 80 columns, and 60 with more lines.

use std::path::Path;
use std::time::Duration;

use engines::profile::FileSystems;
use lab::in_order::gathered;
use lab::tune::plan::Plan;
use lab::tune::record::{Finding, Loss, Record, VariantResult};
use lab::words;

use crate::terminal::output::{BEST, BOLD, DIM, styled, styled_lines};
use report::columns::wrapped;

/// The most columns of a paragraph, however wide the terminal is.
const PARAGRAPH_COLUMNS_MAX: usize = 80;

/// Columns of a situation within its size class.
const SITUATION: usize = 19;

/// The head of the chosen variants.
const VARIANT: &str = "best variant";

/// The most columns of a variant. A longer one has a line of its own.
const VARIANT_MAX: usize = 22;

/// Columns of each loss.
const LOSS: usize = 9;

/// Columns of a rate.
const RATE: usize = 7;

/// The plan of a search, for `--dry-run`.
pub(super) fn of_plan(
    plan: &Plan,
    file_systems: &FileSystems,
    time: Duration,
    columns: usize,
) -> String {
    let columns = columns.min(PARAGRAPH_COLUMNS_MAX);
    let mut out = styled(BOLD, &file_systems.in_words());
    for planned in &plan.cases {
        let words = planned.case.words();
        match &planned.why_not {
            None => {
                let case = planned.case;
                let bytes = words::bytes(case.file_bytes);
                let files = match case.files {
                    1 => bytes,
                    files => format!("{files} files of {bytes}"),
                };
                let seconds = planned.seconds;
                let row = format!("  {words:<47} {files:<21} {seconds:>5.1} s");
                out.push_str(&match row.chars().count() <= columns {
                    true => row + "\n",
                    false => format!("  {words}\n    {files}, {seconds:.1} s\n"),
                });
            }
            Some(why) => {
                let text = format!("  {words}: not measured: {why}");
                out.push_str(&styled(DIM, &wrapped(&text, columns, "    ")));
            }
        }
    }
    let (src, dst) = (words::bytes(plan.src_bytes), words::bytes(plan.dst_bytes));
    let text = format!(
        "{} of {} situations in at most {}; {src} of room for the sources and {dst} for their \
         copies, which are removed at the end",
        plan.measured().count(),
        plan.cases.len(),
        words::duration(time.as_secs_f64()),
    );
    out + &wrapped(&text, columns, "")
}

/// The results, and how much slower other variants are. `profile` is where they are stored.
pub(super) fn of_record(
    record: &Record,
    file_systems: &FileSystems,
    profile: Option<&Path>,
    columns: usize,
) -> String {
    let columns = columns.min(PARAGRAPH_COLUMNS_MAX);
    let measured = record.situations.iter().filter_map(|it| Some((it, it.chosen()?)));
    let mut measured: Vec<(&Finding, &VariantResult)> = measured.collect();
    let count = measured.len();
    let mut out = styled(BOLD, &heading(record, count, file_systems));
    if measured.is_empty() {
        out.push_str("nothing could be measured\n");
    } else {
        let names = measured.iter().map(|(_, chosen)| chosen.name.chars().count());
        let width = names.max().unwrap_or(0).clamp(VARIANT.len(), VARIANT_MAX);
        // Where the row does not fit, each variant has a line of its own.
        let numbers = RATE + 1 + 3 * (LOSS + 1);
        let width = if SITUATION + 1 + width + numbers <= columns { width } else { 0 };
        out.push_str(&styled_lines(DIM, &head(width)));
        measured.sort_by_key(|(it, _)| (it.file_bytes, it.no_cache));
        let classes = gathered(measured, |(it, _)| (it.size.as_str(), it.no_cache));
        for ((size, no_cache), of_class) in classes {
            out.push_str(&format!("{}\n", class(size, no_cache)));
            of_class.iter().for_each(|(it, chosen)| out.push_str(&row(it, chosen, width)));
        }
        out.push_str(&wrapped(LEGEND, columns, ""));
    }
    for text in remarks(record) {
        out.push_str(&styled(DIM, &wrapped(&text, columns, "  ")));
    }
    if let Some(path) = profile {
        let text = match count {
            0 => "The profile is unchanged.".to_owned(),
            _ => format!("haulage cp now uses these results: '{}'", path.display()),
        };
        out.push_str(&styled(BOLD, &wrapped(&text, columns, "")));
    }
    out
}

const LEGEND: &str = "MB/s is the rate of one file, also with several in flight. The last three columns \
    are the percentages by which a copy takes longer with the default, with GNU cp's engines, \
    and with copy_file_range alone, with half the width of the 95 % interval. '?': it is too wide.";

fn heading(record: &Record, measured: usize, file_systems: &FileSystems) -> String {
    let all = record.situations.len();
    let time = words::duration(record.seconds);
    format!("{}: {measured} of {all} situations in {time}", file_systems.in_words())
}

fn head(width: usize) -> String {
    let losses = ["default", "GNU cp", "c_f_range"].map(|head| format!(" {head:>LOSS$}"));
    let variant = padded(VARIANT, width);
    format!("{:<SITUATION$} {variant} {:>RATE$}{}", "situation", "MB/s", losses.concat())
}

fn row(finding: &Finding, chosen: &VariantResult, width: usize) -> String {
    let rate = chosen.megabytes_per_second.map(|rate| words::grouped(&format!("{rate:.0}")));
    let rate = rate.unwrap_or_else(|| "-".to_owned());
    let situation = format!("  {}", within_class(finding));
    let losses =
        [finding.default_loss, finding.gnu_cp_loss, finding.copy_file_range_loss].map(|loss| {
            let cell = loss.map_or_else(|| "-".to_owned(), of_loss);
            format!(" {cell:>LOSS$}")
        });
    // Padded first: escape sequences have no width.
    let name = padded(&chosen.name, width);
    let gains = finding.choice.as_deref() != Some(finding.default.as_str());
    let name = if gains { format!("{BEST}{name}{BEST:#}") } else { name };
    format!("{situation:<SITUATION$} {name} {rate:>RATE$}{}\n", losses.concat())
}

/// `name` in `width` columns, or on the rest of its line and so many columns of the next.
fn padded(name: &str, width: usize) -> String {
    match name.chars().count() > width {
        true => format!("{name}\n{:indent$}", "", indent = SITUATION + 1 + width),
        false => format!("{name:<width$}"),
    }
}

/// The situation without its size class.
fn within_class(finding: &Finding) -> String {
    let in_flight = if finding.in_flight == "one" { "alone" } else { "several" };
    format!("{}, {in_flight}", finding.residency)
}

/// Half the width of an interval, in percent, above which the estimate is not printed.
const HALF_MAX: f64 = 200.0;

/// As `12 ±3`.
pub(super) fn of_loss(loss: Loss) -> String {
    match loss {
        Loss::Ratio { ratio, low, high } => {
            let percent = (ratio - 1.0) * 100.0;
            let half = (high - low) * 50.0;
            if half == 0.0 {
                return format!("{percent:.0}");
            }
            if half > HALF_MAX {
                return "?".to_owned();
            }
            let half = if half < 0.95 { format!("{half:.1}") } else { format!("{half:.0}") };
            // -0 is printed as 0.
            format!("{} ±{half}", format!("{percent:.0}").replace("-0", "0"))
        }
        Loss::SharesExtents => "shares".to_owned(),
        Loss::Refused => "refused".to_owned(),
        Loss::Unknown => "-".to_owned(),
    }
}

/// `16M to 256M` as the heading of its rows.
fn class(size: &str, no_cache: bool) -> String {
    let class = format!("files of {size}").replace("of up", "up").replace("of over", "over");
    class + if no_cache { ", --no-cache" } else { "" }
}

fn remarks(record: &Record) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut tried = record.situations.iter().flat_map(|finding| &finding.variants);
    if tried.any(|result| result.shares_extents) {
        remarks.push(
            "Files can share extents here. haulage cp tries that first, as GNU cp does. The variants \
             above are for copies that may not share, or that copy a part of a file."
                .to_owned(),
        );
    }
    remarks.extend(slow_modes(record));
    let unanswered = record.situations.iter().filter(|finding| finding.choice.is_none());
    for (reason, findings) in gathered(unanswered, |finding| &finding.why_not) {
        let situations: Vec<&str> = findings.iter().map(|it| it.words.as_str()).collect();
        let situations = match situations.len() {
            1..=3 => situations.join("; "),
            more => format!("{}; {} more", situations[..2].join("; "), more - 2),
        };
        remarks.push(format!("Not measured: {situations}: {reason}."));
    }
    let open = |finding: &&Finding| finding.choice.is_some() && !finding.settled;
    let open = record.situations.iter().filter(open).count();
    if open > 0 {
        remarks.push(format!(
            "In {open} of them the time was too short to try every variant, or to tell close ones apart. The \
             default is kept if no variant was shown to be faster."
        ));
    }
    remarks
}

/// The most slow modes that are told one by one.
const SLOW_MODES_MAX: usize = 6;

fn slow_modes(record: &Record) -> Vec<String> {
    let mut texts = record.slow_modes();
    let more = texts.len().saturating_sub(SLOW_MODES_MAX);
    texts.truncate(SLOW_MODES_MAX);
    if more > 0 {
        texts.push(format!("{more} more slow modes are in the results of --json."));
    }
    texts
}

#[cfg(test)]
mod tests {
    use lab::stats::SlowMode;
    use lab::tune::record::Records;

    use super::*;

    #[test]
    fn a_loss_is_a_percentage_with_half_its_interval() {
        for (ratio, low, high, expected) in [
            (1.0, 1.0, 1.0, "0"),
            (1.124, 1.09, 1.15, "12 ±3"),
            (0.998, 0.994, 1.002, "0 ±0.4"),
            (2.3, 2.0, 2.6, "130 ±30"),
            (1.05, 0.001, 160.0, "?"),
        ] {
            assert_eq!(of_loss(Loss::Ratio { ratio, low, high }), expected);
        }
        assert_eq!(of_loss(Loss::SharesExtents), "shares");
    }

    #[test]
    fn slow_modes_are_told_costliest_first() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/tests/tuned/tmpfs-tmpfs.json");
        let records = Records::parse(&std::fs::read(path).expect("read")).expect("parsed");
        let record = &records.pairs[0];
        let found = &record.situations[0];
        let of = |slow: &[(&str, usize, f64)]| {
            let variants = slow.iter().map(|&(name, slow_runs, times_slower)| VariantResult {
                name: name.to_owned(),
                slow_mode: Some(SlowMode { runs: 20, slow_runs, times_slower }),
                ..found.variants[0].clone()
            });
            let found = Finding { variants: variants.collect(), ..found.clone() };
            slow_modes(&Record { situations: vec![found], ..record.clone() })
        };
        assert_eq!(
            of(&[("sendfile", 2, 1.4), ("splice:1M", 4, 6.0)]),
            [
                "splice:1M, 16 MiB to 256 MiB, resident, alone: fast 4 times in 5, 6 times slower \
                 otherwise.",
                "sendfile, 16 MiB to 256 MiB, resident, alone: fast 9 times in 10, 1.4 times slower \
                 otherwise.",
            ]
        );
        let many = of(&[("sendfile", 2, 1.4); 9]);
        assert_eq!(
            (many.len(), many[6].as_str()),
            (7, "3 more slow modes are in the results of --json.")
        );
    }

    #[test]
    fn a_variant_that_does_not_fit_has_a_line_of_its_own() {
        let head = head(0);
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(lines[0], "situation           best variant");
        assert!(lines[1].starts_with(&" ".repeat(SITUATION + 1)) && lines[1].len() <= 60, "{head}");
        assert_eq!(super::head(12).lines().count(), 1);
    }

    #[test]
    fn a_class_reads_as_a_heading() {
        assert_eq!(class("up to 4K", false), "files up to 4K");
        assert_eq!(class("16M to 256M", false), "files of 16M to 256M");
        assert_eq!(class("over 256M", true), "files over 256M, --no-cache");
    }
}
