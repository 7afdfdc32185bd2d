//! Time against file size: t = c + f n for each variant, as one line or two that meet.

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, cost, percent, rate, size, written_to};
use crate::analysis::view::{View, by_session};
use crate::definition::cell::{Cell, Destination, Shape};
use crate::in_order::distinct;
use crate::page_cache::state::State;
use crate::stats::Estimated;
use crate::stats::models::{CostLine, Point, cost_line, segments};
use crate::words;

/// What a file and a byte of it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedLine {
    /// The variant.
    pub variant: String,
    /// The page cache state.
    pub state: State,
    /// What was written to.
    pub destination: Destination,
    /// Runs at once.
    pub at_once: u32,
    /// Sizes that the line goes through.
    pub sizes: usize,
    /// The cost of a run apart from its bytes, in nanoseconds.
    pub fixed_ns: Estimated,
    /// What a byte costs, in nanoseconds; below the break where there is one.
    pub byte_ns: Estimated,
    /// The size from which on a byte costs something else; `None` if one line fits.
    pub break_bytes: Option<Estimated>,
    /// What a byte beyond the break costs, in nanoseconds.
    pub above_byte_ns: Option<Estimated>,
    /// The chance of such a break where there is none; `None` with too few sizes.
    pub break_p: Option<f64>,
    /// The largest distance of a size from the line, as a share of the line.
    pub misfit_largest: f64,
    /// The size at which that is.
    pub misfit_at_bytes: u64,
    /// The chance of such distances were the line true; none with one session.
    pub misfit_p: Option<f64>,
}

/// The lines of a part with at least three sizes.
pub(crate) fn of(view: &View<'_>) -> Option<Vec<FittedLine>> {
    let mut lines = Vec::new();
    let alike = |cell: &Cell| (cell.state, cell.destination, cell.at_once);
    for cells in view.groups(alike) {
        let Some(first) = cells.first().map(|cell| &cell.cell) else { continue };
        if first.shape != Shape::File {
            continue;
        }
        for (index, variant) in view.part.variants.iter().enumerate() {
            let points = cells.iter().flat_map(|cell| cell.size_points(index, view.part.measure));
            let points = by_session(points);
            lines.extend(line(variant, first, &points));
        }
    }
    (!lines.is_empty()).then_some(lines)
}

fn line(variant: &str, cell: &Cell, points: &[Point]) -> Option<FittedLine> {
    let sizes = distinct(points.iter().map(|point| point.bytes));
    let one = cost_line(points)?;
    let tested = segments(points);
    let two = tested.filter(|tested| tested.is_broken());
    let CostLine { call_ns, byte_ns, misfit } = two.map_or(one, |two| two.below);
    Some(FittedLine {
        variant: variant.to_owned(),
        state: cell.state,
        destination: cell.destination,
        at_once: cell.at_once,
        sizes: sizes.len(),
        fixed_ns: call_ns,
        byte_ns,
        break_bytes: two.map(|two| two.break_bytes),
        above_byte_ns: two.map(|two| two.above_byte_ns),
        break_p: tested.map(|tested| tested.p),
        misfit_largest: misfit.largest,
        misfit_at_bytes: misfit.at_bytes,
        misfit_p: misfit.p,
    })
}

/// Larger deviations from the line are reported.
const MISFIT_REPORTED_MIN: f64 = 0.1;

pub(crate) fn sheet(lines: &[FittedLine]) -> Sheet {
    let off_by = |line: &&FittedLine| {
        format!("{} at {}", percent(line.misfit_largest), size(line.misfit_at_bytes))
    };
    let none = || "none".to_owned();
    let mut sheet = Sheet::of(
        "Time as a fixed cost and a cost for each byte, t = c + f n",
        2,
        lines,
        &[
            ("variant", &|line| line.variant.clone()),
            ("state", &|line| written_to(line.destination, line.state, line.at_once)),
            ("fixed c", &|line| line.fixed_ns.in_words(cost)),
            ("per byte f", &|line| cost(line.byte_ns.value)),
            ("as a rate", &|line| rate(line.byte_ns.value)),
            ("break", &|line| {
                line.break_bytes.map_or_else(none, |at| words::about_bytes(at.value))
            }),
            ("beyond it", &|line| line.above_byte_ns.map_or_else(none, |it| rate(it.value))),
            ("off by", &off_by),
        ],
    );
    let off = |line: &&FittedLine| line.misfit_largest.abs() > MISFIT_REPORTED_MIN;
    let bad = lines.iter().filter(off).count();
    if bad > 0 {
        sheet.say(format!(
            "{bad} of {} lines miss the median by more than {:.0} % at some size. There, use the \
             times of the cells, not the fitted costs.",
            lines.len(),
            MISFIT_REPORTED_MIN * 100.0
        ));
    }
    sheet.drop_if_uniform("state");
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    const SIZES: &[&str] = &["64", "512", "4K", "32K", "128K", "1M", "8M", "64M"];

    #[test]
    fn the_costs_are_found_and_cold_and_warm_are_kept_apart() {
        let mut made = Synthetic::new("copy", &["sendfile"], SIZES);
        made.part().states = vec![State::Warm, State::Cold];
        made.measure(6, 2, |cell, _| {
            let slow = if cell.state == State::Cold { 10.0 } else { 1.0 };
            5_000.0 + 0.25 * slow * cell.file_bytes as f64
        });
        let lines = of(&made.view()).expect("lines");
        assert_eq!(lines.len(), 2);
        for (line, byte_ns) in lines.iter().zip([0.25, 2.5]) {
            assert!((line.byte_ns.value / byte_ns - 1.0).abs() < 0.05, "{line:?}");
            assert!((line.fixed_ns.value / 5_000.0 - 1.0).abs() < 0.1, "{line:?}");
            assert_eq!((line.break_bytes, line.sizes), (None, 8), "{line:?}");
        }
        let sheet = sheet(&lines);
        let rate = &sheet.table.rows[0][4];
        assert!(rate.starts_with("4.") || rate.starts_with("3.9"), "{sheet:?}");
        assert!(sheet.sentences.is_empty(), "{sheet:?}");
    }

    #[test]
    fn a_break_is_found() {
        let mut made = Synthetic::new("copy", &["sendfile"], SIZES);
        made.measure(8, 3, |cell, _| {
            let bytes = cell.file_bytes as f64;
            2_000.0 + 0.1 * bytes.min(131_072.0) + 0.5 * (bytes - 131_072.0).max(0.0)
        });
        let lines = of(&made.view()).expect("lines");
        let at = lines[0].break_bytes.expect("a break").value;
        assert!((60_000.0..250_000.0).contains(&at), "{at}");
    }
}
