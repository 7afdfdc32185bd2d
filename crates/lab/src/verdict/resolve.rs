//! What is not answered yet, and the command that is likely to answer what matters of it.
//!
//! The command makes a new run of the main part alone. To continue the old run because its answers were
//! not welcome would add an analysis to those that were planned.

use std::path::Path;

use super::{CellVerdict, Comparison, PartVerdict, Verdict};
use crate::definition::Definition;
use crate::experiment::library::BuiltIn;
use crate::run_dir::Run;
use crate::stats::{Answer, POWER};
use crate::words;

/// A user is never asked for more time than this.
const SECONDS_MAX: f64 = 12.0 * 3600.0;

/// The share of the open comparisons for which time is asked. Those that differ by just what matters
/// would take the most of it.
const SHARE: f64 = 0.8;

/// A cell ends at an interim analysis. These are at about 5, 10, 20, ... sessions, so that the last of its
/// comparisons waits for one for up to this many times the sessions that it needs.
const UNTIL_ANALYSED: f64 = 2.0;

/// Comparisons without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Unresolved {
    /// Comparisons without an answer.
    pub count: usize,
    /// All comparisons.
    pub of: usize,
    /// The main part.
    pub part: String,
    /// Comparisons of the main part without an answer.
    pub main_count: usize,
    /// All comparisons of the main part.
    pub main_of: usize,
    /// What would answer those of the main part. `None` if all are answered, or if it would take too
    /// long.
    pub further: Option<Further>,
    /// Comparisons of the main part had too few sessions to tell what they need.
    pub too_few: bool,
}

/// A further measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Further {
    /// How long it takes.
    pub seconds: f64,
    /// How many comparisons it is expected to answer.
    pub resolves: usize,
}

impl Verdict {
    /// The answer of the main part, if it was measured.
    pub fn main_part(&self, definition: &Definition) -> Option<&PartVerdict> {
        let name = &definition.main_part().name;
        self.parts.iter().find(|part| part.part == *name)
    }

    /// What is not answered yet.
    pub fn unresolved(&self, definition: &Definition) -> Unresolved {
        let open =
            |of: &[&Comparison]| of.iter().filter(|it| it.answer == Answer::Unresolved).count();
        let main = self.main_part(definition);
        let all: Vec<&Comparison> = self.comparisons().collect();
        let of_main: Vec<&Comparison> = main.into_iter().flat_map(PartVerdict::asked).collect();
        Unresolved {
            count: open(&all),
            of: all.len(),
            part: definition.main_part().name.clone(),
            main_count: open(&of_main),
            main_of: of_main.len(),
            further: main.and_then(PartVerdict::further),
            too_few: of_main.iter().any(|it| it.ratio.is_none()),
        }
    }
}

impl CellVerdict {
    /// The comparisons of the cell that are an answer.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|it| !it.floor)
    }

    /// For each comparison without an answer the seconds that the cell needs for it.
    fn needs(&self) -> impl Iterator<Item = f64> {
        let open = self.asked().filter(|it| it.answer == Answer::Unresolved);
        open.map(|it| it.seconds_needed.unwrap_or(f64::INFINITY))
    }

    /// How long it takes part in a run in which each cell has up to `limit` seconds.
    fn takes(&self, limit: f64) -> f64 {
        let last = self.needs().max_by(f64::total_cmp);
        last.map_or(self.seconds, |last| last * UNTIL_ANALYSED).min(limit)
    }
}

impl PartVerdict {
    /// The comparisons of the part that are an answer.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Comparison> {
        self.cells.iter().flat_map(CellVerdict::asked)
    }

    /// A run of this part alone that is likely to answer most of what is open.
    fn further(&self) -> Option<Further> {
        let mut needs: Vec<f64> = self.cells.iter().flat_map(CellVerdict::needs).collect();
        needs.sort_by(f64::total_cmp);
        let time = |limit: f64| self.cells.iter().map(|cell| cell.takes(limit)).sum::<f64>();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most their number.
        let wanted = (needs.len() as f64 * SHARE).ceil() as usize;
        // From the number that is wanted downwards, until the time for it is acceptable.
        let enough = |count: &usize| time(needs[count - 1]) <= SECONDS_MAX;
        let count = (1..=wanted).rev().find(enough)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most their number.
        let resolves = (count as f64 * POWER).round().max(1.0) as usize;
        Some(Further { seconds: in_round_numbers(time(needs[count - 1])), resolves })
    }
}

