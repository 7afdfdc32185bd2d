//! The answers of a report in sentences.

use lab::compare::{Change, Difference};
use lab::verdict::PartVerdict;
use lab::verdict::conclusion::Conclusion;
use lab::words::three_digits;

use crate::source::Source;

/// The answer to the question of a run: that of its main part.
pub fn of_run(source: &Source) -> Conclusion {
    let main = source.verdict.main_part(&source.run.definition);
    main.map_or_else(Conclusion::default, |part| of_part(source, part))
}

/// The answer of a part. A part that compares nothing has its own sentence.
pub fn of_part(source: &Source, part: &PartVerdict) -> Conclusion {
    match part.conclusion(&source.run.definition) {
        none if none.sentence.is_empty() => {
            Conclusion { sentence: part.sentence.clone(), ..Conclusion::default() }
        }
        conclusion => conclusion,
    }
}

/// What changed between two runs: first the answer, then the other differences.
pub fn of_change(change: &Change) -> Vec<String> {
    let mut sentences = vec![change.sentence()];
    sentences.extend(of_environments(change));
    for (which, only) in [("first", &change.only_in_first), ("second", &change.only_in_second)] {
        if !only.is_empty() {
            sentences
                .push(format!("{} variants of cells are in the {which} run only.", only.len()));
        }
    }
    sentences
}

/// What differs between the environments of two runs, and in the speed of the machine.
pub fn of_environments(change: &Change) -> Vec<String> {
    let speed = change.probe_ratio.map(|ratio| {
        format!(
            "A fixed piece of work took {} × the time in the second run; this part of the change is due to the \
             machine.",
            three_digits(ratio)
        )
    });
    let differs = |it: &Difference| format!("{}: {} → {}", it.field, it.first, it.second);
    speed.into_iter().chain(change.environment.iter().map(differs)).collect()
}
