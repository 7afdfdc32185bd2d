//! The answer of a part in plain words: which variant is the fastest, for which files, by how much, and
//! how sure that is.
//!
//! A variant is called the fastest if it is shown to be faster than the baseline and its whole 95 %
//! interval lies below those of all others. Of two variants whose intervals overlap, none is called
//! faster than the other. Intervals that do not overlap are a stricter test of a pair than the 5 %
//! level, by about ten times, which leaves room for the number of pairs.

use super::PartVerdict;
use super::answer_ranges::{NAMED_MAX, ROWS_MAX, Range, Share, Shown, kind_of_files, ratio_digits};
use super::plain_names::plain_name;
use crate::definition::cell::Cell;
use crate::definition::{Definition, Measure, Order, Part};
use crate::page_cache::state::State;
use crate::words;

/// An answer in plain words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conclusion {
    /// The answer in one sentence; or, if it depends on the files, what the rows have in common.
    pub sentence: String,
    /// The answer for each range of files, if there are several.
    pub rows: Vec<Row>,
}

/// The answer for a range of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The files: `64 KiB to 1 MiB`.
    pub files: String,
    /// The fastest variants in plain words; empty if none is shown to be faster.
    pub fastest: String,
    /// What is said of them. It continues `fastest`.
    pub said: String,
}

impl Row {
    /// What is said of the files.
    pub fn text(&self) -> String {
        format!("{}{}", self.fastest, self.said)
    }
}

impl Conclusion {
    /// All of it in one paragraph.
    pub fn paragraph(&self) -> String {
        let row = |row: &Row| format!("{}: {}", row.files, row.text());
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        match rows.len() {
            0 => self.sentence.clone(),
            _ => format!("{} {}.", self.sentence, rows.join(". ")),
        }
    }
}

impl PartVerdict {
    /// The answer for the largest files of each circumstance, as clauses. Empty if nothing was
    /// compared.
    pub(super) fn brief(&self, definition: &Definition) -> Vec<String> {
        let Some(sentences) = self.sentences(definition) else { return Vec::new() };
        let (part, ranges) = (sentences.part, self.ranges(sentences.part));
        let is_largest = |(at, range): &(usize, &Range)| {
            ranges.get(at + 1).is_none_or(|next| next.circumstances != range.circumstances)
        };
        if ranges.iter().all(|range| range.answer.shown == Shown::TooFew) {
            return ranges.first().map(|range| sentences.range(range, "")).into_iter().collect();
        }
        let largest = ranges.iter().enumerate().filter(is_largest);
        largest.map(|(_, range)| sentences.range(range, &range.place(part))).collect()
    }

    /// The answer of the part. Empty if nothing was compared.
    pub fn conclusion(&self, definition: &Definition) -> Conclusion {
        let Some(sentences) = self.sentences(definition) else { return Conclusion::default() };
        match self.ranges(sentences.part).as_slice() {
            [] => Conclusion::default(),
            [only] => {
                let answer = sentences.range(only, &only.place(sentences.part));
                Conclusion { sentence: format!("On this machine {answer}."), rows: Vec::new() }
            }
            several if several.iter().all(|it| it.answer.shown == Shown::TooFew) => Conclusion {
                sentence: "On this machine there were too few sessions to compare.".to_owned(),
                rows: Vec::new(),
            },
            several => sentences.list(several),
        }
    }

    /// `None` if the part has no answer of this kind: runs one after another cannot separate a variant
    /// from its place in the order.
    fn sentences<'d>(&self, definition: &'d Definition) -> Option<Sentences<'d>> {
        let part = definition.parts.iter().find(|part| part.name == self.part)?;
        let has_answer = part.order != Order::OneAfterAnother && !part.baseline.is_empty();
        has_answer.then(|| Sentences { part, baseline: plain_name(part, &part.baseline) })
    }
}

/// What the sentences of a part have in common.
struct Sentences<'p> {
    part: &'p Part,
    /// The baseline in plain words.
    baseline: String,
}

