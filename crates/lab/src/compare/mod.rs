//! What changed between two runs of an experiment, without I/O.
//!
//! Within a run, variants are compared round by round, so that changes of the machine cancel. Two
//! runs have no rounds in common. They are compared as independent samples with one value a
//! session.

mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::analysis::interim::ERROR;
use crate::analysis::observations::Observations;
use crate::definition::deltas::Deltas;
use crate::definition::{Measure, Order};
use crate::environment::{UNKNOWN, fields};
use crate::page_cache::state::State;
use crate::run_dir::Run;
use crate::stats::{Answer, Estimate, Runs, Tested, decide, median, unpaired};
use crate::verdict::answer_ranges::described;

/// Everything that differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What differs of the machine and the program, by the names in `environment.json`.
    pub environment: Vec<Difference>,
    /// The ratio of the times of the speed probe, the second run over the first: how the machine
    /// itself changed. `None` without samples.
    pub probe_ratio: Option<f64>,
    /// Each variant in each cell that both runs have.
    pub cells: Vec<CellChange>,
    /// Cells and variants, as `cell: variant`, of which only the first run has samples.
    pub only_in_first: Vec<String>,
    /// Cells and variants, as `cell: variant`, of which only the second run has samples.
    pub only_in_second: Vec<String>,
    /// Differences up to these shares do not matter.
    pub deltas: Deltas,
}

/// A field of the environment in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The name of the field; of a field within a field, as `dst.mount_options`.
    pub field: String,
    /// What the first run has.
    pub first: String,
    /// What the second has.
    pub second: String,
}

/// One variant of one cell in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellChange {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// The answer: faster and slower are about the second run, corrected for the number of
    /// comparisons.
    pub answer: Answer,
    /// The variant's time in the second run over that in the first; none with too few sessions.
    pub ratio: Option<f64>,
    /// The lower end of the 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Sessions of the first run and of the second.
    pub sessions: [usize; 2],
    /// Cell and variant in plain words, for sentences.
    #[serde(skip)]
    pub plain: String,
}

/// Fields of the environment that differ between any two runs and explain nothing.
const NO_DIFFERENCE: [&str; 4] = ["seed", "clock_ns", "src.path", "dst.path"];

impl Change {
    /// What changed from `first` to `second`.
    pub fn of(first: &Run, second: &Run, deltas: Deltas) -> Change {
        let [first_measured, second_measured] = &[first, second].map(measured);
        let both: Vec<(&Key, [&MeasuredVariant; 2])> = first_measured
            .iter()
            .filter_map(|(key, variant)| Some((key, [variant, second_measured.get(key)?])))
            .collect();
        let only = |one: &BTreeMap<Key, MeasuredVariant>,
                    other: &BTreeMap<Key, MeasuredVariant>| {
            let missing = one.keys().filter(|key| !other.contains_key(*key));
            missing.map(|key| format!("{}: {}", key.cell, key.variant)).collect()
        };
        Change {
            environment: differences(&first.environment, &second.environment),
            probe_ratio: probe_ratio(first, second),
            cells: compared(&both, deltas),
            only_in_first: only(first_measured, second_measured),
            only_in_second: only(second_measured, first_measured),
            deltas,
        }
    }

