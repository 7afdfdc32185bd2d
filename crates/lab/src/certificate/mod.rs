//! The certificate: how often the protocol is right on this machine, from comparisons whose truth
//! is known.
//!
//! The comparisons are an experiment, run by the same conductor as any other, so that what is
//! certified is what is used. Each comparison is a part of its own: it is one question and not one
//! of a family.

pub mod known_comparisons;
pub mod prover_check;
pub mod store;
pub mod words;

use known_comparisons::{Truth, truth};
use serde::{Deserialize, Serialize};
use words::share_in_words;

use crate::analysis::interim;
use crate::conduct::cell_run::CellRun;
use crate::definition::deltas::{Deltas, LEAST};
use crate::definition::{Definition, Part};
use crate::page_cache::state::State;
use crate::stats::{Answer, Share, artefacts, median, quantile, smallest_effect};
use crate::verdict::{Comparison, Verdict};
use prover_check::{Finding, ProverCheck};

/// The version of the form of a certificate.
pub const SCHEMA: u32 = 1;

/// The largest accepted share of identical variants that are reported as different.
const FALSE_MAX: f64 = 0.05;

/// The required shares of variants slower by 5 % and by 10 % that are found.
const FOUND_5_MIN: f64 = 0.8;
const FOUND_10_MIN: f64 = 0.95;

/// Pairs of identical variants count for δ only if half their interval is at most this. With a
/// wider interval the distance of the ratio from 1 only shows how little time there was.
const PRECISE: f64 = 0.05;

/// The share of slow modes that has to be seen in the runs.
const SEEN_MIN: f64 = 0.8;

/// A comparison and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The cell's short name.
    pub cell: String,
    /// What is true of it.
    pub truth: Truth,
    /// Whether the source comes from a device.
    pub cold: bool,
    /// The answer with the certified δ; for identical variants with δ = 2 %.
    pub answer: Answer,
    /// The ratio measured, with its 95 % interval; none with too few sessions.
    pub ratio: Option<f64>,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The least effect that so many sessions find beyond δ in four cases of five, as a share.
    pub smallest_effect: Option<f64>,
    /// Whether a slow mode is seen in the runs of the variant that has one.
    pub mode_seen: Option<bool>,
    /// Sessions measured.
    pub sessions: u32,
    /// Rounds measured.
    pub rounds: u32,
    /// Time spent on it.
    pub seconds: f64,
}

/// The answers on variants that are slower by one share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slower {
    /// The share.
    pub by: f64,
    /// Variants that are found: reported as slower by more than δ.
    pub found: Share,
    /// Variants whose interval excludes that there is no difference.
    pub told_from_none: Share,
    /// Variants whose interval contains the true ratio.
    pub held: Share,
}

/// A criterion that the protocol has to meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// The criterion and the result, as text.
    pub words: String,
    /// Whether it is met; `None` if nothing was measured that shows it.
    pub passed: Option<bool>,
}

/// The answers of the protocol on comparisons whose truth is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The version of this form.
    pub schema: u32,
    /// Whether all criteria were measured and met.
    pub passes: bool,
    /// The criteria.
    pub criteria: Vec<Criterion>,
    /// The larger of 2 % and `same_distance_p95`: δ on this machine.
    pub deltas: Deltas,
    /// The 95th percentile of |ratio - 1| of two identical variants in the warm state, of those
    /// that were measured to within 5 %.
    pub same_distance_p95: Option<f64>,
    /// The 95th percentile of |ratio - 1| of two identical variants in the cold state; none where
    /// that state cannot be reached.
    pub same_distance_cold_p95: Option<f64>,
    /// Pairs of identical variants of which one is reported as faster or slower.
    pub false_positives: Share,
    /// Pairs of identical variants whose interval contains 1.
    pub same_held: Share,
    /// The answers on slowed variants.
    pub slower: Vec<Slower>,
    /// Slow modes that are taken for a difference of typical runs.
    pub mode_mistaken: Share,
    /// Slow modes that are seen in the runs.
    pub mode_seen: Share,
    /// Buffers of 4 KiB that are found to be slower than those of 64 KiB.
    pub control_found: Share,
    /// The median over pairs of identical variants of the least effect that is found beyond δ, as a
    /// share.
    pub smallest_effect_median: Option<f64>,
    /// The effect that is found in nine of ten.
    pub smallest_effect_p90: Option<f64>,
    /// The page cache's states, checked by means other than the prover.
    pub prover: Vec<ProverCheck>,
    /// Each comparison.
    pub cells: Vec<Cell>,
}

