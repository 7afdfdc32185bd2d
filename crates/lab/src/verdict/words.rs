//! The answer of a part in sentences.

use super::{CellVerdict, Comparison, PartVerdict};
use crate::definition::{Definition, Order, Part};
use crate::in_order::gathered;
use crate::words;

/// Cells that a sentence names one by one.
const NAMED_MAX: usize = 4;

impl PartVerdict {
    pub(crate) fn in_words(&self, definition: &Definition, part: &Part) -> String {
        if part.order == Order::OneAfterAnother {
            return self.naive_words(part);
        }
        let comparisons =
            || self.cells.iter().flat_map(|cell| cell.asked().map(move |it| (cell, it)));
        let all = comparisons().count();
        if all == 0 {
            return self.fastest_words();
        }
        if all <= NAMED_MAX {
            let sentence =
                |(cell, it): (&CellVerdict, &Comparison)| it.in_words(&self.baseline, &cell.cell);
            return comparisons().map(sentence).collect::<Vec<_>>().join(" ");
        }
        let counts = self.answers().map(|(count, word)| format!("{count} {word}")).join(", ");
        let concluded = self.conclusion(definition).paragraph();
        format!("{concluded} Of {all} comparisons with {}: {counts}.", self.baseline)
    }

    /// For a part without comparisons: which variant has the least time, by cell.
    fn fastest_words(&self) -> String {
        let fastest = self.cells.iter().filter_map(|cell| cell.fastest.as_deref());
        let mut by_variant = gathered(fastest, |variant| *variant);
        by_variant.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.len()));
        let all = self.cells.len();
        match by_variant.as_slice() {
            [] => "Nothing was measured.".to_owned(),
            [(variant, _)] if all > 1 => {
                format!("{variant} took the least time in all {all} cells.")
            }
            [(variant, _)] => format!("{variant} took the least time."),
            [(first, cells), others @ ..] => {
                let mut named = vec![format!("{first} took the least time in {}", cells.len())];
                let others = others.iter().take(NAMED_MAX - 1);
                named
                    .extend(others.map(|(variant, cells)| format!("{variant} in {}", cells.len())));
                format!("Of {all} cells, {}.", words::listed(&named))
            }
        }
    }

    /// What the usual protocol shows: means of runs one after another.
    fn naive_words(&self, part: &Part) -> String {
        let median_of = |cell: &CellVerdict, name: &str| {
            cell.variants.iter().find(|v| v.variant == name).and_then(|v| v.median_ns)
        };
        let mut sentences = Vec::new();
        for cell in &self.cells {
            let Some(base) = median_of(cell, &part.baseline) else { continue };
            for variant in part.compared() {
                let Some(median) = median_of(cell, variant) else { continue };
                sentences.push(format!(
                    "Measured one after another, {variant} takes {} x the time of {} at {}. This \
                     protocol cannot separate the variant from its position in the order.",
                    words::three_digits(median / base),
                    part.baseline,
                    cell.cell
                ));
            }
        }
        sentences.join(" ")
    }
}

impl Comparison {
    fn in_words(&self, baseline: &str, cell: &str) -> String {
        let Comparison { variant, answer, .. } = self;
        let (Some(ratio), Some(low), Some(high)) = (self.ratio, self.low, self.high) else {
            return format!(
                "{variant} and {baseline} were not compared at {cell}: too few sessions."
            );
        };
        let [ratio, low, high] = [ratio, low, high].map(words::three_digits);
        let said = answer.word();
        let mut words = format!(
            "{variant} takes {ratio} x the time of {baseline} (95 % {low} to {high}) at {cell}: {said}"
        );
        if let Some(seconds) = self.seconds_needed {
            words.push_str(&format!(", it would take about {} in all", words::duration(seconds)));
        }
        words.push('.');
        words
    }
}
