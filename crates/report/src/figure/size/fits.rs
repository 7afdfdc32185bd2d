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
        Finding::SizeFit(fit) if of.name == part.name => Some(&fit.lines),
        _ => None,
    });
    let through = |line: &&FittedLine| {
        (line.state, line.destination, line.at_once)
            == (first.state, first.destination, first.at_once)
    };
    lines.flatten().filter(through).collect()
}

/// The modelled time, in nanoseconds.
fn time_ns(line: &FittedLine, bytes: f64) -> f64 {
    let below = line.fixed_ns.value + line.byte_ns.value * bytes;
    match (line.break_bytes, line.above_byte_ns) {
        (Some(at), Some(above)) if bytes > at.value => {
            below + (above.value - line.byte_ns.value) * (bytes - at.value)
        }
        _ => below,
    }
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

#[cfg(test)]
mod tests {
    use lab::definition::cell::Destination;
    use lab::page_cache::state::State;

    use super::*;

    #[test]
    fn a_line_that_breaks_has_no_step_there() {
        let of = |value: f64| Estimated { value, low: None, high: None };
        let line = FittedLine {
            variant: "splice".to_owned(),
            state: State::Warm,
            destination: Destination::Fresh,
            at_once: 1,
            sizes: 8,
            fixed_ns: of(1_000.0),
            byte_ns: of(0.5),
            break_bytes: Some(of(100.0)),
            above_byte_ns: Some(of(2.0)),
            break_p: Some(0.001),
            misfit_largest: 0.0,
            misfit_at_bytes: 0,
            misfit_p: None,
        };
        let check = |bytes: f64, expected: f64| {
            let found = time_ns(&line, bytes);
            assert!((found - expected).abs() < 1e-9, "{bytes}: {found}, expected {expected}");
        };
        check(50.0, 1_025.0);
        check(100.0, 1_050.0);
        check(110.0, 1_070.0);
    }
}