impl Certificate {
    /// Judges what was measured.
    pub fn of(definition: &Definition, runs: &[CellRun], prover: Vec<ProverCheck>) -> Certificate {
        let judged = |shares: Deltas| -> Vec<Cell> {
            let verdict = Verdict::of(definition, runs, shares, None);
            let cell = |run: &CellRun| {
                let mut cells = verdict.parts[run.part].cells.iter();
                let comparison = cells.find_map(|cell| cell.comparisons.first())?;
                let delta = shares.of(run.cell.state);
                Cell::of(&definition.parts[run.part], run, comparison, delta)
            };
            runs.iter().filter_map(cell).collect()
        };
        let least = judged(LEAST);
        let p95 = |cold: bool| {
            let same = least.iter().filter(|it| it.truth == Truth::Same && it.cold == cold);
            let distances: Vec<f64> = same
                .filter(|it| it.is_precise())
                .filter_map(|it| Some((it.ratio? - 1.0).abs()))
                .collect();
            quantile(&distances, 0.95)
        };
        let (warm, cold) = (p95(false), p95(true));
        let mut cells = judged(deltas(warm, cold));
        // A δ that follows from what identical variants differ by must not make them equivalent.
        for (cell, least) in cells.iter_mut().zip(&least) {
            if cell.truth == Truth::Same {
                cell.answer = least.answer;
            }
        }
        Certificate::from_cells(cells, (warm, cold), prover)
    }

    fn from_cells(
        cells: Vec<Cell>,
        (warm, cold): (Option<f64>, Option<f64>),
        prover: Vec<ProverCheck>,
    ) -> Certificate {
        let of = |truth: fn(&Truth) -> bool| -> Vec<&Cell> {
            cells.iter().filter(|cell| truth(&cell.truth)).collect()
        };
        let same = of(|truth| *truth == Truth::Same);
        let at_times = of(|truth| matches!(truth, Truth::SlowAtTimes { .. }));
        let effects: Vec<f64> = same.iter().filter_map(|cell| cell.smallest_effect).collect();
        let differs = |cell: &&Cell| matches!(cell.answer, Answer::Faster | Answer::Slower);
        let is_measured = |cell: &&Cell| cell.low.is_some();
        let measured = same.iter().copied().filter(is_measured);
        let mut certificate = Certificate {
            schema: SCHEMA,
            passes: false,
            criteria: Vec::new(),
            deltas: deltas(warm, cold),
            same_distance_p95: warm,
            same_distance_cold_p95: cold,
            false_positives: Share::of(measured.clone(), differs),
            same_held: Share::of(measured, |cell| cell.holds(1.0)),
            slower: [0.02, 0.05, 0.10].map(|by| Slower::of(&cells, by)).to_vec(),
            mode_mistaken: Share::of(at_times.iter().copied().filter(is_measured), differs),
            mode_seen: Share::of(at_times.iter().copied(), |cell| cell.mode_seen == Some(true)),
            control_found: Share::of(of(|truth| *truth == Truth::Control), |cell| {
                cell.answer == Answer::Slower
            }),
            smallest_effect_median: median(&effects),
            smallest_effect_p90: quantile(&effects, 0.9),
            prover,
            cells: Vec::new(),
        };
        certificate.cells = cells;
        certificate.criteria = certificate.judged();
        certificate.passes = certificate.criteria.iter().all(|it| it.passed == Some(true));
        certificate
    }

