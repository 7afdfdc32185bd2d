//! The verdict of a run: the answer of every comparison with its interval, by part and cell.
//! Without I/O.

pub(crate) mod answer_ranges;
pub mod conclusion;
pub mod headline;
mod notes;
mod plain_names;
pub mod resolve;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

use crate::analysis::artefacts;
use crate::analysis::claims::{self, TestedClaim};
use crate::analysis::interim::{self, ERROR};
use crate::analysis::view::{Rules, View};
use crate::conduct::cell_run::CellRun;
use crate::definition::deltas::Deltas;
use crate::definition::{Definition, Measure, Order, Part};
use crate::run_dir::Run;
use crate::sample::record::Sample;
use crate::sample::run_samples::MachineFacts;
use crate::stats::{Answer, InterimAnalyses, Sessions, Tested, decide, median};
use crate::studies::{self, Finding};

/// The verdict of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The version of this form.
    pub schema: u32,
    /// The experiment's question.
    pub question: String,
    /// Differences up to this share do not matter, in the warm state.
    pub delta: f64,
    /// Differences up to this share do not matter, in the cold state.
    #[serde(default = "Deltas::least")]
    pub delta_cold: f64,
    /// Where δ comes from, in words.
    pub delta_from: String,
    /// What the certificate says of this machine; empty without one.
    #[serde(default)]
    pub certificate: String,
    /// Published claims, and whether they hold here.
    #[serde(default)]
    pub claims: Vec<TestedClaim>,
    /// Each part's answer.
    pub parts: Vec<PartVerdict>,
    /// What else a reader has to know, in sentences.
    pub notes: Vec<String>,
}

/// The answer of one part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartVerdict {
    /// The part.
    pub part: String,
    /// The question of the part.
    pub question: String,
    /// The answer in sentences.
    pub sentence: String,
    /// The variant that the others are compared with; empty for none.
    pub baseline: String,
    /// What is compared.
    pub measure: Measure,
    /// Each cell.
    pub cells: Vec<CellVerdict>,
    /// The findings of analyses.
    #[serde(default)]
    pub analyses: Vec<Finding>,
}

/// The verdict of one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellVerdict {
    /// The short name of the cell.
    pub cell: String,
    /// The variant with the least time of those that work, by ratio to the baseline within rounds
    /// where there is one, and by median otherwise; never a floor. Whether it is shown to be faster
    /// is told by the comparisons.
    pub fastest: Option<String>,
    /// Sessions measured.
    pub sessions: u32,
    /// Rounds measured and kept.
    pub rounds: u32,
    /// Disturbed rounds that were run again.
    pub rounds_again: u32,
    /// Rounds that were disturbed at every repetition, and count nevertheless.
    pub rounds_disturbed: u32,
    /// Runs whose page cache state was not reached.
    pub runs_not_counted: usize,
    /// Time spent on its sessions.
    #[serde(default)]
    pub seconds: f64,
    /// Each variant in itself.
    pub variants: Vec<VariantSummary>,
    /// Each comparison with the baseline.
    pub comparisons: Vec<Comparison>,
}

/// One variant in one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantSummary {
    /// The variant.
    pub variant: String,
    /// Counted runs.
    pub runs: usize,
    /// The median of the counted runs, of what is compared.
    pub median_ns: Option<f64>,
    /// Why it does not work here; empty when it does.
    pub refused: String,
    /// The copies of the variant share the source's extents, so that its times are none of moving
    /// bytes.
    #[serde(default)]
    pub shares_extents: bool,
}

/// One variant against the baseline in one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The variant.
    pub variant: String,
    /// What can be said, corrected for the number of comparisons and of interim analyses.
    pub answer: Answer,
    /// The variant moves no file and is there to compare with: no part of the answer, and not
    /// corrected for.
    #[serde(default)]
    pub floor: bool,
    /// The variant's time over the baseline's.
    pub ratio: Option<f64>,
    /// The lower end of the 95 % interval, over all interim analyses.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// For an unresolved comparison, about how many seconds this cell needs in all; `None` if no
    /// time suffices.
    pub seconds_needed: Option<f64>,
}

/// The version of the form of a verdict.
const SCHEMA: u32 = 1;

