//! The answer of an experiment for a terminal.

use lab::analysis::claims::TestedClaim;
use lab::definition::Definition;
use lab::run_dir::Run;
use lab::verdict::conclusion::Conclusion;
use lab::verdict::resolve::{self, Unresolved};
use lab::verdict::{PartVerdict, Verdict};

use crate::columns::{visible, wrapped, wrapped_behind};

/// The most columns of the files of a row of the answer.
const FILES_COLUMNS_MAX: usize = 34;

/// The claims, the answer of the main part, and what is unresolved, which comes before the answer if it is the most. In
/// lines of at most `columns` columns, with ANSI colours and no other control characters.
pub fn render(definition: &Definition, verdict: &Verdict, run: &Run, columns: usize) -> String {
    let mut text = of_claims(&verdict.claims, columns);
    let open = verdict.unresolved(definition);
    let parts = [of_main(definition, verdict, columns), of_unresolved(&open, run, columns)];
    text.push_str(&match (open.count, parts) {
        (0, [main, _]) => main,
        (_, [main, unresolved]) if open.are_most() => format!("{unresolved}\n{main}"),
        (_, [main, unresolved]) => format!("{main}\n{unresolved}"),
    });
    text
}

/// Each claim: whether it holds here, what was published and what was measured.
fn of_claims(claims: &[TestedClaim], columns: usize) -> String {
    let mut text = String::new();
    for claim in claims {
        let name = format!("{:<16}", claim.answer.words());
        text.push_str(&wrapped_behind(&name, &visible(&claim.says), columns));
        let figures = visible(&claim.figures());
        text.push_str(&wrapped_behind(&" ".repeat(16), &figures, columns));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The answer to the question of the experiment: the answer of its main part.
fn of_main(definition: &Definition, verdict: &Verdict, columns: usize) -> String {
    let Some(part) = verdict.main_part(definition) else { return String::new() };
    let answer = |sentence: &str| {
        let lines = wrapped(&visible(sentence), columns, "");
        format!("\x1b[1;32m{}\x1b[0m\n", lines.trim_end())
    };
    let Conclusion { sentence, rows } = part.conclusion(definition);
    if sentence.is_empty() {
        return answer(&of_part(part, definition));
    }
    let mut text = answer(&sentence);
    let names = rows.iter().map(|row| row.files.chars().count());
    let width = names.max().unwrap_or(0).min(FILES_COLUMNS_MAX) + 4;
    for row in &rows {
        let name = format!("  {:<1$}", visible(&row.files), width - 2);
        text.push_str(&wrapped_behind(&name, &visible(&row.text()), columns));
    }
    let findings: Vec<String> = part.analyses.iter().filter_map(|it| it.headline()).collect();
    if !findings.is_empty() {
        text.push_str(&wrapped(&visible(&format!("{}.", findings.join("; "))), columns, ""));
    }
    text
}

/// The answer of a part in a sentence.
pub fn of_part(part: &PartVerdict, definition: &Definition) -> String {
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
    let mut text = wrapped(&visible(&open.sentence()), columns, "");
    if let Some(further) = open.further {
        let command = resolve::command_in(run, further, columns);
        text.extend(command.lines().map(|line| visible(line) + "\n"));
    }
    text
}