impl Sentences<'_> {
    /// A list of answers, with what they have in common in its sentence.
    fn list(&self, ranges: &[Range]) -> Conclusion {
        let one_state = ranges.iter().all(|it| it.circumstances == ranges[0].circumstances);
        let shown = &ranges[ranges.len() - ranges.len().min(ROWS_MAX)..];
        let one_size = ranges.iter().all(|it| it.sizes == ranges[0].sizes);
        let row = |range: &Range| {
            let files = match (one_state, range.circumstances.as_str()) {
                (true, _) | (_, "") => range.sizes(),
                (false, circumstances) if one_size => circumstances.to_owned(),
                (false, circumstances) => format!("{}, {circumstances}", range.sizes()),
            };
            let (fastest, said) = self.in_row(range);
            Row { files, fastest, said }
        };
        let mut rows: Vec<Row> = Vec::new();
        if shown.len() < ranges.len() {
            rows.push(Row {
                files: "other files".to_owned(),
                fastest: String::new(),
                said: "the answer changes from size to size; the table of ratios has it".to_owned(),
            });
        }
        rows.extend(shown.iter().map(row));
        let first = &ranges[0];
        let common = match kind_of_files(self.part, &first.cell, &first.sizes()) {
            Some(_) if one_state && !first.circumstances.is_empty() => {
                format!(" for files {}", first.circumstances)
            }
            Some(files) if one_size && !one_state => format!(" for {files}"),
            _ => String::new(),
        };
        let factors = factors(ranges);
        let baseline = &self.baseline;
        let is_faster = |range: &Range| matches!(range.answer.shown, Shown::Faster { .. });
        let sentence = match ranges.iter().any(is_faster) {
            true => {
                let by_state = (factors == [BY_STATE]).then(|| self.by_state(ranges)).flatten();
                let answer = by_state.unwrap_or_else(|| {
                    format!("the fastest way{common} depends on {}", words::listed(&factors))
                });
                format!("On this machine {answer}. Compared with the time of {baseline}:")
            }
            false => format!(
                "On this machine nothing is shown to be faster than {baseline}{common}. In detail:"
            ),
        };
        Conclusion { sentence, rows }
    }

    /// What is the fastest in the page cache and what is the fastest for other files, of `ranges` that
    /// differ in nothing else. `None` unless both are known.
    fn by_state(&self, ranges: &[Range]) -> Option<String> {
        let [warm, cold] = ranges else { return None };
        if warm.sizes != cold.sizes
            || [warm.cell.state, cold.cell.state] != [State::Warm, State::Cold]
        {
            return None;
        }
        let (warm_name, cold_name) = (self.fastest(warm)?, self.fastest(cold)?);
        Some(format!(
            "{warm_name} is the fastest{}, {cold_name} where they are read from the device",
            warm.place(self.part)
        ))
    }

    /// The variants that are the fastest or too close to it, in plain words. `None` if there are many, or
    /// none is known.
    fn fastest(&self, range: &Range) -> Option<String> {
        let are_known = match &range.answer.shown {
            Shown::Faster { others, unknown: 0, .. } => others.len() < NAMED_MAX,
            Shown::Baseline { .. } => true,
            _ => false,
        };
        are_known.then(|| self.in_row(range).0)
    }

    /// The answer of a range as a clause. `place` is what it is about.
    fn range(&self, range: &Range, place: &str) -> String {
        let baseline = &self.baseline;
        let (fastest, said) = self.clause(range, place, |time| format!("the {time} of {baseline}"));
        fastest + &said
    }

    /// The answer of a range in a list, whose sentence has the baseline.
    fn in_row(&self, range: &Range) -> (String, String) {
        self.clause(range, "", |time| format!("that {time}"))
    }

    /// The fastest variants of a range, and what is said of them. `of` names a time of the baseline.
    fn clause(&self, range: &Range, place: &str, of: impl Fn(&str) -> String) -> (String, String) {
        let baseline = &self.baseline;
        let of = match self.part.measure {
            Measure::Elapsed => of("time"),
            Measure::Durable => of("time") + " until the copy is on the medium",
            Measure::Processor => of("processor time"),
        };
        let (fastest, said) = match &range.answer.shown {
            Shown::Faster { leader, others, unknown: 0 } if others.len() < NAMED_MAX => {
                let close: Vec<&Share> = [leader].into_iter().chain(others).collect();
                let names: Vec<String> = close.iter().map(|it| self.name(it)).collect();
                let ratios: Vec<String> = close.iter().map(|it| it.ratios()).collect();
                let widest = close.into_iter().max_by(|a, b| a.within.total_cmp(&b.within));
                let (ratios, sure) = (words::listed(&ratios), widest.unwrap_or(leader).sure());
                let call = if others.is_empty() { "" } else { ", too close to call" };
                let said = format!(" is the fastest{place}{call}: {ratios} of {of}, {sure}");
                (words::listed_with("or", &names), said)
            }
            Shown::Faster { leader, others, unknown } => {
                let others = match others.len() + unknown {
                    1 => "another one".to_owned(),
                    several => format!("one of {several} others"),
                };
                let (ratios, sure) = (leader.ratios(), leader.sure());
                let said = format!(
                    " is the fastest{place}, too close to call: the first takes {ratios} of {of}, {sure}"
                );
                (format!("{} or {others}", self.name(leader)), said)
            }
            Shown::Baseline { next } => {
                let said = format!(" is the fastest{place}; {}", self.next_to_baseline(next));
                (baseline.clone(), said)
            }
            Shown::TooFew => {
                (String::new(), format!("there were too few sessions to compare{place}"))
            }
            Shown::NoneFaster => (baseline.clone(), format!(" is as fast as any other{place}")),
            Shown::Open { unresolved, of } => {
                let open = unresolved_of(*unresolved, *of);
                let nothing = format!("nothing is shown to be faster than {baseline}{place}");
                (String::new(), format!("{nothing}; {open} too close to call"))
            }
        };
        (fastest, said + &self.sharing(range))
    }

    fn name(&self, share: &Share) -> String {
        plain_name(self.part, &share.variant)
    }

    /// What is said of the variant that comes next to the baseline.
    fn next_to_baseline(&self, next: &Share) -> String {
        let (ratios, sure) = (next.ratios(), next.sure());
        if next.variant.is_empty() {
            let least = ratio_digits(next.ratios[0]);
            return format!("the others take at least {least} times its time, {sure}");
        }
        format!("{} comes closest with {ratios} times its time, {sure}", self.name(next))
    }

    /// A remark on the variants that share extents. Empty if there is none.
    fn sharing(&self, range: &Range) -> String {
        let sharers: Vec<String> =
            range.answer.sharers.iter().map(|variant| plain_name(self.part, variant)).collect();
        let listed = words::listed(&sharers);
        match sharers.len() {
            0 => String::new(),
            1 => format!(" ({listed} shares extents and moves no bytes)"),
            _ => format!(" ({listed} share extents and move no bytes)"),
        }
    }
}

/// The factor that [`State`] is.
const BY_STATE: &str = "whether the source is in the page cache";

/// What an answer depends on, in plain words. The ranges differ in these.
fn factors(ranges: &[Range]) -> Vec<&'static str> {
    let first = &ranges[0];
    let differs = |differ: fn(&Cell, &Cell) -> bool| {
        ranges.iter().any(|range| differ(&range.cell, &first.cell))
    };
    let same_place = |pair: &[Range]| pair[0].circumstances == pair[1].circumstances;
    let found = [
        ("the file size", ranges.windows(2).any(same_place)),
        ("whether the destination exists", differs(|a, b| a.destination != b.destination)),
        (BY_STATE, differs(|a, b| a.state != b.state)),
        ("how many are copied at once", differs(|a, b| a.at_once != b.at_once)),
    ];
    found.into_iter().filter(|(_, does)| *does).map(|(factor, _)| factor).collect()
}

fn unresolved_of(unresolved: usize, of: usize) -> String {
    match (unresolved, of) {
        (_, 1) => "the comparison is".to_owned(),
        (1, all) => format!("1 of {all} comparisons is"),
        (open, all) => format!("{open} of {all} comparisons are"),
    }
}