impl Verdict {
    /// The verdict on what was measured, where differences up to `deltas` do not matter.
    pub fn of(
        definition: &Definition,
        cells: &[CellRun],
        deltas: Deltas,
        rounds: Option<u32>,
    ) -> Verdict {
        let interim = interim::of_parts(definition, rounds);
        let alone = interim::of_family(rounds, 1);
        let part = |(index, part): (usize, &Part)| {
            let of: Vec<&CellRun> = cells.iter().filter(|cell| cell.part == index).collect();
            PartVerdict::of(definition, part, &of, deltas, [&interim[index], &alone])
        };
        Verdict {
            schema: SCHEMA,
            question: definition.question.clone(),
            delta: deltas.warm,
            delta_cold: deltas.cold,
            delta_from: String::new(),
            certificate: String::new(),
            claims: Vec::new(),
            parts: definition.parts.iter().enumerate().map(part).collect(),
            notes: notes::notes(cells),
        }
    }

    /// The verdict with the findings of analyses and with warnings about artefacts, from the samples
    /// of `run`. `rounds` is the number that the user asked for.
    pub fn analysed(mut self, run: &Run, rounds: Option<u32>) -> Verdict {
        let definition = &run.definition;
        let deltas = Deltas { warm: self.delta, cold: self.delta_cold };
        let views = View::all(definition, run.samples(), Rules { deltas, rounds });
        for (index, part) in self.parts.iter_mut().enumerate() {
            part.analyses = studies::findings(&views, index);
            if part.note_shared_extents(&views[index]) {
                part.sentence = part.in_words(definition, &definition.parts[index]);
            }
        }
        self.claims = claims::tested(definition, &views);
        self.notes.extend(artefacts::of(&views, MachineFacts::of(&run.environment)));
        self
    }

    /// Every comparison of every part that is an answer.
    pub fn comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.parts.iter().flat_map(PartVerdict::asked)
    }
}

impl PartVerdict {
    /// The verdict on the cells of a part. The interim analyses are those for all comparisons of the part
    /// together, which the answers follow from, and for each of them by itself, of which the intervals are.
    fn of<'r>(
        definition: &Definition,
        part: &Part,
        cells: &[&'r CellRun],
        deltas: Deltas,
        [of_family, alone]: [&InterimAnalyses; 2],
    ) -> PartVerdict {
        // Runs one after another do not separate the variant from its position in the order, so
        // they get neither a ratio nor an answer.
        let shuffled = part.order == Order::Shuffled;
        let all = |pairs: fn(&CellRun, &Part) -> Vec<(usize, usize)>| -> Vec<Compared<'r>> {
            let cells = cells.iter().copied().enumerate().filter(|_| shuffled);
            let of_cell = |(place, run): (usize, &'r CellRun)| {
                let (delta, pairs) = (deltas.of(run.cell.state), pairs(run, part).into_iter());
                let of = |(variant, baseline)| {
                    let sessions = run.points.compare(variant, baseline);
                    Compared { place, run, variant, sessions, delta }
                };
                pairs.map(of).collect::<Vec<_>>()
            };
            cells.flat_map(of_cell).collect()
        };
        let compared = all(CellRun::compared);
        let share = ERROR / part.comparisons() as f64;
        let tested = compared
            .iter()
            .map(|it| Tested::new(it.sessions.estimate(), it.delta, it.level(of_family) / share));
        let answers = decide(&tested.collect::<Vec<_>>(), ERROR);
        // The level at which the first of the unresolved comparisons is resolved.
        let open = answers.iter().filter(|&&answer| answer == Answer::Unresolved).count();
        let level_needed = ERROR / open.max(1) as f64;
        let mut verdicts: Vec<CellVerdict> =
            cells.iter().map(|run| CellVerdict::of(part, run)).collect();
        for (it, answer) in compared.iter().zip(answers) {
            let comparison = it.comparison(part, answer, it.level(alone));
            let open = answer == Answer::Unresolved;
            let seconds_needed = it.seconds_needed(level_needed).filter(|_| open);
            verdicts[it.place].comparisons.push(Comparison { seconds_needed, ..comparison });
        }
        for it in all(CellRun::floors) {
            let alpha = it.level(alone);
            let answer = Answer::of(&it.sessions, it.delta, alpha);
            let comparison = it.comparison(part, answer, alpha);
            verdicts[it.place].comparisons.push(Comparison { floor: true, ..comparison });
        }
        for verdict in &mut verdicts {
            verdict.find_fastest(&part.baseline);
        }
        let mut verdict = PartVerdict {
            part: part.name.clone(),
            question: part.question.clone(),
            sentence: String::new(),
            baseline: part.baseline.clone(),
            measure: part.measure,
            cells: verdicts,
            analyses: Vec::new(),
        };
        verdict.sentence = verdict.in_words(definition, part);
        verdict
    }

    /// Finds from the samples which variants share extents, and returns whether any does.
    fn note_shared_extents(&mut self, view: &View<'_>) -> bool {
        let mut any = false;
        for (cell, samples) in self.cells.iter_mut().zip(&view.cells) {
            for (variant, counted) in cell.variants.iter_mut().zip(&samples.counted) {
                let shares = |record: &&Sample| record.measured.shares_extents;
                variant.shares_extents = counted.iter().any(shares);
                any |= variant.shares_extents;
            }
        }
        any
    }
}

