//! The verdict of an experiment on one screen.

use lab::analysis::claims::TestedClaim;
use lab::definition::Definition;
use lab::definition::deltas::Deltas;
use lab::run_dir::{Run, files};
use lab::studies::sheet::in_both_states;
use lab::verdict::conclusion::Conclusion;
use lab::verdict::resolve::{self, Unresolved};
use lab::verdict::{PartVerdict, Verdict};

use crate::terminal::output::{BEST, styled};
use report::columns::{wrapped, wrapped_behind};

/// The most columns of the names of parts.
const NAME_COLUMNS_MAX: usize = 16;

/// The most columns of the files of a row of the answer.
const FILES_COLUMNS_MAX: usize = 34;

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
    text.push_str(&of_claims(&verdict.claims, columns));
    let open = verdict.unresolved(definition);
    let unresolved = of_unresolved(&open, run, columns);
    if open.are_most() {
        text.push_str(&format!("{unresolved}\n"));
    }
    text.push_str(&of_main(definition, verdict, columns));
    text.push('\n');
    if !open.are_most() {
        text.push_str(&unresolved);
        // A command stands apart from what follows it.
        if open.further.is_some() {
            text.push('\n');
        }
    }
    let main = &definition.main_part().name;
    let others: Vec<&PartVerdict> =
        verdict.parts.iter().filter(|part| part.part != *main).collect();
    let names = others.iter().map(|part| part.part.chars().count());
    let width = names.max().unwrap_or(0).min(NAME_COLUMNS_MAX) + 2;
    for part in others {
        let name = format!("{:<width$}", part.part);
        text.push_str(&wrapped_behind(&name, &of_part(part, definition), columns));
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

/// Each claim: whether it holds here, what was published and what was measured.
fn of_claims(claims: &[TestedClaim], columns: usize) -> String {
    let mut text = String::new();
    for claim in claims {
        let name = format!("{:<16}", claim.answer.words());
        text.push_str(&wrapped_behind(&name, &claim.says, columns));
        text.push_str(&wrapped_behind(&" ".repeat(16), &claim.figures(), columns));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The answer to the question of the experiment: the answer of its main part.
fn of_main(definition: &Definition, verdict: &Verdict, columns: usize) -> String {
    let main = definition.main_part();
    let Some(part) = verdict.parts.iter().find(|part| part.part == main.name) else {
        return String::new();
    };
    let Conclusion { sentence, rows } = part.conclusion(definition);
    if sentence.is_empty() {
        return styled(BEST, &wrapped(&of_part(part, definition), columns, ""));
    }
    let mut text = styled(BEST, &wrapped(&sentence, columns, ""));
    let names = rows.iter().map(|row| row.files.chars().count());
    let width = names.max().unwrap_or(0).min(FILES_COLUMNS_MAX) + 4;
    for row in &rows {
        let name = format!("  {:<1$}", row.files, width - 2);
        text.push_str(&wrapped_behind(&name, &row.text(), columns));
    }
    let findings: Vec<String> = part.analyses.iter().filter_map(|it| it.headline()).collect();
    if !findings.is_empty() {
        text.push_str(&wrapped(&format!("{}.", findings.join("; ")), columns, ""));
    }
    text
}

fn of_part(part: &PartVerdict, definition: &Definition) -> String {
    let headline = part.headline(definition);
    if headline.is_empty() {
        return "too few sessions to compare; more time is needed (--time)".to_owned();
    }
    // A part's own sentence already has the counts.
    match part.counts().as_str() {
        counts if !counts.is_empty() && headline != part.sentence => {
            format!("{headline} ({counts})")
        }
        _ => headline,
    }
}

/// What is unresolved, with the command that would help below it.
fn of_unresolved(open: &Unresolved, run: &Run, columns: usize) -> String {
    if open.count == 0 {
        return String::new();
    }
    let mut text = wrapped(&open.sentence(), columns, "");
    if let Some(further) = open.further {
        text.push_str(&resolve::command_in(run, further, columns));
    }
    text
}