    fn judged(&self) -> Vec<Criterion> {
        let slower = |by: f64| self.slower.iter().find(|it| it.by == by).map(|it| it.found);
        let [five, ten] = [0.05, 0.10].map(|by| slower(by).unwrap_or_default());
        let of = |what: &str, share: Share, wanted: &str, is_met: fn(f64) -> bool| Criterion {
            words: format!("{what}: {}, {wanted}", share_in_words(share)),
            passed: share.value().map(is_met),
        };
        let same = "Of two identical variants, one is reported as slower";
        let control = "Buffers of 4 KiB are found to be slower than those of 64 KiB";
        let mode = "A variant that is slow at times is reported as slower in typical runs";
        let mut criteria = vec![
            of(same, self.false_positives, "at most 5 %", |share| share <= FALSE_MAX),
            of("A slowdown of 5 % is found", five, "at least 80 %", |it| it >= FOUND_5_MIN),
            of("A slowdown of 10 % is found", ten, "at least 95 %", |it| it >= FOUND_10_MIN),
            of(control, self.control_found, "all", |share| share >= 1.0),
            of(mode, self.mode_mistaken, "at most 5 %", |share| share <= FALSE_MAX),
            of("Its slow runs are detected", self.mode_seen, "at least 80 %", |it| it >= SEEN_MIN),
        ];
        criteria.extend(self.prover.iter().map(|check| Criterion {
            words: check.words.clone(),
            // Where nothing is claimed nothing is wrong: such samples are called unverified.
            passed: Some(check.finding != Finding::Differs),
        }));
        criteria
    }
}

/// The differences that do not matter where identical variants differ by so much, in both states.
fn deltas(warm: Option<f64>, cold: Option<f64>) -> Deltas {
    Deltas { warm: warm.unwrap_or(0.0), cold: cold.unwrap_or(0.0) }.larger(LEAST)
}

impl Slower {
    fn of(cells: &[Cell], by: f64) -> Slower {
        let such = || cells.iter().filter(move |cell| cell.truth == Truth::Slower { by });
        Slower {
            by,
            found: Share::of(such(), |cell| cell.answer == Answer::Slower),
            told_from_none: Share::of(such(), |cell| cell.low.is_some_and(|low| low > 1.0)),
            held: Share::of(such().filter(|cell| cell.low.is_some()), |cell| cell.holds(1.0 + by)),
        }
    }
}

impl Cell {
    /// `None` when the part compares nothing, or what it compares does not work here.
    fn of(part: &Part, run: &CellRun, comparison: &Comparison, delta: f64) -> Option<Cell> {
        let truth = truth(part)?;
        let (variant, baseline) = run.compared(part).first().copied()?;
        let sessions = run.points.compare(variant, baseline);
        let smallest = sessions.session_deviation().map(|session_sd| {
            let beyond = smallest_effect(session_sd, sessions.count(), interim::ERROR);
            (1.0 + delta) * (1.0 + beyond) - 1.0
        });
        Some(Cell {
            cell: run.cell.id(),
            truth,
            cold: run.cell.state == State::Cold,
            answer: comparison.answer,
            ratio: comparison.ratio,
            low: comparison.low,
            high: comparison.high,
            smallest_effect: smallest,
            mode_seen: matches!(truth, Truth::SlowAtTimes { .. })
                .then(|| mode_seen(run, variant, baseline)),
            sessions: run.sessions,
            rounds: run.rounds,
            seconds: run.spent.as_secs_f64(),
        })
    }

    /// Whether it was measured precisely enough to show the machine and not the lack of time.
    fn is_precise(&self) -> bool {
        self.low.zip(self.high).is_some_and(|(low, high)| (high / low).ln() / 2.0 <= PRECISE)
    }

    fn holds(&self, ratio: f64) -> bool {
        let within = |low: f64, high: f64| low <= ratio && ratio <= high;
        self.low.zip(self.high).is_some_and(|(low, high)| within(low, high))
    }
}

