//! The verdict in short: for each part the comparison that says most, and what is left open.

use std::collections::BTreeMap;

use super::answer::{CellVerdict, Comparison, PartVerdict, Verdict};
use super::cell::Cell;
use super::definition::{Definition, Order};
use super::workload;
use crate::stats::{Answer, median, quantile};
use crate::words;

/// Clauses about one part, unless its analyses alone have more: of so many states, say.
const CLAUSES_MAX: usize = 3;

/// What is not answered yet, and about how long answering would take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unresolved {
    /// Comparisons without an answer.
    pub count: usize,
    /// All comparisons.
    pub of: usize,
    /// Half of the cells with such comparisons take so many seconds or less, in all; none where nothing
    /// can be said.
    pub seconds_of_half: Option<f64>,
    /// Nine of ten of them.
    pub seconds_of_most: Option<f64>,
}

impl Verdict {
    /// What is not answered yet.
    #[must_use]
    pub fn unresolved(&self) -> Unresolved {
        let mut needed: BTreeMap<&str, f64> = BTreeMap::new();
        let open = |it: &&Comparison| !it.floor && it.answer == Answer::Unresolved;
        for cell in self.parts.iter().flat_map(|part| &part.cells) {
            // Comparisons of one cell are measured together.
            let seconds = cell.comparisons.iter().filter(open).filter_map(|it| it.seconds_needed);
            if let Some(longest) = seconds.max_by(f64::total_cmp) {
                needed.insert(&cell.cell, longest);
            }
        }
        let seconds: Vec<f64> = needed.into_values().collect();
        Unresolved {
            count: self.comparisons().filter(|it| it.answer == Answer::Unresolved).count(),
            of: self.comparisons().count(),
            seconds_of_half: median(&seconds),
            seconds_of_most: quantile(&seconds, 0.9),
        }
    }
}

impl PartVerdict {
    /// The answer in short: for the largest cells the least ratio to the baseline with its interval, then
    /// what the analyses found. Empty when nothing was measured or nothing compared.
    #[must_use]
    pub fn headline(&self, definition: &Definition) -> String {
        let findings: Vec<String> =
            self.analyses.iter().filter_map(|finding| finding.headline()).collect();
        let mut clauses = match definition.parts.iter().find(|part| part.name == self.part) {
            // Ratios of such runs are no answers; what they come to is told by an analysis.
            Some(part) if part.order == Order::OneAfterAnother => Vec::new(),
            _ => self.leading(definition),
        };
        clauses.truncate(CLAUSES_MAX.saturating_sub(findings.len()).max(1));
        clauses.extend(findings);
        let compares = self.cells.iter().any(|cell| !cell.comparisons.is_empty());
        let measured = self.cells.iter().any(|cell| cell.fastest.is_some());
        if clauses.is_empty() && measured && !compares {
            return self.sentence.clone();
        }
        clauses.join("; ")
    }

    /// How many comparisons got which answer: `3 faster, 1 slower of 4`. Empty where there are none.
    #[must_use]
    pub fn counts(&self) -> String {
        let all: Vec<Answer> = self
            .cells
            .iter()
            .flat_map(|cell| &cell.comparisons)
            .filter(|it| !it.floor)
            .map(|it| it.answer)
            .collect();
        let counted = [Answer::Faster, Answer::Slower, Answer::Equivalent, Answer::Unresolved]
            .map(|answer| (all.iter().filter(|&&it| it == answer).count(), answer.word()));
        let counted: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        match all.len() {
            0 => String::new(),
            all => format!("{} of {all}", counted.join(", ")),
        }
    }

