//! The answer of an experiment in short: what stands at the end of a long run, on one screen.

use std::path::Path;

use lab::bench::answer::{PartVerdict, Verdict};
use lab::bench::definition::Definition;
use lab::bench::headline::Unresolved;
use lab::bench::run_dir::files;
use lab::words;

use super::table::{in_both_states, wrapped};

/// Columns of the names of parts at the most.
const NAME_COLUMNS_MAX: usize = 16;

/// What would take longer than this is out of reach, however much longer.
const MONTH_SECONDS: f64 = 30.0 * 86_400.0;

/// What the line of a part says.
const LEGEND: &str = "A line for each part: the variant with the least ratio to the baseline, for the \
    largest files, with the 95 % interval; what else was found; the answers to all comparisons.";

/// The question and each part's answer with its interval, what is unresolved, and how far that can be
/// believed.
pub(super) fn render(
    definition: &Definition,
    verdict: &Verdict,
    run: &Path,
    columns: usize,
) -> String {
    let mut text = String::from("In short\n");
    push(&mut text, "", &definition.question, columns);
    push(&mut text, "", LEGEND, columns);
    let names = verdict.parts.iter().map(|part| part.part.chars().count());
    let width = names.max().unwrap_or(0).min(NAME_COLUMNS_MAX) + 2;
    for part in &verdict.parts {
        let name = format!("{:<width$}", part.part);
        push(&mut text, &name, &of_part(part, definition), columns);
    }
    let open = verdict.unresolved();
    if open.count > 0 {
        push(&mut text, "", &of_unresolved(&open), columns);
    }
    let mut belief = format!(
        "Differences up to {} do not matter ({}).",
        in_both_states(verdict.delta, verdict.delta_cold),
        verdict.delta_from
    );
    if !verdict.certificate.is_empty() {
        belief.push_str(&format!(" This machine: {}.", verdict.certificate));
    }
    push(&mut text, "", &belief, columns);
    let notes = match verdict.notes.len() {
        0 => String::new(),
        1 => ", with a note on the samples".to_owned(),
        count => format!(", with {count} notes on the samples"),
    };
    let details = run.join(files::DETAILS);
    text.push_str(&format!("Tables and analyses{notes}: {}\n", details.display()));
    text.push_str(&format!("Samples and verdict: {}\n", run.display()));
    text
}

fn of_part(part: &PartVerdict, definition: &Definition) -> String {
    let headline = part.headline(definition);
    if headline.is_empty() {
        return "too few sessions to compare anything; more time (--time) would tell".to_owned();
    }
    // A sentence of its own names all comparisons.
    match part.counts().as_str() {
        counts if !counts.is_empty() && headline != part.sentence => {
            format!("{headline} ({counts})")
        }
        _ => headline,
    }
}

fn of_unresolved(open: &Unresolved) -> String {
    let mut said = format!("Unresolved: {} of {} comparisons", open.count, open.of);
    if let (Some(half), Some(most)) = (open.seconds_of_half, open.seconds_of_most) {
        said.push_str(&format!(
            "; half of their cells would take up to {} each, one in ten more than {}",
            words::duration(half),
            if most > MONTH_SECONDS { "a month".to_owned() } else { words::duration(most) },
        ));
    }
    said + "."
}

/// A paragraph behind a name, with its further lines below its first.
fn push(text: &mut String, name: &str, paragraph: &str, columns: usize) {
    let indent = name.chars().count();
    for (index, line) in wrapped(paragraph, columns.saturating_sub(indent)).iter().enumerate() {
        let before = if index == 0 { name.to_owned() } else { " ".repeat(indent) };
        text.push_str(&format!("{before}{line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_stand_below_the_first() {
        let mut text = String::new();
        push(&mut text, "warm  ", "one two three", 14);
        assert_eq!(text, "warm  one two\n      three\n");
    }

    #[test]
    fn what_is_open_is_told_with_its_time() {
        let open = Unresolved {
            count: 3,
            of: 9,
            seconds_of_half: Some(60.0),
            seconds_of_most: Some(7200.0),
        };
        assert_eq!(
            of_unresolved(&open),
            "Unresolved: 3 of 9 comparisons; half of their cells would take up to 60 seconds each, one \
             in ten more than 2 hours."
        );
        let nothing = Unresolved { seconds_of_half: None, seconds_of_most: None, ..open };
        assert_eq!(of_unresolved(&nothing), "Unresolved: 3 of 9 comparisons.");
    }
}