/// Whether the runs of the variant show a slow mode that those of the other do not.
fn mode_seen(run: &CellRun, variant: usize, baseline: usize) -> bool {
    let [values, others] =
        [variant, baseline].map(|side| run.points.relative_values(side, baseline));
    artefacts::slow_mode_beside(&values, &others).is_some_and(|it| it.is_beyond_noise())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(truth: Truth, answer: Answer, ratio: f64) -> Cell {
        Cell {
            cell: "c".to_owned(),
            truth,
            cold: false,
            answer,
            ratio: Some(ratio),
            low: Some(ratio / 1.01),
            high: Some(ratio * 1.01),
            smallest_effect: Some(0.03),
            mode_seen: matches!(truth, Truth::SlowAtTimes { .. }).then_some(true),
            sessions: 5,
            rounds: 5,
            seconds: 1.0,
        }
    }

    fn good() -> Vec<Cell> {
        let mut cells = vec![cell(Truth::Same, Answer::Equivalent, 1.0); 19];
        cells.push(cell(Truth::Same, Answer::Slower, 1.03));
        cells.extend(vec![cell(Truth::Slower { by: 0.05 }, Answer::Slower, 1.05); 4]);
        cells.push(cell(Truth::Slower { by: 0.05 }, Answer::Unresolved, 1.02));
        cells.extend(vec![cell(Truth::Slower { by: 0.10 }, Answer::Slower, 1.10); 5]);
        cells.push(cell(Truth::Slower { by: 0.02 }, Answer::Unresolved, 1.02));
        cells.push(cell(Truth::SlowAtTimes { share: 0.1 }, Answer::Equivalent, 1.0));
        cells.push(cell(Truth::Control, Answer::Slower, 1.4));
        cells
    }

    fn certificate(cells: Vec<Cell>) -> Certificate {
        Certificate::from_cells(cells, (Some(0.01), None), Vec::new())
    }

    #[test]
    fn what_the_protocol_asks_for_passes_and_less_fails() {
        let passing = certificate(good());
        assert!(passing.passes, "{:?}", passing.criteria);
        assert_eq!((passing.false_positives.count, passing.same_held.count), (1, 19));
        assert_eq!(passing.slower[1].found, Share { count: 4, of: 5 });
        assert_eq!(passing.slower[1].held, Share { count: 4, of: 5 });
        assert_eq!(passing.slower[0].told_from_none, Share { count: 1, of: 1 });
        let fails = |change: &dyn Fn(&mut Vec<Cell>), words: &str| {
            let mut cells = good();
            change(&mut cells);
            let failed = certificate(cells);
            assert!(!failed.passes);
            let reasons: Vec<&Criterion> =
                failed.criteria.iter().filter(|it| it.passed != Some(true)).collect();
            assert!(reasons.len() == 1 && reasons[0].words.contains(words), "{reasons:?}");
        };
        fails(
            &|cells| cells[0].answer = Answer::Faster,
            "two identical variants, one is reported as slower",
        );
        fails(&|cells| cells[20].answer = Answer::Equivalent, "slowdown of 5 %");
        fails(&|cells| cells[25].answer = Answer::Unresolved, "slowdown of 10 %");
        fails(&|cells| cells[31].answer = Answer::Slower, "slow at times is reported as slower");
        fails(&|cells| cells[31].mode_seen = Some(false), "slow runs are detected");
        fails(&|cells| cells[32].answer = Answer::Unresolved, "4 KiB");
        fails(
            &|cells| drop(cells.remove(32)),
            "4 KiB are found to be slower than those of 64 KiB: not measured",
        );
    }

    #[test]
    fn a_prover_that_is_wrong_fails_and_one_that_proves_nothing_does_not() {
        let with = |finding| {
            let check = ProverCheck { state: State::Cold, finding, words: "cold: so".to_owned() };
            Certificate::from_cells(good(), (None, None), vec![check]).passes
        };
        assert!(with(Finding::Agrees) && with(Finding::NotProved) && !with(Finding::Differs));
    }
}