    /// Of each state and number at once the largest cell in which anything was compared: who takes the
    /// least time of the baseline there.
    fn leading(&self, definition: &Definition) -> Vec<String> {
        let cells: Vec<Cell> = definition
            .cells()
            .into_iter()
            .map(|(_, cell)| cell)
            .filter(|cell| cell.part == self.part)
            .collect();
        let compared = |verdict: &CellVerdict| {
            let cell = cells.iter().find(|cell| cell.id() == verdict.cell)?;
            let known = verdict.comparisons.iter().filter(|it| !it.floor);
            let known = known.filter_map(|it| Some((it.ratio?, it)));
            let (_, least) = known.min_by(|a, b| a.0.total_cmp(&b.0))?;
            Some((cell.run_bytes(), cell.clone(), least.clone()))
        };
        let compared: Vec<(u64, Cell, Comparison)> =
            self.cells.iter().filter_map(compared).collect();
        let largest = compared.iter().map(|(bytes, ..)| *bytes).max().unwrap_or(0);
        compared
            .into_iter()
            .filter(|(bytes, ..)| *bytes == largest)
            .filter_map(|(_, cell, least)| {
                let of = least.in_short(&self.baseline)?;
                let id = cell.id();
                let place = id.strip_prefix(&format!("{}/", self.part)).unwrap_or(&id);
                Some(match workload::by_name(&cell.workload)?.calls_of_run {
                    // No file, and so no size.
                    Some(_) => of,
                    None => format!("{place}: {of}"),
                })
            })
            .collect()
    }
}

impl Comparison {
    /// As `sendfile 0.75 x (0.73 to 0.77) the time of read_write:64K, faster`.
    fn in_short(&self, baseline: &str) -> Option<String> {
        let [ratio, low, high] = [self.ratio?, self.low?, self.high?].map(words::three_digits);
        let answer = self.answer.word();
        Some(format!(
            "{} {ratio} x ({low} to {high}) the time of {baseline}, {answer}",
            self.variant
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::synthetic::Synthetic;
    use super::super::answer::Delta;
    use super::super::certificate::LEAST;
    use super::super::conduct::{self, CellRun};
    use super::super::run_dir::{HowRun, Run, SCHEMA};
    use super::*;

    fn verdict(made: &Synthetic) -> Verdict {
        let how = HowRun {
            schema: SCHEMA,
            src_dir: "/a".into(),
            dst_dir: "/a".into(),
            seed: 1,
            seconds: Some(1.0),
            rounds: None,
            scale: 1.0,
            haulage_version: "0".to_owned(),
        };
        let run = Run {
            path: "/run".into(),
            definition: made.definition.clone(),
            how,
            environment: serde_json::Value::Null,
            samples: made.samples.clone(),
            rounds: Vec::new(),
            refusals: Vec::new(),
            calls: Vec::new(),
            sequences: Vec::new(),
        };
        let cells: Vec<CellRun> = conduct::cells(&made.definition, Some(&run));
        let delta = Delta { shares: LEAST, from: String::new() };
        Verdict::of(&made.definition, &cells, &delta, None)
            .analysed(&made.definition, made.samples())
    }

    #[test]
    fn the_largest_cells_say_it_with_an_interval() {
        let mut made =
            Synthetic::new("copy", &["read_write:64K", "sendfile", "splice"], &["4K", "1M"]);
        made.measure(20, 4, |cell, variant| match (cell.file_bytes, variant) {
            (4096, _) => 1e4,
            (_, "sendfile") => 0.7e6,
            (_, "splice") => 1.2e6,
            _ => 1e6,
        });
        let verdict = verdict(&made);
        let part = &verdict.parts[0];
        let said = part.headline(&made.definition);
        assert!(said.starts_with("1M: sendfile 0.7"), "{said}");
        assert!(said.ends_with(") the time of read_write:64K, faster"), "{said}");
        assert!(part.counts().ends_with(" of 4"), "{}", part.counts());
        assert!(part.counts().starts_with("1 faster, 1 slower"), "{}", part.counts());
    }

    #[test]
    fn what_is_open_is_counted_with_the_time_that_it_would_take() {
        let mut made = Synthetic::new("copy", &["read_write:64K", "sendfile"], &["4K", "1M"]);
        made.measure(3, 1, |_, _| 1e6);
        let mut verdict = verdict(&made);
        for (cell, seconds) in verdict.parts[0].cells.iter_mut().zip([30.0, 90.0]) {
            cell.comparisons[0].answer = Answer::Unresolved;
            cell.comparisons[0].seconds_needed = Some(seconds);
        }
        let expected = Unresolved {
            count: 2,
            of: 2,
            seconds_of_half: Some(60.0),
            seconds_of_most: Some(84.0),
        };
        assert_eq!(verdict.unresolved(), expected);
        let part = &verdict.parts[0];
        assert_eq!(part.counts(), "2 unresolved of 2");
        assert!(part.headline(&made.definition).ends_with(", unresolved"));
    }
}
