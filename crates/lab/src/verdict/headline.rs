//! The verdict in short: the answer of each part for the largest files.

use super::PartVerdict;
use crate::definition::Definition;
use crate::stats::Answer;

/// Clauses about one part, unless its analyses alone have more: of so many states, say.
const CLAUSES_MAX: usize = 3;

impl PartVerdict {
    /// The answer in short: that of the largest files, then what the analyses found. Empty when nothing
    /// was measured or nothing compared.
    pub fn headline(&self, definition: &Definition) -> String {
        let findings: Vec<String> =
            self.analyses.iter().filter_map(|finding| finding.headline()).collect();
        let mut clauses = self.brief(definition);
        clauses.truncate(CLAUSES_MAX.saturating_sub(findings.len()).max(1));
        clauses.extend(findings);
        let compares = self.cells.iter().any(|cell| !cell.comparisons.is_empty());
        let measured = self.cells.iter().any(|cell| cell.fastest.is_some());
        if clauses.is_empty() && measured && !compares {
            return self.sentence.clone();
        }
        clauses.join("; ")
    }

    /// How many comparisons got which answer: `3 faster, 1 slower of 4`. Empty where there are
    /// none.
    pub fn counts(&self) -> String {
        let counts = self.answers();
        let all: usize = counts.iter().map(|(count, _)| count).sum();
        let counted = counts.into_iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> = counted.map(|(count, word)| format!("{count} {word}")).collect();
        match all {
            0 => String::new(),
            all => format!("{} of {all}", counted.join(", ")),
        }
    }

    /// The number of comparisons with each answer, and the word for it.
    pub(super) fn answers(&self) -> [(usize, &'static str); 4] {
        let count = |answer: Answer| self.asked().filter(|it| it.answer == answer).count();
        [Answer::Faster, Answer::Slower, Answer::Equivalent, Answer::Unresolved]
            .map(|answer| (count(answer), answer.word()))
    }
}
