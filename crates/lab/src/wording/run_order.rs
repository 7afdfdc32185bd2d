//! What runs one after another would have shown, as text.

use super::sheet::{Sheet, in_both_states};
use crate::analysis::run_order::{OneAfterAnother, OrderOfRuns, Shortcut, Unproved};
use crate::definition::deltas::Deltas;
use crate::words;

impl OrderOfRuns {
    /// What runs said that were made one after another; none where there were no such.
    pub(crate) fn headline(&self) -> Option<String> {
        let distance = |it: &OneAfterAnother| (it.ratio / it.interleaved.value).ln().abs();
        let worst =
            self.one_after_another.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        Some(format!(
            "one after another {} took {} x the time, interleaved {}",
            worst.variant,
            words::three_digits(worst.ratio),
            worst.interleaved.in_words(words::three_digits)
        ))
    }

    pub(crate) fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::of(
            "What the order of runs would have made of it",
            2,
            &self.one_after_another,
            &[
                ("variant", &|naive| naive.variant.clone()),
                ("cell", &|naive| naive.cell.clone()),
                ("one after another", &|naive| words::three_digits(naive.ratio)),
                ("interleaved", &|naive| naive.interleaved.in_words(words::three_digits)),
            ],
        );
        let deltas = Deltas { warm: self.delta, cold: self.delta_cold };
        sheet.sentences.extend(self.first_runs.in_words("One run of each, the first,", deltas));
        sheet.sentences.extend(self.blocks.in_words(
            "A first half of runs against the baseline's second half, as when one is measured after \
             the other,",
            deltas,
        ));
        if self.halves.tests > 0 {
            sheet.say(format!(
                "The usual test at 5 % calls the first half of a variant's runs different from its own \
                 second half in {} of {} cases, and its odd runs from its even ones in {} of {}: what \
                 is over one in twenty is drift, and no method made it.",
                self.halves.significant,
                self.halves.tests,
                self.alternate.significant,
                self.alternate.tests
            ));
        }
        for unproved in &self.unproved {
            sheet.say(unproved.in_words());
        }
        sheet
    }
}

impl Unproved {
    pub(crate) fn in_words(&self) -> String {
        let mut said = format!(
            "{} with an unproved page cache state took {} at {}",
            self.variant,
            words::nanoseconds(self.median_ns),
            self.cell
        );
        if let Some(share) = self.resident_share {
            said.push_str(&format!("; {:.0} % of the source was there", share * 100.0));
        }
        let proved = |name: &str, ns: Option<f64>| {
            ns.map(|ns| format!("proved to be {name} it takes {}", words::nanoseconds(ns)))
        };
        let proved: Vec<String> =
            [proved("warm", self.warm_median_ns), proved("cold", self.cold_median_ns)]
                .into_iter()
                .flatten()
                .collect();
        if !proved.is_empty() {
            said.push_str(&format!("; {}", words::listed(&proved)));
        }
        said.push('.');
        said
    }
}

impl Shortcut {
    fn in_words(&self, what: &str, deltas: Deltas) -> Option<String> {
        let worst = self.worst.as_ref()?;
        Some(format!(
            "{what} would have given a ratio outside the interval, and off by more than {}, in {} of \
             {} comparisons, and with the opposite direction in {}; farthest off {} at {}: {} instead of \
             {}.",
            in_both_states(deltas),
            self.off,
            self.comparisons,
            self.reversed,
            worst.variant,
            worst.cell,
            words::three_digits(worst.ratio),
            worst.interleaved.in_words(words::three_digits)
        ))
    }
}
