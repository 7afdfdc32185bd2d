//! The verdict in short: the most telling comparison of each part, and what is unresolved.

use std::collections::BTreeMap;

use super::{CellVerdict, Comparison, PartVerdict, Verdict};
use crate::definition::cell::Cell;
use crate::definition::{Definition, Order};
use crate::stats::Answer;
use crate::{words, workload};

/// Clauses about one part, unless its analyses alone have more: of so many states, say.
const CLAUSES_MAX: usize = 3;

/// What is not answered yet, and about how long answering would take.
#[derive(Clone, Debug, PartialEq)]
pub struct Unresolved {
    /// Comparisons without an answer.
    pub count: usize,
    /// All comparisons.
    pub of: usize,
    /// About how many seconds each cell with such comparisons would take in all, ascending, as far
    /// as that can be told.
    pub cells_seconds: Vec<f64>,
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
        let mut cells_seconds: Vec<f64> = needed.into_values().collect();
        cells_seconds.sort_by(f64::total_cmp);
        Unresolved {
            count: self.comparisons().filter(|it| it.answer == Answer::Unresolved).count(),
            of: self.comparisons().count(),
            cells_seconds,
        }
    }
}

impl PartVerdict {
    /// The answer in short: for the largest cells the comparison that says most, with its interval,
    /// then what the analyses found. Empty when nothing was measured or nothing compared.
    #[must_use]
    pub fn headline(&self, definition: &Definition) -> String {
        let findings: Vec<String> =
            self.analyses.iter().filter_map(|finding| finding.headline()).collect();
        let mut clauses = match definition.parts.iter().find(|part| part.name == self.part) {
            // Ratios of such runs are no answers; an analysis reports them.
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

    /// How many comparisons got which answer: `3 faster, 1 slower of 4`. Empty where there are
    /// none.
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

    /// Of each state and number at once the largest cell in which anything was compared, and its
    /// answer.
    fn leading(&self, definition: &Definition) -> Vec<String> {
        let cells: Vec<Cell> = definition
            .cells()
            .into_iter()
            .map(|(_, cell)| cell)
            .filter(|cell| cell.part == self.part)
            .collect();
        let compared = |verdict: &CellVerdict| {
            let cell = cells.iter().find(|cell| cell.id() == verdict.cell)?;
            Some((cell.run_bytes(), cell.clone(), verdict.in_short(&self.baseline)?))
        };
        let compared: Vec<(u64, Cell, String)> = self.cells.iter().filter_map(compared).collect();
        let largest = compared.iter().map(|(bytes, ..)| *bytes).max().unwrap_or(0);
        compared
            .into_iter()
            .filter(|(bytes, ..)| *bytes == largest)
            .filter_map(|(_, cell, said)| {
                let id = cell.id();
                let place = id.strip_prefix(&format!("{}/", self.part)).unwrap_or(&id);
                Some(match workload::by_name(&cell.workload)?.calls_of_run {
                    // No file, and so no size.
                    Some(_) => said,
                    None => format!("{place}: {said}"),
                })
            })
            .collect()
    }
}

impl CellVerdict {
    /// The fastest of those that are shown to be faster than the baseline; where none is, the
    /// slowest of those that are shown to be slower; otherwise the least ratio.
    fn in_short(&self, baseline: &str) -> Option<String> {
        let known: Vec<(f64, &Comparison)> = self
            .comparisons
            .iter()
            .filter(|it| !it.floor)
            .filter_map(|it| Some((it.ratio?, it)))
            .collect();
        let shown = |answer: Answer| known.iter().filter(move |(_, it)| it.answer == answer);
        let by_ratio = |a: &&(f64, &Comparison), b: &&(f64, &Comparison)| a.0.total_cmp(&b.0);
        if let Some((_, fastest)) = shown(Answer::Faster).min_by(by_ratio) {
            return fastest.in_short(&format!("the time of {baseline}"));
        }
        match shown(Answer::Slower).max_by(by_ratio) {
            Some((_, slowest)) if known.len() > 1 => {
                let said = slowest.in_short("its time")?;
                Some(format!("nothing is shown to be faster than {baseline}; {said}"))
            }
            _ => {
                let (_, least) = known.iter().min_by(by_ratio)?;
                least.in_short(&format!("the time of {baseline}"))
            }
        }
    }
}

impl Comparison {
    /// As `sendfile 0.75 x (0.73 to 0.77) the time of read_write:64K, faster`.
    fn in_short(&self, of: &str) -> Option<String> {
        let [ratio, low, high] = [self.ratio?, self.low?, self.high?].map(words::three_digits);
        let answer = self.answer.word();
        Some(format!("{} {ratio} x ({low} to {high}) {of}, {answer}", self.variant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::test_samples::Synthetic;
    use crate::conduct;
    use crate::conduct::cell_run::CellRun;
    use crate::definition::deltas::LEAST;
    use crate::run_dir::{HowRun, Run, SCHEMA};
    use crate::verdict::Delta;

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
        Verdict::of(&made.definition, &cells, &delta, None).analysed(
            &made.definition,
            made.samples(),
            None,
        )
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
    fn where_nothing_is_faster_the_slowest_says_most() {
        let mut made = Synthetic::new("copy", &["sendfile", "splice", "mmap"], &["1M"]);
        made.measure(20, 4, |_, variant| match variant {
            "splice" => 1.3e6,
            "mmap" => 1.1e6,
            _ => 1e6,
        });
        let said = verdict(&made).parts[0].headline(&made.definition);
        let begins = "1M: nothing is shown to be faster than sendfile; splice 1.3";
        assert!(said.starts_with(begins) && said.ends_with(") its time, slower"), "{said}");
    }

    #[test]
    fn runs_one_after_another_are_no_comparison_to_be_answered() {
        let mut made = Synthetic::new("copy", &["sendfile", "splice"], &["1M"]);
        made.part().order = Order::OneAfterAnother;
        made.measure(1, 10, |_, variant| if variant == "splice" { 2e6 } else { 1e6 });
        let verdict = verdict(&made);
        assert_eq!((verdict.unresolved().of, verdict.parts[0].counts()), (0, String::new()));
        let said = &verdict.parts[0].sentence;
        assert!(said.contains("Measured one after another, splice takes 2."), "{said}");
    }

    #[test]
    fn what_is_open_is_counted_with_the_time_that_it_would_take() {
        let mut made = Synthetic::new("copy", &["read_write:64K", "sendfile"], &["4K", "1M"]);
        made.measure(3, 1, |_, _| 1e6);
        let mut verdict = verdict(&made);
        for (cell, seconds) in verdict.parts[0].cells.iter_mut().zip([90.0, 30.0]) {
            cell.comparisons[0].answer = Answer::Unresolved;
            cell.comparisons[0].seconds_needed = Some(seconds);
        }
        let expected = Unresolved { count: 2, of: 2, cells_seconds: vec![30.0, 90.0] };
        assert_eq!(verdict.unresolved(), expected);
        let part = &verdict.parts[0];
        assert_eq!(part.counts(), "2 unresolved of 2");
        assert!(part.headline(&made.definition).ends_with(", unresolved"));
    }
}
