//! The answer of a part in plain words: which variant is the fastest, for which files, by how much, and
//! how sure that is.
//!
//! A variant is called the fastest if it is shown to be faster than the baseline and its whole 95 %
//! interval lies below those of all others. Of two variants whose intervals overlap, none is called
//! faster than the other. Intervals that do not overlap are a stricter test of a pair than the 5 %
//! level, by about ten times, which leaves room for the number of pairs.

use super::plain_names::plain_name;
use super::{CellVerdict, Comparison, PartVerdict};
use crate::definition::cell::{Cell, Destination, Shape};
use crate::definition::{Definition, Measure, Order, Part};
use crate::page_cache::state::State;
use crate::stats::Answer;
use crate::{words, workload};

/// Rows of an answer. Further ones are left to the table of ratios.
const ROWS_MAX: usize = 6;

/// Variants that a sentence names as too close to call, the first included.
const NAMED_MAX: usize = 3;

/// An interval that is wider than this share of its ratio is written as an interval.
const WITHIN_MAX: f64 = 0.5;

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
    /// What is said of them.
    pub said: String,
}

impl Conclusion {
    /// All of it in one paragraph.
    #[must_use]
    pub fn paragraph(&self) -> String {
        let row = |row: &Row| format!("{}: {}", row.files, row.said);
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        match rows.len() {
            0 => self.sentence.clone(),
            _ => format!("{} {}.", self.sentence, rows.join(". ")),
        }
    }
}

impl PartVerdict {
    /// The answer of the part. Empty if nothing was compared.
    #[must_use]
    pub fn conclusion(&self, definition: &Definition) -> Conclusion {
        let part = definition.parts.iter().find(|part| part.name == self.part);
        part.map_or_else(Conclusion::default, |part| self.concluded(definition, part))
    }

    /// The answer for the largest files of each circumstance, as clauses. Empty if nothing was
    /// compared.
    pub(super) fn brief(&self, definition: &Definition) -> Vec<String> {
        let part = definition.parts.iter().find(|part| part.name == self.part);
        let Some(part) = part.filter(|part| is_told(part)) else { return Vec::new() };
        let baseline = plain_name(part, &part.baseline);
        let told = Told { part, baseline: &baseline, measure: part.measure };
        let ranges = self.ranges(definition, part);
        let is_largest = |(at, range): &(usize, &Range)| {
            ranges.get(at + 1).is_none_or(|next| next.circumstances != range.circumstances)
        };
        if ranges.iter().all(|range| range.standing == Standing::TooFew) {
            return ranges.first().map(|range| told.range(range, "", None)).into_iter().collect();
        }
        let largest = ranges.iter().enumerate().filter(is_largest);
        largest.map(|(_, range)| told.range(range, &range.place(part), None)).collect()
    }

    pub(super) fn concluded(&self, definition: &Definition, part: &Part) -> Conclusion {
        if !is_told(part) {
            return Conclusion::default();
        }
        let baseline = plain_name(part, &part.baseline);
        let ranges = self.ranges(definition, part);
        let told = Told { part, baseline: &baseline, measure: part.measure };
        match ranges.as_slice() {
            [] => Conclusion::default(),
            [only] => Conclusion {
                sentence: format!("On this machine {}.", told.range(only, &only.place(part), None)),
                rows: Vec::new(),
            },
            several => told.list(several),
        }
    }