/// Up to the next second, ten seconds or minute.
fn in_round_numbers(seconds: f64) -> f64 {
    let unit = match seconds {
        s if s <= 30.0 => 1.0,
        s if s <= 300.0 => 10.0,
        _ => 60.0,
    };
    (seconds / unit).ceil().max(1.0) * unit
}

impl Unresolved {
    /// Whether more comparisons are open than answered.
    pub fn are_most(&self) -> bool {
        self.count * 2 > self.of
    }

    /// What is open and what would help, in a sentence that a command follows if
    /// [`further`](Unresolved::further) is known. Empty if all is answered.
    pub fn sentence(&self) -> String {
        if self.count == 0 {
            return String::new();
        }
        let mut text = match self.are_most() {
            true => format!("Most comparisons are unresolved: {} of {}", self.count, self.of),
            false => format!("Unresolved: {} of {} comparisons", self.count, self.of),
        };
        if self.main_of < self.of {
            text.push_str(&format!(
                ", {} of {} of the main question ({})",
                self.main_count, self.main_of, self.part
            ));
        }
        text.push('.');
        match self.further {
            Some(Further { seconds, resolves }) => text.push_str(&format!(
                " A new run of {} would resolve about {resolves} of {}:",
                words::duration(seconds),
                match self.main_of < self.of {
                    true => format!("the {} of the main question", self.main_count),
                    false => "them".to_owned(),
                }
            )),
            None if self.main_count > 0 && self.too_few => text.push_str(
                " There were too few sessions to tell what would resolve them: give it several times \
                 as much time (--time).",
            ),
            None if self.main_count > 0 => {
                text.push_str(
                    " To resolve those of the main question would take more than 12 hours.",
                );
            }
            None => {}
        }
        text
    }
}

/// The command that makes a new run of the main part of `run`, for so many seconds.
pub fn command(run: &Run, further: Further) -> String {
    words_of(run, further).join(" ")
}

/// The command that makes a new run, in lines of at most `columns` columns, as far as its words allow
/// that. A shell takes the lines as one.
pub fn command_in(run: &Run, further: Further, columns: usize) -> String {
    let mut text = " ".to_owned();
    let mut used = 1;
    for word in words_of(run, further) {
        let width = word.chars().count();
        // A space before the word, and one with a backslash after it.
        if used > 2 && used + 1 + width + 2 > columns {
            text.push_str(" \\\n   ");
            used = 3;
        }
        text.push_str(&format!(" {word}"));
        used += 1 + width;
    }
    text + "\n"
}

fn words_of(run: &Run, further: Further) -> Vec<String> {
    let (definition, how) = (&run.definition, &run.how);
    let mut words = vec!["haulage".to_owned(), "bench".to_owned()];
    let names: Vec<String> = definition.parts.iter().map(|part| part.name.clone()).collect();
    let built_in = BuiltIn::by_name(&definition.name).map(BuiltIn::definition);
    let built_in = built_in.filter(|built_in| {
        built_in.clone().scaled(how.scale).only(&names).as_ref() == Ok(definition)
    });
    let parts = built_in.as_ref().unwrap_or(definition).parts.len();
    if built_in.is_some() {
        words.push(definition.name.clone());
        if how.scale != 1.0 {
            words.extend(["--scale".to_owned(), how.scale.to_string()]);
        }
    } else {
        // The run keeps its experiment, with the sizes multiplied already.
        words.push(quoted(&run.path.join(crate::run_dir::files::EXPERIMENT)));
    }
    words.extend(["--on".to_owned(), quoted(&how.src_dir)]);
    if how.dst_dir != how.src_dir {
        words.extend(["--on".to_owned(), quoted(&how.dst_dir)]);
    }
    if parts > 1 {
        words.extend(["--part".to_owned(), definition.main_part().name.clone()]);
    }
    if let Some(runs) = run.path.parent().filter(|runs| **runs != *Path::new("runs")) {
        let runs = if runs.as_os_str().is_empty() { Path::new(".") } else { runs };
        words.extend(["--runs".to_owned(), quoted(runs)]);
    }
    words.extend(["--time".to_owned(), format!("{:.0}", further.seconds)]);
    words
}

/// `path` as a word of a shell.
fn quoted(path: &Path) -> String {
    shell_words::quote(&path.display().to_string()).into_owned()
}
