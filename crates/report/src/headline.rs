//! The answer in a sentence, with its interval.

use lab::compare::{CellChange, Change, Difference};
use lab::stats::Answer;
use lab::verdict::{Comparison, PartVerdict};
use lab::words::three_digits;

use crate::palette::is_floor;
use crate::summary::{CellSummary, Summary, measure_words};

/// Comparisons that a part's own sentence names one by one, with their intervals.
const NAMED_MAX: usize = 4;

/// The conclusion of a part in short: the most important comparison with its interval, and the
/// number of comparisons with each answer. If the part's own sentence names all comparisons, it is
/// that sentence.
#[must_use]
pub fn short(summary: &Summary<'_>, verdict: &PartVerdict) -> String {
    let floors = is_floor(&verdict.baseline);
    let comparisons: Vec<&Comparison> = verdict
        .cells
        .iter()
        .flat_map(|cell| &cell.comparisons)
        .filter(|it| floors || !is_floor(&it.variant))
        .collect();
    let leading = if comparisons.len() > NAMED_MAX { leading(summary, verdict) } else { None };
    let Some(words) = leading else { return verdict.sentence.clone() };
    let count = |answer| comparisons.iter().filter(|it| it.answer == answer).count();
    format!(
        "{words} Of all {} comparisons with {}: {} faster, {} slower, {} equivalent, {} unresolved.",
        comparisons.len(),
        verdict.baseline,
        count(Answer::Faster),
        count(Answer::Slower),
        count(Answer::Equivalent),
        count(Answer::Unresolved)
    )
}

/// The conclusion of a part in full, with the part's own sentence.
#[must_use]
pub fn full(summary: &Summary<'_>, verdict: &PartVerdict) -> String {
    let comparisons: usize = verdict.cells.iter().map(|cell| cell.comparisons.len()).sum();
    let leading = if comparisons > NAMED_MAX { leading(summary, verdict) } else { None };
    match leading {
        Some(words) => format!("{words} {}", verdict.sentence),
        None => verdict.sentence.clone(),
    }
}

/// The variant with the smallest ratio to the baseline in the part's largest cell, and whether it
/// is shown to be faster. Among cells of that size, one in which a variant is shown to be faster
/// comes first.
fn leading(summary: &Summary<'_>, verdict: &PartVerdict) -> Option<String> {
    let cells = summary.cells.iter().filter(|cell| cell.part.name == verdict.part);
    let cell: &CellSummary<'_> = cells
        .filter(|cell| cell.verdict.is_some_and(|verdict| !verdict.comparisons.is_empty()))
        .max_by_key(|cell| (cell.cell.run_bytes(), cell.cell.at_once, shows_faster(cell)))?;
    // A floor copies no file. It is left out unless the baseline is a floor.
    let floors = is_floor(&verdict.baseline);
    let comparisons: Vec<&Comparison> =
        cell.verdict?.comparisons.iter().filter(|it| floors || !is_floor(&it.variant)).collect();
    let resolved =
        |answer: Answer| comparisons.iter().copied().filter(move |it| it.answer == answer);
    let least = |a: &&Comparison, b: &&Comparison| {
        a.ratio.unwrap_or(f64::INFINITY).total_cmp(&b.ratio.unwrap_or(f64::INFINITY))
    };
    let (baseline, what) = (&verdict.baseline, measure_words(verdict.measure));
    let at = cell.words();
    if let Some(best) = resolved(Answer::Faster).min_by(least) {
        let ratio = ratio_words(best)?;
        return Some(format!("At {at}, {} takes {ratio} the {what} of {baseline}.", best.variant));
    }
    let best = comparisons.iter().copied().min_by(least)?;
    let ratio = ratio_words(best)?;
    Some(format!(
        "At {at}, no variant is shown to be faster than {baseline}. {} has the smallest ratio: \
         {ratio} its {what}, {}.",
        best.variant,
        crate::figure::ratio::answer_words(best.answer)
    ))
}

fn shows_faster(cell: &CellSummary<'_>) -> bool {
    let comparisons = cell.verdict.map_or(&[][..], |verdict| &verdict.comparisons);
    comparisons.iter().any(|it| it.answer == Answer::Faster && !is_floor(&it.variant))
}

/// What changed between two runs: first the number of comparisons with each answer and the largest
/// change that is shown, then the other differences.
#[must_use]
pub fn of_change(change: &Change) -> Vec<String> {
    let count = |answer: Answer| change.cells.iter().filter(|it| it.answer == answer).count();
    let shown = |it: &&CellChange| matches!(it.answer, Answer::Faster | Answer::Slower);
    let size = |it: &CellChange| it.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let largest = change.cells.iter().filter(shown).max_by(|a, b| size(a).total_cmp(&size(b)));
    let mut first = format!(
        "Of {} comparisons, in the second run {} are faster, {} slower, {} equivalent and {} \
         unresolved.",
        change.cells.len(),
        count(Answer::Faster),
        count(Answer::Slower),
        count(Answer::Equivalent),
        count(Answer::Unresolved)
    );
    if let Some(CellChange {
        cell,
        variant,
        ratio: Some(ratio),
        low: Some(low),
        high: Some(high),
        ..
    }) = largest
    {
        let [ratio, low, high] = [*ratio, *low, *high].map(three_digits);
        first.push_str(&format!(
            " The largest change is that of {variant} at {cell}: {ratio} × the time (95 % interval \
             {low} to {high})."
        ));
    }
    let mut sentences = vec![first];
    if let Some(ratio) = change.probe_ratio {
        sentences.push(format!(
            "A fixed piece of work took {} × the time in the second run; this part of the change \
             is due to the machine.",
            three_digits(ratio)
        ));
    }
    let differs = |it: &Difference| format!("{}: {} → {}", it.field, it.first, it.second);
    sentences.extend(change.environment.iter().map(differs));
    for (which, only) in [("first", &change.only_in_first), ("second", &change.only_in_second)] {
        if !only.is_empty() {
            sentences
                .push(format!("{} variants of cells are in the {which} run only.", only.len()));
        }
    }
    sentences
}

fn ratio_words(comparison: &Comparison) -> Option<String> {
    let [ratio, low, high] =
        [comparison.ratio?, comparison.low?, comparison.high?].map(three_digits);
    Some(format!("{ratio} × (95 % interval {low} to {high})"))
}
