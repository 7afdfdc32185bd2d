//! The verdict of an experiment on one screen.

use lab::definition::Definition;
use lab::definition::deltas::Deltas;
use lab::run_dir::{Run, files};
use lab::studies::sheet::in_both_states;
use lab::verdict::{PartVerdict, Verdict};
use report::answer;
use report::columns::{wrapped, wrapped_behind};

/// The most columns of the names of parts.
const NAME_COLUMNS_MAX: usize = 16;

/// The question, the answer, what is unresolved, the other parts' answers, and the certificate. With
/// styles.
pub(super) fn render(
    definition: &Definition,
    verdict: &Verdict,
    run: &Run,
    columns: usize,
) -> String {
    let mut text = String::from("Summary\n");
    text.push_str(&wrapped(&definition.question, columns, ""));
    text.push('\n');
    text.push_str(&answer::render(definition, verdict, run, columns));
    text.push('\n');
    let main = &definition.main_part().name;
    let others: Vec<&PartVerdict> =
        verdict.parts.iter().filter(|part| part.part != *main).collect();
    let names = others.iter().map(|part| part.part.chars().count());
    let width = names.max().unwrap_or(0).min(NAME_COLUMNS_MAX) + 2;
    for part in others {
        let name = format!("{:<width$}", part.part);
        text.push_str(&wrapped_behind(&name, &answer::of_part(part, definition), columns));
    }
    let mut trust = format!(
        "Differences up to {} do not matter ({}).",
        in_both_states(Deltas { warm: verdict.delta, cold: verdict.delta_cold }),
        verdict.delta_from
    );
    if !verdict.certificate.is_empty() {
        trust.push_str(&format!(" This machine: {}.", verdict.certificate));
    }
    text.push_str(&wrapped(&trust, columns, ""));
    let notes = match verdict.notes.len() {
        0 => String::new(),
        1 => ", with a note on the samples".to_owned(),
        count => format!(", with {count} notes on the samples"),
    };
    let path = &run.path;
    let details = format!("Tables and analyses{notes}: {}", path.join(files::DETAILS).display());
    text.push_str(&wrapped(&details, columns, "  "));
    text.push_str(&wrapped(&format!("Samples and verdict: {}", path.display()), columns, "  "));
    text
}
