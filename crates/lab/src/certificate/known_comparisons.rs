//! The experiment behind a certificate: comparisons whose truth is known, such as a variant with
//! itself, or with a copy of itself that is slowed down by a known share.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::definition::cell::Destination;
use crate::definition::{self, Definition, Part, Slowed, without_label};
use crate::page_cache::state::State;

/// The variants that are compared with themselves.
const VARIANTS: [&str; 4] = ["read_write:64K", "sendfile", "copy_file_range", "mmap"];

/// The sizes: from files whose opening costs more than their bytes to files that exceed the caches.
const SIZES: [&str; 5] = ["4K", "64K", "1M", "8M", "64M"];

/// The share of runs that the slow mode takes, each half as long again.
const AT_TIMES: f64 = 0.1;

/// What is true of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Truth {
    /// Both variants run the same.
    Same,
    /// One is made slower by this share.
    Slower {
        /// The share.
        by: f64,
    },
    /// One is made slower in some of its runs, and typical runs are the same.
    SlowAtTimes {
        /// The share of runs.
        share: f64,
    },
    /// One is known to be slower: small buffers.
    Control,
}

/// Which comparisons are made.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Whether the cold state can be set and proved here.
    pub cold: bool,
    /// No file is larger than this.
    pub file_bytes_max: u64,
    /// At most so many cells of each kind.
    pub cells_max: usize,
    /// Minutes for all of it.
    pub minutes: f64,
}

/// The experiment.
pub fn experiment(choice: &Choice) -> Definition {
    let mut parts = Vec::new();
    let mut add = |truth: Truth, rows: &[(State, &[&str])]| {
        let mut cells: Vec<Part> = Vec::new();
        for &(state, sizes) in rows.iter().filter(|(state, _)| choice.cold || *state != State::Cold)
        {
            for size in sizes.iter().filter(|size| bytes(size) <= choice.file_bytes_max) {
                match truth {
                    Truth::Control => cells.push(part(truth, "read_write:64K", size, state)),
                    _ => cells.extend(VARIANTS.map(|variant| part(truth, variant, size, state))),
                }
            }
        }
        parts.extend(spread(cells, choice.cells_max));
    };
    let cold = (State::Cold, ["1M", "8M"].as_slice());
    add(Truth::Same, &[(State::Warm, &SIZES), cold]);
    add(Truth::Slower { by: 0.05 }, &[(State::Warm, &SIZES), (State::Cold, &["8M"])]);
    add(Truth::Slower { by: 0.10 }, &[(State::Warm, &["64K", "1M", "8M"])]);
    // Slowed by δ itself, so its comparison is never answered. It would take time from the others.
    add(Truth::Slower { by: 0.02 }, &[(State::Warm, &["1M"])]);
    add(Truth::SlowAtTimes { share: AT_TIMES }, &[(State::Warm, &["1M", "8M"])]);
    add(Truth::Control, &[(State::Warm, &["1M", "8M", "64M"])]);
    Definition {
        schema: definition::SCHEMA,
        name: "certificate".to_owned(),
        title: "The protocol against itself".to_owned(),
        question: "Are measurements on this machine reliable?".to_owned(),
        analysis: "Each part compares two variants whose true ratio is known: the same variant \
                   twice, or one variant slowed on purpose."
            .to_owned(),
        minutes: choice.minutes,
        // Each comparison is as important as the others.
        main: String::new(),
        parts,
        claims: Vec::new(),
        run: IgnoredAny,
    }
}

/// `count` of the cells, from all over the list.
fn spread(cells: Vec<Part>, count: usize) -> Vec<Part> {
    let all = cells.len();
    let chosen = |index: usize| (index + 1) * count / all.max(1) > index * count / all.max(1);
    let cells = cells.into_iter().enumerate();
    cells.filter(|(index, _)| count >= all || chosen(*index)).map(|(_, part)| part).collect()
}

fn bytes(size: &str) -> u64 {
    size.parse::<engines::Bytes>().map_or(0, |bytes| bytes.0)
}

fn part(truth: Truth, variant: &str, size: &str, state: State) -> Part {
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let (kind, other, slowed) = match truth {
        Truth::Same => ("same".to_owned(), format!("{variant} [again]"), None),
        Truth::Slower { by } => (
            format!("slower-{}", percent(by)),
            format!("{variant} [slower by {} %]", percent(by)),
            Some(Slowed { by, sometimes: 0.0 }),
        ),
        Truth::SlowAtTimes { share } => (
            "at-times".to_owned(),
            format!("{variant} [slow at times]"),
            Some(Slowed { by: 0.0, sometimes: share }),
        ),
        Truth::Control => ("control".to_owned(), "read_write:4K".to_owned(), None),
    };
    let engine = variant.split(':').next().unwrap_or(variant);
    let size_name = size.to_ascii_lowercase();
    Part {
        name: format!("{kind}-{engine}-{size_name}-{}", state.name()),
        question: "What is reported for two variants whose true ratio is known?".to_owned(),
        workload: "copy".to_owned(),
        variants: vec![variant.to_owned(), other.clone()],
        sizes: vec![size.to_owned()],
        files: 1,
        states: vec![state],
        at_once: vec![1],
        destinations: vec![Destination::Fresh],
        baseline: variant.to_owned(),
        slowed: slowed.map(|slowed| BTreeMap::from([(other, slowed)])).unwrap_or_default(),
        ..Part::default()
    }
}

/// What is true of the comparison that a part makes; `None` when it makes none.
pub fn truth(part: &Part) -> Option<Truth> {
    let variant = part.compared().next()?;
    let slowed = part.slowed.get(variant).copied().unwrap_or_default();
    Some(match slowed {
        Slowed { by, .. } if by > 0.0 => Truth::Slower { by },
        Slowed { sometimes, .. } if sometimes > 0.0 => Truth::SlowAtTimes { share: sometimes },
        _ if without_label(variant) == without_label(&part.baseline) => Truth::Same,
        _ => Truth::Control,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: Choice =
        Choice { cold: true, file_bytes_max: 64 << 20, cells_max: usize::MAX, minutes: 8.0 };

    #[test]
    fn the_experiment_reads_back_and_its_truths_with_it() {
        let experiment = experiment(&CHOICE);
        let text = experiment.to_toml();
        let again = Definition::parse(&text, "certificate").expect("parsed");
        assert_eq!(again, experiment);
        let count =
            |wanted: Truth| again.parts.iter().filter(|part| truth(part) == Some(wanted)).count();
        assert_eq!(count(Truth::Same), VARIANTS.len() * (SIZES.len() + 2));
        assert_eq!(count(Truth::Slower { by: 0.05 }), VARIANTS.len() * (SIZES.len() + 1));
        assert_eq!(count(Truth::SlowAtTimes { share: AT_TIMES }), VARIANTS.len() * 2);
        assert_eq!(count(Truth::Control), 3);
        // A family of one each, or a cell would be harder to find here than it says.
        assert!(again.parts.iter().all(|part| part.comparisons() == 1));
    }

    #[test]
    fn what_there_is_no_room_for_is_left_out() {
        let small = Choice { cold: false, file_bytes_max: 1 << 20, cells_max: 2, ..CHOICE };
        let experiment = experiment(&small);
        assert!(experiment.cells().iter().all(|(_, cell)| cell.file_bytes <= 1 << 20));
        assert!(experiment.cells().iter().all(|(_, cell)| cell.state == State::Warm));
        let same = experiment.parts.iter().filter(|part| truth(part) == Some(Truth::Same));
        let names: Vec<&str> = same.map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["same-sendfile-64k-warm", "same-mmap-1m-warm"]);
    }
}