    /// Cells of neighbouring sizes with the same answer, in the order of circumstances and sizes.
    fn ranges(&self, definition: &Definition, part: &Part) -> Vec<Range> {
        let cells = definition.cells().into_iter().map(|(_, cell)| cell);
        let cells: Vec<Cell> = cells.filter(|cell| cell.part == self.part).collect();
        let mut answered: Vec<(Cell, Standing)> = Vec::new();
        for verdict in &self.cells {
            let Some(cell) = cells.iter().find(|cell| cell.id() == verdict.cell) else { continue };
            if !verdict.comparisons.iter().all(|it| it.floor) {
                answered.push((cell.clone(), Standing::of(verdict)));
            }
        }
        // A stable sort: circumstances stay in the order of the definition.
        let order: Vec<String> =
            answered.iter().map(|(cell, _)| circumstances(part, cell)).collect();
        let place = |cell: &Cell| order.iter().position(|it| *it == circumstances(part, cell));
        answered.sort_by_key(|(cell, _)| (place(cell), cell.file_bytes));
        let by = |key: fn(&Standing) -> Key| {
            let mut ranges: Vec<Range> = Vec::new();
            for (cell, standing) in &answered {
                let circumstances = circumstances(part, cell);
                match ranges.last_mut() {
                    Some(last)
                        if last.circumstances == circumstances
                            && key(&last.standing) == key(standing) =>
                    {
                        last.add(cell, standing);
                    }
                    _ => ranges.push(Range::of(cell, standing, circumstances)),
                }
            }
            ranges
        };
        let exact = by(Standing::key);
        if exact.len() <= ROWS_MAX { exact } else { by(Standing::rough_key) }
    }
}

/// Whether a part has an answer of this kind. Runs one after another cannot separate a variant from its
/// place in the order.
fn is_told(part: &Part) -> bool {
    part.order != Order::OneAfterAnother && !part.baseline.is_empty()
}

/// What a cell says.
#[derive(Clone, Debug, PartialEq)]
enum Standing {
    /// One variant is shown to be faster than the baseline and than all others.
    Fastest { leader: Share, sharers: Vec<String> },
    /// A variant is shown to be faster than the baseline. One of `others` may be as fast, or one of
    /// those that are `unknown`, which had too few sessions.
    Close { leader: Share, others: Vec<Share>, unknown: usize, sharers: Vec<String> },
    /// All variants are shown to be slower than the baseline.
    Baseline { next: Share, sharers: Vec<String> },
    /// Nothing is faster, by more than what matters.
    NoneFaster { sharers: Vec<String> },
    /// Nothing is shown to be faster.
    Open { unresolved: usize, of: usize, sharers: Vec<String> },
    /// Nothing has a ratio.
    TooFew,
}

/// A variant's share of the baseline's time, of one cell or of several.
#[derive(Clone, Debug, PartialEq)]
struct Share {
    /// Empty if it is not the same one in all cells.
    variant: String,
    /// The least ratio and the greatest.
    ratios: [f64; 2],
    /// The largest distance of an end of the interval from its ratio, as a share of the ratio.
    within: f64,
    interval: [f64; 2],
}

/// What neighbouring sizes must have in common to be one range.
type Key = (u8, Vec<String>);

impl Share {
    fn of(comparison: &Comparison) -> Option<Share> {
        let Comparison { ratio: Some(ratio), low: Some(low), high: Some(high), .. } = comparison
        else {
            return None;
        };
        Some(Share {
            variant: comparison.variant.clone(),
            ratios: [*ratio; 2],
            within: within(*ratio, *low, *high),
            interval: [*low, *high],
        })
    }

    fn add(&mut self, other: &Share) {
        if self.variant != other.variant {
            self.variant.clear();
        }
        self.ratios[0] = self.ratios[0].min(other.ratios[0]);
        self.ratios[1] = self.ratios[1].max(other.ratios[1]);
        self.interval[0] = self.interval[0].min(other.interval[0]);
        self.interval[1] = self.interval[1].max(other.interval[1]);
        self.within = self.within.max(other.within);
    }

    /// `0.68`, or `0.68 to 0.74` of several cells.
    fn ratios(&self) -> String {
        let [least, greatest] = self.ratios.map(ratio_digits);
        if least == greatest { least } else { format!("{least} to {greatest}") }
    }

    fn sure(&self) -> String {
        sure(self.within, self.interval)
    }
}

