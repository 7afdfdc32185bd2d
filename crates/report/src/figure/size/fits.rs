//! The cost of a file and of a byte: the lines that the run's analysis fitted, drawn and as rows.

use lab::definition::Part;
use lab::stats::Estimated;
use lab::studies::Finding;
use lab::studies::size_fit::FittedLine;
use lab::words::{about_bytes, bytes};

use crate::figure::estimate::signed_ns;
use crate::plot::{Dot, Entry, Mark, Shape, Table};
use crate::summary::{CellSummary, Summary};

/// Segments of a drawn line.
const SEGMENTS: u32 = 48;

/// A note names lines with a larger misfit, as a share of the modelled time.
const MISFIT_NOTED_MIN: f64 = 0.1;

/// The lines through `cells`, which differ in the size only.
pub(super) fn of<'s>(
    summary: &Summary<'s>,
    part: &Part,
    cells: &[&CellSummary<'_>],
) -> Vec<&'s FittedLine> {
    let Some(first) = cells.first().map(|cell| &cell.cell) else { return Vec::new() };
    let lines = summary.findings().filter_map(|(of, finding)| match finding {
        Finding::SizeFit { lines } if of.name == part.name => Some(lines),
        _ => None,
    });
    let through = |line: &&FittedLine| {
        (line.state, line.destination, line.at_once)
            == (first.state, first.destination, first.at_once)
    };
    lines.flatten().filter(through).collect()
}

/// The modelled time, in nanoseconds: t = c + f min(n, b) + g max(n - b, 0).
fn time_ns(line: &FittedLine, bytes: f64) -> f64 {
    let break_bytes = line.break_bytes.map_or(f64::INFINITY, |at| at.value);
    let above_byte_ns = line.above_byte_ns.map_or(0.0, |above| above.value);
    let below_ns = line.fixed_ns.value + line.byte_ns.value * bytes.min(break_bytes);
    below_ns + above_byte_ns * (bytes - break_bytes).max(0.0)
}

/// A line from the smallest to the largest size, and its break.
pub(super) fn marks(line: &FittedLine, cells: &[&CellSummary<'_>]) -> Vec<Mark> {
    let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return Vec::new() };
    let sizes = [first, last].map(|cell| cell.cell.file_bytes as f64);
    let fit = Shape::fit(sizes, SEGMENTS, |bytes| time_ns(line, bytes));
    let mut marks = vec![Mark::of(&line.variant, fit)];
    if let Some(at) = line.break_bytes {
        let text = format!("{}: break at {}", line.variant, at.in_words(about_bytes));
        let dot = Dot::at(at.value, time_ns(line, at.value), text).within(at.low, at.high);
        marks.push(Mark::dot(&line.variant, dot, true));
    }
    marks
}

/// The line with the largest misfit, in words. `None` if all fit well.
pub(super) fn misfit_note(lines: &[&FittedLine]) -> Option<String> {
    let off = |line: &&&FittedLine| line.misfit_largest.abs() > MISFIT_NOTED_MIN;
    let by_misfit = |a: &&&FittedLine, b: &&&FittedLine| {
        a.misfit_largest.abs().total_cmp(&b.misfit_largest.abs())
    };
    let worst = lines.iter().filter(off).max_by(by_misfit)?;
    Some(format!(
        "{} of {} fits are off by more than {:.0} % at some size; {} has the largest misfit, \
         {:+.0} % at {}. There the two costs do not describe the times; use the violins",
        lines.iter().filter(off).count(),
        lines.len(),
        MISFIT_NOTED_MIN * 100.0,
        worst.variant,
        worst.misfit_largest * 100.0,
        bytes(worst.misfit_at_bytes)
    ))
}

/// The lines as rows.
pub(super) fn table(title: &str, lines: &[&FittedLine]) -> Table {
    let entry = |of: Estimated, show: &dyn Fn(f64) -> String| Entry::Number {
        value: of.value,
        shown: of.in_words(show),
    };
    let optional = |of: Option<Estimated>, show: &dyn Fn(f64) -> String| {
        of.map_or(Entry::Nothing, |of| entry(of, show))
    };
    let digits = |value: f64| format!("{value:.3}");
    let p = |value: Option<f64>| {
        Entry::number(value, |p| if p < 0.001 { "< 0.001".to_owned() } else { digits(p) })
    };
    Table::of(
        &format!("{title}: fits t = c + f·n, with 95 % intervals"),
        lines,
        &[
            ("variant", &|line| Entry::words(&line.variant)),
            ("c, per file", &|line| entry(line.fixed_ns, &signed_ns)),
            ("f, ns/byte", &|line| entry(line.byte_ns, &digits)),
            ("break at", &|line| optional(line.break_bytes, &about_bytes)),
            ("f beyond, ns/byte", &|line| optional(line.above_byte_ns, &digits)),
            ("largest misfit, %", &|line| {
                Entry::number(line.misfit_largest * 100.0, |share| format!("{share:+.0}"))
            }),
            ("at size", &|line| Entry::bytes(line.misfit_at_bytes as f64)),
            ("p of fit", &|line| p(line.misfit_p)),
            ("p of one line", &|line| p(line.break_p)),
        ],
    )
}
