//! The answer of an experiment in short: what stands at the end of a long run, on one screen.

use std::path::Path;

use lab::definition::Definition;
use lab::run_dir::files;
use lab::stats::{median, quantile};
use lab::verdict::headline::Unresolved;
use lab::verdict::{PartVerdict, Verdict};
use lab::words;

use super::table::{in_both_states, wrapped};

/// Columns of the names of parts at the most.
const NAME_COLUMNS_MAX: usize = 16;

/// Fewer cells than these have no quantiles to speak of.
const CELLS_MANY: usize = 10;

/// What would take longer than this is out of reach, however much longer.
const MONTH_SECONDS: f64 = 30.0 * 86_400.0;

/// What the line of a part says.
const LEGEND: &str = "A line for each part: for the largest files, the fastest of what is shown to be \
    faster than the baseline, or else the slowest of what is shown to be slower, with the 95 % interval; \
    what else was found; the answers to all comparisons.";

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
    let takes = |seconds: f64| match seconds > MONTH_SECONDS {
        true => "more than a month".to_owned(),
        false => words::duration(seconds),
    };
    match open.cells_seconds.as_slice() {
        [] => {}
        [one] => said.push_str(&format!("; its cell would take about {} in all", takes(*one))),
        [least, .., most] if open.cells_seconds.len() < CELLS_MANY => {
            let (least, most) = (takes(*least), takes(*most));
            said.push_str(&format!("; their cells would take from {least} to {most} each"));
        }
        many => {
            let half = median(many).map_or_else(String::new, takes);
            let most = quantile(many, 0.9).map_or_else(String::new, takes);
            said.push_str(&format!(
                "; half of their cells would take up to {half} each, one in ten {most} or more"
            ));
        }
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
        let said = |cells_seconds: &[f64]| {
            of_unresolved(&Unresolved { count: 3, of: 9, cells_seconds: cells_seconds.to_vec() })
        };
        assert_eq!(said(&[]), "Unresolved: 3 of 9 comparisons.");
        assert_eq!(
            said(&[60.0]),
            "Unresolved: 3 of 9 comparisons; its cell would take about 60 seconds in all."
        );
        assert_eq!(
            said(&[432.0, 1e9]),
            "Unresolved: 3 of 9 comparisons; their cells would take from 7 minutes to more than a month \
             each."
        );
        let many: Vec<f64> = (1..=11).map(|minutes| f64::from(minutes) * 60.0).collect();
        assert_eq!(
            said(&many),
            "Unresolved: 3 of 9 comparisons; half of their cells would take up to 6 minutes each, one in \
             ten 10 minutes or more."
        );
    }
}