/// How far the ends of an interval are from its ratio at most, as a share of the ratio.
fn within(ratio: f64, low: f64, high: f64) -> f64 {
    (high / ratio - 1.0).max(1.0 - low / ratio)
}

/// `sure to within 8 %`; of a wide interval its ends.
fn sure(within: f64, [low, high]: [f64; 2]) -> String {
    if within > WITHIN_MAX {
        return format!("95 % interval {} to {}", ratio_digits(low), ratio_digits(high));
    }
    // An interval of nothing is that of measurements which do not tell apart what is closer.
    let percent = (within * 100.0 - 1e-9).ceil().max(1.0);
    format!("sure to within {percent:.0} %")
}

/// A variant in one cell, in plain words: `sendfile for files of 1 MiB in the page cache`.
pub(crate) fn described(part: &Part, cell: &Cell, variant: &str) -> String {
    let sizes = words::file_size(cell.file_bytes);
    let files =
        kind_of_files(part, cell, &sizes).map_or_else(String::new, |it| format!(" for {it}"));
    let circumstances = match circumstances(part, cell) {
        said if said.is_empty() => said,
        said => format!(" {said}"),
    };
    format!("{}{files}{circumstances}", plain_name(part, variant))
}

/// `sure to within 8 %`, of the interval from `low` to `high` of a ratio. METHODOLOGY.md defines it.
pub(crate) fn sure_of(ratio: f64, low: f64, high: f64) -> String {
    sure(within(ratio, low, high), [low, high])
}

/// A ratio with at least two digits that are no leading zeros.
pub(crate) fn ratio_digits(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 0.095 {
        // From 2 to 12 decimals.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let decimals = (1.0 - ratio.log10().floor()).clamp(2.0, 12.0) as usize;
        return format!("{ratio:.decimals$}");
    }
    words::three_digits(ratio)
}

impl Standing {
    fn of(cell: &CellVerdict) -> Standing {
        let shares = |variant: &str| {
            cell.variants.iter().any(|it| it.variant == variant && it.shares_extents)
        };
        let (sharing, moving): (Vec<&Comparison>, Vec<&Comparison>) = cell
            .comparisons
            .iter()
            .filter(|it| !it.floor)
            .partition(|comparison| shares(&comparison.variant));
        let baseline = cell.variants.iter().filter(|it| {
            it.shares_extents && cell.comparisons.iter().all(|of| of.variant != it.variant)
        });
        let sharing = sharing.iter().map(|it| it.variant.clone());
        let sharers: Vec<String> = baseline.map(|it| it.variant.clone()).chain(sharing).collect();
        let named = |answer: Answer| {
            let of = moving.iter().filter(move |it| it.answer == answer);
            of.map(|it| it.variant.clone()).collect::<Vec<_>>()
        };
        let least = |answer: Answer| {
            let of = moving.iter().filter(move |it| it.answer == answer);
            let known = of.filter_map(|it| Share::of(it));
            known.min_by(|a, b| a.ratios[0].total_cmp(&b.ratios[0]))
        };
        let unresolved = named(Answer::Unresolved).len();
        let known = moving.iter().filter_map(|it| Share::of(it));
        if !moving.is_empty() && known.clone().next().is_none() {
            return Standing::TooFew;
        }
        if let Some(leader) = least(Answer::Faster) {
            let close =
                |it: &Share| it.variant != leader.variant && it.interval[0] <= leader.interval[1];
            let unknown = moving.len() - known.clone().count();
            let mut others: Vec<Share> = known.filter(close).collect();
            others.sort_by(|a, b| a.ratios[0].total_cmp(&b.ratios[0]));
            return match others.len() + unknown {
                0 => Standing::Fastest { leader, sharers },
                _ => Standing::Close { leader, others, unknown, sharers },
            };
        }
        match least(Answer::Slower) {
            _ if unresolved > 0 => Standing::Open { unresolved, of: moving.len(), sharers },
            Some(next) if named(Answer::Equivalent).is_empty() => {
                Standing::Baseline { next, sharers }
            }
            _ => Standing::NoneFaster { sharers },
        }
    }

