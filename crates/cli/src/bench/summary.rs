//! The verdict of an experiment on one screen.

use std::path::Path;

use lab::definition::Definition;
use lab::run_dir::files;
use lab::stats::{median, quantile};
use lab::verdict::headline::Unresolved;
use lab::verdict::{PartVerdict, Verdict};
use lab::words;

use super::table::in_both_states;
use crate::terminal::text::{wrapped, wrapped_behind};

/// The most columns of the names of parts.
const NAME_COLUMNS_MAX: usize = 16;

/// Quantiles of fewer cells than these mean nothing.
const CELLS_MANY: usize = 10;

/// Longer times are not given as a number: no user waits for them.
const MONTH_SECONDS: f64 = 30.0 * 86_400.0;

/// Explains the lines of the parts.
const LEGEND: &str = "Each part has a line. It names, for the largest files, the fastest variant that is \
    faster than the baseline, or else the slowest one that is slower, with the 95 % interval. Other \
    findings and the counts of all answers follow.";

/// The question, each part's answer with its interval, what is unresolved, and the certificate.
pub(super) fn render(
    definition: &Definition,
    verdict: &Verdict,
    run: &Path,
    columns: usize,
) -> String {
    let mut text = String::from("Summary\n");
    text.push_str(&wrapped(&definition.question, columns, ""));
    text.push_str(&wrapped(LEGEND, columns, ""));
    let names = verdict.parts.iter().map(|part| part.part.chars().count());
    let width = names.max().unwrap_or(0).min(NAME_COLUMNS_MAX) + 2;
    for part in &verdict.parts {
        let name = format!("{:<width$}", part.part);
        text.push_str(&wrapped_behind(&name, &of_part(part, definition), columns));
    }
    let open = verdict.unresolved();
    if open.count > 0 {
        text.push_str(&wrapped(&of_unresolved(&open), columns, ""));
    }
    let mut trust = format!(
        "Differences up to {} do not matter ({}).",
        in_both_states(verdict.delta, verdict.delta_cold),
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
    let details = run.join(files::DETAILS);
    text.push_str(&format!("Tables and analyses{notes}: {}\n", details.display()));
    text.push_str(&format!("Samples and verdict: {}\n", run.display()));
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

fn of_unresolved(open: &Unresolved) -> String {
    let mut text = format!("Unresolved: {} of {} comparisons", open.count, open.of);
    let takes = |seconds: f64| match seconds > MONTH_SECONDS {
        true => "more than a month".to_owned(),
        false => words::duration(seconds),
    };
    match open.cells_seconds.as_slice() {
        [] => {}
        [one] => text.push_str(&format!("; its cell needs about {} in all", takes(*one))),
        [least, .., most] if open.cells_seconds.len() < CELLS_MANY => {
            let (least, most) = (takes(*least), takes(*most));
            text.push_str(&format!("; their cells need from {least} to {most} each"));
        }
        many => {
            let half = median(many).map_or_else(String::new, takes);
            let most = quantile(many, 0.9).map_or_else(String::new, takes);
            text.push_str(&format!(
                "; half of their cells need up to {half} each, one in ten {most} or more"
            ));
        }
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unresolved_comparisons_are_listed_with_their_time() {
        let text = |cells_seconds: &[f64]| {
            of_unresolved(&Unresolved { count: 3, of: 9, cells_seconds: cells_seconds.to_vec() })
        };
        assert_eq!(text(&[]), "Unresolved: 3 of 9 comparisons.");
        assert_eq!(
            text(&[60.0]),
            "Unresolved: 3 of 9 comparisons; its cell needs about 60 seconds in all."
        );
        assert_eq!(
            text(&[432.0, 1e9]),
            "Unresolved: 3 of 9 comparisons; their cells need from 7 minutes to more than a month each."
        );
        let many: Vec<f64> = (1..=11).map(|minutes| f64::from(minutes) * 60.0).collect();
        assert_eq!(
            text(&many),
            "Unresolved: 3 of 9 comparisons; half of their cells need up to 6 minutes each, one in ten 10 \
             minutes or more."
        );
    }
}
