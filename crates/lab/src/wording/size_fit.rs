//! The line of time against file size, as text.

use super::sheet::{Sheet, circumstances, cost, percent, rate, size};
use crate::analysis::size_fit::{FittedLine, SizeFit};
use crate::definition::cell::Destination;

/// Larger deviations from the line are reported.
const MISFIT_REPORTED_MIN: f64 = 0.1;

impl SizeFit {
    pub(crate) fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Time as a fixed cost and a cost for each byte, t = c + f n",
            &[
                "variant",
                "state",
                "fixed c",
                "per byte f",
                "as a rate",
                "break",
                "beyond it",
                "off by",
            ],
        )
        .keyed_by(2);
        for line in &self.lines {
            let state = match line.destination {
                Destination::Fresh => circumstances(line.state, line.at_once),
                Destination::Overwritten => {
                    format!("{}, overwritten", circumstances(line.state, line.at_once))
                }
            };
            let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
            sheet.row(vec![
                line.variant.clone(),
                state,
                line.fixed_ns.in_words(cost),
                cost(line.byte_ns.value),
                rate(line.byte_ns.value),
                or_none(line.break_bytes.map(|at| crate::words::bytes(rounded(at.value)))),
                or_none(line.above_byte_ns.map(|byte| rate(byte.value))),
                format!("{} at {}", percent(line.misfit_largest), size(line.misfit_at_bytes)),
            ]);
        }
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

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Bytes, positive.
fn rounded(bytes: f64) -> u64 {
    bytes.round().max(0.0) as u64
}