    fn sharers(&self) -> &[String] {
        match self {
            Standing::Fastest { sharers, .. }
            | Standing::Close { sharers, .. }
            | Standing::Baseline { sharers, .. }
            | Standing::NoneFaster { sharers }
            | Standing::Open { sharers, .. } => sharers,
            Standing::TooFew => &[],
        }
    }

    /// Ranges of sizes have the same variants in front, and the same ones too close to them.
    fn key(&self) -> Key {
        let named: Vec<String> = match self {
            Standing::Close { leader, others, unknown: 0, .. } if others.len() < NAMED_MAX => {
                let others = others.iter().map(|other| other.variant.clone());
                let mut all: Vec<String> = others.chain([leader.variant.clone()]).collect();
                all.sort_unstable();
                all
            }
            _ => Vec::new(),
        };
        let (kind, first) = self.rough_key();
        let of = if named.is_empty() { first } else { named };
        (kind, of.into_iter().chain(self.sharers().iter().cloned()).collect())
    }

    /// The same variant is in front.
    fn rough_key(&self) -> Key {
        match self {
            Standing::Fastest { leader, .. } => (0, vec![leader.variant.clone()]),
            Standing::Close { leader, .. } => (1, vec![leader.variant.clone()]),
            Standing::Baseline { .. } => (2, Vec::new()),
            Standing::NoneFaster { .. } => (3, Vec::new()),
            Standing::Open { .. } => (4, Vec::new()),
            Standing::TooFew => (5, Vec::new()),
        }
    }

    /// Takes in the same standing of another size.
    fn add(&mut self, other: &Standing) {
        match (self, other) {
            (Standing::Fastest { leader, .. }, Standing::Fastest { leader: more, .. })
            | (Standing::Baseline { next: leader, .. }, Standing::Baseline { next: more, .. }) => {
                leader.add(more);
            }
            (
                Standing::Close { leader, others, unknown, .. },
                Standing::Close { leader: new_leader, others: new, unknown: more, .. },
            ) => {
                *unknown = (*unknown).max(*more);
                // Which of those that are too close to call is in front may differ by the size.
                for share in new.iter().chain([new_leader]) {
                    let mine = others.iter_mut().find(|it| it.variant == share.variant);
                    match mine {
                        _ if leader.variant == share.variant => leader.add(share),
                        Some(mine) => mine.add(share),
                        None => others.push(share.clone()),
                    }
                }
            }
            (
                Standing::Open { unresolved, of, .. },
                Standing::Open { unresolved: more, of: all, .. },
            ) => {
                *unresolved += more;
                *of += all;
            }
            _ => {}
        }
    }
}

/// Cells of neighbouring sizes with the same answer.
#[derive(Clone, Debug)]
struct Range {
    /// The first cell.
    cell: Cell,
    sizes: Vec<u64>,
    circumstances: String,
    standing: Standing,
}

impl Range {
    fn of(cell: &Cell, standing: &Standing, circumstances: String) -> Range {
        Range {
            cell: cell.clone(),
            sizes: vec![cell.file_bytes],
            circumstances,
            standing: standing.clone(),
        }
    }

    fn add(&mut self, cell: &Cell, standing: &Standing) {
        self.sizes.push(cell.file_bytes);
        self.standing.add(standing);
    }

    /// `4 KiB`, `4 KiB and 64 KiB`, `4 KiB to 1 MiB`.
    fn sizes(&self) -> String {
        let size = |bytes: &u64| words::file_size(*bytes);
        match self.sizes.as_slice() {
            [] => String::new(),
            [one] => size(one),
            [one, other] => format!("{} and {}", size(one), size(other)),
            [first, .., last] => format!("{} to {}", size(first), size(last)),
        }
    }