    /// Whether something takes longer in the second run, by more than δ.
    pub fn slower(&self) -> bool {
        self.cells.iter().any(|cell| cell.answer == Answer::Slower)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    cell: String,
    variant: String,
    /// What is measured and how, so that runs of different experiments are not mixed up.
    measure: Measure,
    workload: String,
    one_after_another: bool,
}

/// A variant in a cell of one run.
struct MeasuredVariant {
    state: State,
    /// Cell and variant in plain words.
    plain: String,
    /// The runs as timed, and without waiting for a processor.
    runs: Runs,
    undisturbed: Option<Runs>,
}

fn measured(run: &Run) -> BTreeMap<Key, MeasuredVariant> {
    let mut measured = BTreeMap::new();
    for (part, cell) in run.definition.cells() {
        let part = &run.definition.parts[part];
        let id = cell.id();
        let samples = run.samples.iter().filter(|sample| sample.cell == id);
        let points = Observations::of(samples, &part.variants, part.measure);
        for (index, variant) in part.variants.iter().enumerate() {
            let runs = points.runs(index, false);
            let undisturbed = points.tell_waits(index).then(|| points.runs(index, true));
            if !runs.is_empty() {
                let key = Key {
                    cell: id.clone(),
                    variant: variant.clone(),
                    measure: part.measure,
                    workload: part.workload.clone(),
                    one_after_another: part.order == Order::OneAfterAnother,
                };
                let plain = described(part, &cell, variant);
                let state = cell.state;
                measured.insert(key, MeasuredVariant { state, plain, runs, undisturbed });
            }
        }
    }
    measured
}

fn compared(both: &[(&Key, [&MeasuredVariant; 2])], deltas: Deltas) -> Vec<CellChange> {
    let estimates: Vec<Option<Estimate>> =
        both.iter().map(|(_, [first, second])| estimate(first, second)).collect();
    let tested = both.iter().zip(&estimates);
    let tested = tested.map(|((_, [first, _]), &it)| Tested::new(it, deltas.of(first.state), 1.0));
    let answers = decide(&tested.collect::<Vec<_>>(), ERROR);
    both.iter()
        .zip(estimates)
        .zip(answers)
        .map(|(((key, of_both), estimate), answer)| {
            let ratio = estimate.map(|estimate| estimate.ratio(ERROR));
            CellChange {
                cell: key.cell.clone(),
                variant: key.variant.clone(),
                answer,
                ratio: ratio.map(|ratio| ratio.estimate),
                low: ratio.map(|ratio| ratio.interval.low),
                high: ratio.map(|ratio| ratio.interval.high),
                sessions: of_both.map(MeasuredVariant::sessions),
                plain: of_both[0].plain.clone(),
            }
        })
        .collect()
}

impl MeasuredVariant {
    fn sessions(&self) -> usize {
        self.runs.keys().map(|(session, _)| session).collect::<BTreeSet<_>>().len()
    }
}

/// The second run over the first. Waiting for a processor is left out where both runs tell of it.
fn estimate(first: &MeasuredVariant, second: &MeasuredVariant) -> Option<Estimate> {
    match (&first.undisturbed, &second.undisturbed) {
        (Some(first), Some(second)) => unpaired(second, first),
        _ => unpaired(&second.runs, &first.runs),
    }
}

fn probe_ratio(first: &Run, second: &Run) -> Option<f64> {
    let middle = |run: &Run| median(run.samples.iter().map(|sample| sample.probe_ns as f64));
    Some(middle(second)? / middle(first).filter(|&ns| ns > 0.0)?)
}

/// A field that follows how much memory is free, and the share that is no difference of it.
const WANDERS: &str = "dirty_background_bytes";
const WANDERS_BY: f64 = 0.1;

/// Whether two values of a field are the same as far as they explain anything.
fn same(name: &str, first: &str, second: &str) -> bool {
    match (first.parse::<f64>(), second.parse::<f64>()) {
        (Ok(one), Ok(other)) if name == WANDERS => {
            (one - other).abs() <= WANDERS_BY * one.max(other)
        }
        _ => first == second,
    }
}

/// What differs between two environments, field by field. A field that one version could not read
/// and another does not have is no difference.
fn differences(first: &Value, second: &Value) -> Vec<Difference> {
    let of_both: [BTreeMap<String, String>; 2] =
        [first, second].map(|environment| fields(environment).into_iter().collect());
    let names: BTreeSet<&String> = of_both.iter().flat_map(BTreeMap::keys).collect();
    let explains = names.into_iter().filter(|name| !NO_DIFFERENCE.contains(&name.as_str()));
    let both = explains.map(|name| {
        let [first, second] =
            of_both.each_ref().map(|of| of.get(name).map_or(UNKNOWN, String::as_str).to_owned());
        Difference { field: name.clone(), first, second }
    });
    both.filter(|it| !same(&it.field, &it.first, &it.second)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    const DELTAS: Deltas = Deltas { warm: 0.02, cold: 0.02 };

    const VARIANTS: [&str; 3] = ["sendfile", "read_write", "splice"];

    /// A run of each of these, in which the times of the three variants are multiplied by three factors.
    /// One run of five waits for a processor, many times as long as it takes.
    fn runs<const N: usize>(factors: [[f64; 3]; N]) -> [Run; N] {
        let mut made = Synthetic::new("copy", &VARIANTS, &["1M"]);
        factors.map(|factors| {
            made.samples.clear();
            let place =
                |name: &str| VARIANTS.iter().position(|it| *it == name).expect("one of them");
            made.measure(40, 3, |_, variant| 300_000.0 * factors[place(variant)]);
            for (nth, sample) in made.samples.iter_mut().enumerate() {
                let waited_ns = if nth % 5 == 0 { 4_000_000 } else { 0 };
                sample.measured.elapsed_ns += waited_ns;
                sample.measured.processor_wait_ns = Some(waited_ns);
            }
            made.run()
        })
    }

    #[test]
    fn each_variant_gets_its_answer() {
        let [first, second] = runs([[1.0; 3], [1.1, 1.0, 0.8]]);
        let change = Change::of(&first, &second, DELTAS);
        let answers: Vec<(&str, Answer)> =
            change.cells.iter().map(|cell| (cell.variant.as_str(), cell.answer)).collect();
        assert_eq!(
            answers,
            [
                ("read_write", Answer::Equivalent),
                ("sendfile", Answer::Slower),
                ("splice", Answer::Faster)
            ]
        );
        assert!(change.slower() && change.environment.is_empty());
        assert_eq!(change.probe_ratio, Some(1.0));
        let said = change.sentence();
        let expected = "most of all splice for files of 1 MiB in the page cache: 0.8";
        assert!(
            said.starts_with("2 of 3 comparisons changed, ") && said.contains(expected),
            "{said}"
        );
        let expected = " 1 is faster now, 1 slower, 1 the same as far as it matters and 0 too close to \
                        call.";
        assert!(said.ends_with(expected), "{said}");
        let sendfile = &change.cells[1];
        assert!((sendfile.ratio.expect("a ratio") - 1.1).abs() < 0.02, "{sendfile:?}");
        // A difference that does not matter is none.
        let large = Deltas { warm: 0.5, cold: 0.5 };
        let none = Change::of(&first, &second, large);
        assert!(!none.slower());
        assert_eq!(
            none.sentence(),
            "Nothing changed by a difference that matters, in 3 comparisons."
        );
    }

    #[test]
    fn equal_runs_seldom_differ() {
        let none = Deltas { warm: 0.0, cold: 0.0 };
        let runs = runs([[1.0; 3]; 60]);
        let differ = runs.chunks(2).filter(|pair| {
            let change = Change::of(&pair[0], &pair[1], none);
            change.cells.iter().any(|cell| cell.answer != Answer::Unresolved)
        });
        assert!(differ.count() <= 5);
    }

    #[test]
    fn what_only_one_run_has_is_told() {
        let [mut first, second] = runs([[1.0; 3]; 2]);
        first.samples.retain(|sample| sample.variant != "splice");
        let change = Change::of(&first, &second, DELTAS);
        assert_eq!(change.only_in_second, ["part/1M: splice"]);
        assert!(change.only_in_first.is_empty() && change.cells.len() == 2);
        first.samples.retain(|sample| sample.session == 1);
        let change = Change::of(&first, &second, DELTAS);
        assert!(change.cells.iter().all(|cell| cell.answer == Answer::Unresolved));
        assert_eq!(change.cells[0].ratio, None);
        let expected =
            "Nothing is shown to have changed; 2 of 2 comparisons are too close to call.";
        assert_eq!(change.sentence(), expected);
    }

    #[test]
    fn environments_are_compared_field_by_field() {
        let first = serde_json::json!({
            "kernel": "Linux 1", "seed": 1, "dst": { "path": "/a", "mount_options": "rw" },
            "cpu_count": 2, "new": null, "dirty_background_bytes": 1000
        });
        let second = serde_json::json!({
            "kernel": "Linux 2", "seed": 2, "dst": { "path": "/b", "mount_options": "rw,sync" },
            "cpu_count": 2, "dirty_background_bytes": 1050
        });
        let found = differences(&first, &second);
        let names: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(names, ["dst.mount_options", "kernel"]);
        assert_eq!((found[1].first.as_str(), found[1].second.as_str()), ("Linux 1", "Linux 2"));
    }
}
