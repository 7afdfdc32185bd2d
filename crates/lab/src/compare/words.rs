//! What changed, in a sentence.

use super::{CellChange, Change};
use crate::stats::Answer;
use crate::verdict::answer_ranges::{ratio_digits, sure_of};

impl Change {
    /// The largest change that is shown, and how many comparisons got which answer.
    pub fn sentence(&self) -> String {
        let count = |answer: Answer| self.cells.iter().filter(|it| it.answer == answer).count();
        let (all, open) = (self.cells.len(), count(Answer::Unresolved));
        let (faster, slower) = (count(Answer::Faster), count(Answer::Slower));
        if all == 0 {
            return "The two runs have no cell in common.".to_owned();
        }
        if faster + slower == 0 {
            let verb = if open == 1 { "is" } else { "are" };
            return match open {
                0 => format!("Nothing changed by a difference that matters, in {all} comparisons."),
                _ => format!(
                    "Nothing is shown to have changed; {open} of {all} comparisons {verb} too close to \
                     call."
                ),
            };
        }
        let verb = if faster == 1 { "is" } else { "are" };
        format!(
            "{} of {all} comparisons changed, {}. {faster} {verb} faster now, {slower} slower, {} the \
             same as far as it matters and {open} too close to call.",
            faster + slower,
            self.largest().unwrap_or_default(),
            count(Answer::Equivalent)
        )
    }

    /// The largest change that is shown.
    fn largest(&self) -> Option<String> {
        let shown = |it: &&CellChange| matches!(it.answer, Answer::Faster | Answer::Slower);
        let size = |it: &CellChange| it.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        let of_all = self.cells.iter().filter(shown).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        let (ratio, low, high) = (of_all.ratio?, of_all.low?, of_all.high?);
        Some(format!(
            "most of all {}: {} of its time in the first run, {}",
            of_all.plain,
            ratio_digits(ratio),
            sure_of(ratio, low, high)
        ))
    }
}