    /// What a sentence says of the files: ` for files of 1 MiB in the page cache`.
    fn place(&self, part: &Part) -> String {
        match self.files(part) {
            files if files.is_empty() => String::new(),
            files => format!(" for {files}"),
        }
    }

    fn files(&self, part: &Part) -> String {
        let Some(what) = kind_of_files(part, &self.cell, &self.sizes()) else {
            return String::new();
        };
        match self.circumstances.as_str() {
            "" => what,
            circumstances => format!("{what} {circumstances}"),
        }
    }
}

/// `files of 4 KiB`, by their layout. `None` if the workload has no files.
fn kind_of_files(part: &Part, cell: &Cell, sizes: &str) -> Option<String> {
    if part.sizes.is_empty() || workload::by_name(&part.workload)?.calls_of_run.is_some() {
        return None;
    }
    let files = words::grouped(&cell.files.to_string());
    Some(match (part.workload.as_str(), cell.shape) {
        ("memory", _) => format!("blocks of {sizes}"),
        (_, Shape::File) => format!("files of {sizes}"),
        (_, Shape::Flat) => format!("{files} files of {sizes} in one directory"),
        (_, Shape::Tree) => format!("a tree of {files} files of {sizes}"),
    })
}

/// The levels of the other factors. Empty for a workload that has none.
fn circumstances(part: &Part, cell: &Cell) -> String {
    let mut said = Vec::new();
    if cell.destination == Destination::Overwritten {
        said.push("over existing ones".to_owned());
    } else if part.destinations.len() > 1 {
        said.push("to new ones".to_owned());
    }
    if workload::by_name(&part.workload).is_some_and(|workload| workload.has_state) {
        said.push(
            match cell.state {
                State::Warm => "in the page cache",
                State::Cold => "not in the page cache",
                State::AsItComes => "in whatever state of the page cache",
            }
            .to_owned(),
        );
    }
    if cell.at_once > 1 {
        said.push(format!("{} at once", cell.at_once));
    }
    said.join(", ")
}

/// What the sentences of a part have in common.
struct Told<'p> {
    part: &'p Part,
    /// The baseline in plain words.
    baseline: &'p str,
    measure: Measure,
}