impl CellVerdict {
    fn of(part: &Part, run: &CellRun) -> CellVerdict {
        let summary = |(index, variant): (usize, &String)| {
            let values = run.points.values(index);
            VariantSummary {
                variant: variant.clone(),
                runs: values.len(),
                median_ns: median(&values),
                refused: run.refused[index].clone().unwrap_or_default(),
                shares_extents: false,
            }
        };
        let variants: Vec<VariantSummary> = part.variants.iter().enumerate().map(summary).collect();
        let works = variants.iter().filter(|variant| variant.refused.is_empty());
        let moves = works.filter(|variant| !part.is_beside(&variant.variant));
        let timed = moves.filter_map(|variant| Some((variant, variant.median_ns?)));
        let fastest = timed.min_by(|a, b| a.1.total_cmp(&b.1));
        CellVerdict {
            cell: run.cell.id(),
            fastest: fastest.map(|(variant, _)| variant.variant.clone()),
            sessions: run.sessions,
            rounds: run.rounds,
            rounds_again: run.rounds_again,
            rounds_disturbed: run.rounds_disturbed,
            runs_not_counted: run.points.not_counted(),
            seconds: run.spent.as_secs_f64(),
            variants,
            comparisons: Vec::new(),
        }
    }

    /// Variants leave when their comparison is answered, so medians may come from different times.
    /// Ratios come from the same rounds.
    fn find_fastest(&mut self, baseline: &str) {
        let ratios = self.asked().filter_map(|c| Some((c.variant.as_str(), c.ratio?)));
        if let Some(least) = ratios.min_by(|a, b| a.1.total_cmp(&b.1)) {
            let fastest = if least.1 < 1.0 { least.0 } else { baseline };
            self.fastest = Some(fastest.to_owned());
        }
    }
}

/// A variant and the baseline in one cell.
struct Compared<'r> {
    /// The place of the cell among those of the part.
    place: usize,
    run: &'r CellRun,
    variant: usize,
    sessions: Sessions,
    /// Differences up to this share do not matter.
    delta: f64,
}

impl Compared<'_> {
    fn level(&self, interim: &InterimAnalyses) -> f64 {
        let last_session = self.run.points.last_session(self.variant);
        let so_far = (last_session, self.run.answered[self.variant]);
        interim::level(interim, &self.sessions, so_far, self.delta)
    }

    /// The comparison with its interval at the level `alpha`.
    fn comparison(&self, part: &Part, answer: Answer, alpha: f64) -> Comparison {
        let ratio = self.sessions.ratio(alpha);
        Comparison {
            variant: part.variants[self.variant].clone(),
            answer,
            floor: false,
            ratio: ratio.map(|ratio| ratio.estimate),
            low: ratio.map(|ratio| ratio.interval.low),
            high: ratio.map(|ratio| ratio.interval.high),
            seconds_needed: None,
        }
    }

    /// About how many seconds the cell needs in all to resolve the comparison at this level.
    fn seconds_needed(&self, level: f64) -> Option<f64> {
        let sessions = self.sessions.sessions_needed(self.delta, level)?;
        let each = self.run.spent.as_secs_f64() / f64::from(self.run.sessions.max(1));
        Some(sessions as f64 * each).filter(|seconds| *seconds > 0.0)
    }
}
