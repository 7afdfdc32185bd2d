//! The line of time against file size, as text.

use super::sheet::{Sheet, about_bytes, cost, percent, rate, size, written_to};
use crate::analysis::size_fit::{FittedLine, SizeFit};

/// Larger deviations from the line are reported.
const MISFIT_REPORTED_MIN: f64 = 0.1;

impl SizeFit {
    pub(crate) fn sheet(&self) -> Sheet {
        let off_by = |line: &&FittedLine| {
            format!("{} at {}", percent(line.misfit_largest), size(line.misfit_at_bytes))
        };
        let none = || "none".to_owned();
        let mut sheet = Sheet::of(
            "Time as a fixed cost and a cost for each byte, t = c + f n",
            2,
            &self.lines,
            &[
                ("variant", &|line| line.variant.clone()),
                ("state", &|line| written_to(line.destination, line.state, line.at_once)),
                ("fixed c", &|line| line.fixed_ns.in_words(cost)),
                ("per byte f", &|line| cost(line.byte_ns.value)),
                ("as a rate", &|line| rate(line.byte_ns.value)),
                ("break", &|line| line.break_bytes.map_or_else(none, |at| about_bytes(at.value))),
                ("beyond it", &|line| line.above_byte_ns.map_or_else(none, |it| rate(it.value))),
                ("off by", &off_by),
            ],
        );
        let off = |line: &&FittedLine| line.misfit_largest.abs() > MISFIT_REPORTED_MIN;
        let bad = self.lines.iter().filter(off).count();
        if bad > 0 {
            sheet.say(format!(
                "{bad} of {} lines miss the median by more than {:.0} % at some size. There, use the \
                 times of the cells, not the fitted costs.",
                self.lines.len(),
                MISFIT_REPORTED_MIN * 100.0
            ));
        }
        sheet.drop_if_uniform("state");
        sheet
    }
}