impl Told<'_> {
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
            let said = self.range(
                range,
                "",
                Some(match self.measure {
                    Measure::Elapsed => "that time",
                    Measure::Durable => "that time until the copy is on the medium",
                    Measure::Processor => "that processor time",
                }),
            );
            Row { files, said }
        };
        let mut rows: Vec<Row> = Vec::new();
        if shown.len() < ranges.len() {
            rows.push(Row {
                files: "other files".to_owned(),
                said: "the answer changes from size to size; the table of ratios has it".to_owned(),
            });
        }
        rows.extend(shown.iter().map(row));
        let first = &ranges[0];
        let common = match (one_state, one_size) {
            (true, _) if first.circumstances.is_empty() => String::new(),
            (true, _) if kind_of_files(self.part, &first.cell, "").is_none() => String::new(),
            (true, _) => format!(" for files {}", first.circumstances),
            (false, true) => kind_of_files(self.part, &first.cell, &first.sizes())
                .map_or_else(String::new, |files| format!(" for {files}")),
            (false, false) => String::new(),
        };
        let same_place = |pair: &[Range]| pair[0].circumstances == pair[1].circumstances;
        let by_size = ranges.windows(2).any(same_place);
        let factors = match (by_size, one_state) {
            (true, true) => "the file size",
            (true, false) => "the file size and the circumstances",
            (false, _) => "the circumstances",
        };
        let baseline = self.baseline;
        let is_faster = |range: &Range| {
            matches!(range.standing, Standing::Fastest { .. } | Standing::Close { .. })
        };
        let sentence = match ranges.iter().any(is_faster) {
            true => format!(
                "On this machine the fastest way depends on {factors}{common}. Compared with the time of \
                 {baseline}:"
            ),
            false => format!(
                "On this machine nothing is shown to be faster than {baseline}{common}. By {factors}:"
            ),
        };
        Conclusion { sentence, rows }
    }

    /// The answer of a range. `place` is what it is about, and `time` what the shares are of, if
    /// that is not the baseline's time.
    fn range(&self, range: &Range, place: &str, time: Option<&str>) -> String {
        let name = |variant: &str| plain_name(self.part, variant);
        let baseline = self.baseline;
        let of = match (time, self.measure) {
            (Some(time), _) => time.to_owned(),
            (None, Measure::Elapsed) => format!("the time of {baseline}"),
            (None, Measure::Durable) => {
                format!("the time of {baseline} until the copy is on the medium")
            }
            (None, Measure::Processor) => format!("the processor time of {baseline}"),
        };
        let said = match &range.standing {
            Standing::Fastest { leader, .. } => format!(
                "{} is the fastest{place}: {} of {of}, {}",
                name(&leader.variant),
                leader.ratios(),
                leader.sure()
            ),
            Standing::Close { leader, others, unknown: 0, .. } if others.len() < NAMED_MAX => {
                let all: Vec<&Share> = [leader].into_iter().chain(others).collect();
                let names: Vec<String> = all.iter().map(|it| name(&it.variant)).collect();
                let shares: Vec<String> = all.iter().map(|it| it.ratios()).collect();
                let widest = all.iter().max_by(|a, b| a.within.total_cmp(&b.within));
                format!(
                    "{} is the fastest{place}, too close to call: {} of {of}, {}",
                    words::listed_with("or", &names),
                    words::listed(&shares),
                    widest.map_or_else(String::new, |it| it.sure())
                )
            }
            Standing::Close { leader, others, unknown, .. } => {
                let leading = name(&leader.variant);
                let others = match others.len() + unknown {
                    1 => "another one".to_owned(),
                    several => format!("one of {several} others"),
                };
                format!(
                    "{leading} or {others} is the fastest{place}, too close to call: \
                     the first takes {} of {of}, {}",
                    leader.ratios(),
                    leader.sure()
                )
            }
            Standing::Baseline { next, .. } => {
                let (ratios, sure) = (next.ratios(), next.sure());
                let next_to = match next.variant.as_str() {
                    "" => {
                        let least = ratio_digits(next.ratios[0]);
                        format!("the others take at least {least} times its time")
                    }
                    variant => {
                        format!("{} comes closest with {ratios} times its time", name(variant))
                    }
                };
                format!("{baseline} is the fastest{place}; {next_to}, {sure}")
            }
            Standing::TooFew => format!("there were too few sessions to compare{place}"),
            // In a list its sentence has the name of the baseline.
            Standing::NoneFaster { .. } if time.is_some() => {
                "nothing is noticeably faster".to_owned()
            }
            Standing::NoneFaster { .. } => {
                format!("nothing is noticeably faster than {baseline}{place}")
            }
            Standing::Open { unresolved, of, .. } => {
                let than = match time {
                    Some(_) => String::new(),
                    None => format!(" than {baseline}{place}"),
                };
                let open = match (unresolved, of) {
                    (_, 1) => "the comparison is".to_owned(),
                    (1, all) => format!("1 of {all} comparisons is"),
                    (open, all) => format!("{open} of {all} comparisons are"),
                };
                format!("nothing is shown to be faster{than}; {open} too close to call")
            }
        };
        let sharers: Vec<String> =
            range.standing.sharers().iter().map(|variant| name(variant)).collect();
        match sharers.len() {
            0 => said,
            count => {
                let (verb, verb_again) =
                    if count == 1 { ("shares", "moves") } else { ("share", "move") };
                format!(
                    "{said} ({} {verb} extents and {verb_again} no bytes)",
                    words::listed(&sharers)
                )
            }
        }
    }
}
