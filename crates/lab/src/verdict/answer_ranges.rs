//! The answers of cells, and the ranges of sizes that have the same answer. `conclusion.rs` puts them in
//! sentences.

use super::plain_names::plain_name;
use super::{CellVerdict, Comparison, PartVerdict};
use crate::definition::Part;
use crate::definition::cell::{Cell, Destination, Shape};
use crate::in_order::gathered;
use crate::page_cache::state::State;
use crate::stats::Answer;
use crate::{words, workload};

/// Rows of an answer. Further ones are left to the table of ratios.
pub(super) const ROWS_MAX: usize = 6;

/// Variants that a sentence names as too close to call, the first included.
pub(super) const NAMED_MAX: usize = 3;

/// An interval that is wider than this share of its ratio is written as an interval.
const WITHIN_MAX: f64 = 0.5;

impl PartVerdict {
    /// Cells of neighbouring sizes with the same answer, in the order of circumstances and sizes.
    pub(super) fn ranges(&self, part: &Part) -> Vec<Range> {
        let cells = part.cells();
        let mut answered: Vec<(Cell, CellAnswer)> = Vec::new();
        for verdict in &self.cells {
            let Some(cell) = cells.iter().find(|cell| cell.id() == verdict.cell) else { continue };
            if verdict.asked().next().is_some() {
                answered.push((cell.clone(), CellAnswer::of(verdict)));
            }
        }
        // Circumstances are in the order of the definition.
        let mut answered = gathered(answered, |(cell, _)| circumstances(part, cell));
        answered.iter_mut().for_each(|(_, of)| of.sort_by_key(|(cell, _)| cell.file_bytes));
        let by = |key: fn(&CellAnswer) -> Key| -> Vec<Range> {
            let ranges = answered.iter().flat_map(|(circumstances, cells)| {
                let alike = cells.chunk_by(move |(_, a), (_, b)| key(a) == key(b));
                alike.map(|cells| Range::of(circumstances, cells))
            });
            ranges.collect()
        };
        let exact = by(CellAnswer::key);
        if exact.len() <= ROWS_MAX { exact } else { by(CellAnswer::rough_key) }
    }
}

/// What the comparisons of a cell show.
#[derive(Clone, Debug)]
pub(super) struct CellAnswer {
    pub(super) shown: Shown,
    /// Variants that share extents, of which nothing is shown; none if the others had too few
    /// sessions.
    pub(super) sharers: Vec<String>,
}

/// What the comparisons of variants that move bytes show.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shown {
    /// A variant is shown to be faster than the baseline. One of `others` may be as fast, or one of
    /// those that are `unknown`, which had too few sessions.
    Faster { leader: Share, others: Vec<Share>, unknown: usize },
    /// All variants are shown to be slower than the baseline.
    Baseline { next: Share },
    /// Nothing is faster, by more than what matters.
    NoneFaster,
    /// Nothing is shown to be faster.
    Open { unresolved: usize, of: usize },
    /// Nothing has a ratio.
    TooFew,
}

/// A variant's share of the baseline's time, of one cell or of several.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Share {
    /// Empty if it is not the same one in all cells.
    pub(super) variant: String,
    /// The least ratio and the greatest.
    pub(super) ratios: [f64; 2],
    /// The largest distance of an end of the interval from its ratio, as a share of the ratio.
    pub(super) within: f64,
    interval: [f64; 2],
}

/// What neighbouring sizes must have in common to be one range.
pub(super) type Key = (u8, Vec<String>);

impl Share {
    fn of(comparison: &Comparison) -> Option<Share> {
        let (ratio, low, high) = (comparison.ratio?, comparison.low?, comparison.high?);
        Some(Share {
            variant: comparison.variant.clone(),
            ratios: [ratio; 2],
            within: within(ratio, low, high),
            interval: [low, high],
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
    pub(super) fn ratios(&self) -> String {
        let [least, greatest] = self.ratios.map(ratio_digits);
        if least == greatest { least } else { format!("{least} to {greatest}") }
    }

    pub(super) fn sure(&self) -> String {
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

impl CellAnswer {
    fn of(cell: &CellVerdict) -> CellAnswer {
        let shares = |variant: &str| {
            cell.variants.iter().any(|it| it.variant == variant && it.shares_extents)
        };
        let (sharing, moving): (Vec<&Comparison>, Vec<&Comparison>) =
            cell.asked().partition(|comparison| shares(&comparison.variant));
        let baseline = cell.variants.iter().filter(|it| {
            it.shares_extents && cell.comparisons.iter().all(|of| of.variant != it.variant)
        });
        let sharing = sharing.iter().map(|it| it.variant.clone());
        let sharers: Vec<String> = baseline.map(|it| it.variant.clone()).chain(sharing).collect();
        let count = |answer: Answer| moving.iter().filter(|it| it.answer == answer).count();
        let least = |answer: Answer| {
            let of = moving.iter().filter(move |it| it.answer == answer);
            let known = of.filter_map(|it| Share::of(it));
            known.min_by(|a, b| a.ratios[0].total_cmp(&b.ratios[0]))
        };
        let unresolved = count(Answer::Unresolved);
        let known: Vec<Share> = moving.iter().filter_map(|it| Share::of(it)).collect();
        if !moving.is_empty() && known.is_empty() {
            return CellAnswer { shown: Shown::TooFew, sharers: Vec::new() };
        }
        let shown = match (least(Answer::Faster), least(Answer::Slower)) {
            (Some(leader), _) => {
                let close = |it: &Share| {
                    it.variant != leader.variant && it.interval[0] <= leader.interval[1]
                };
                let unknown = moving.len() - known.len();
                let mut others: Vec<Share> = known.into_iter().filter(close).collect();
                others.sort_by(|a, b| a.ratios[0].total_cmp(&b.ratios[0]));
                Shown::Faster { leader, others, unknown }
            }
            _ if unresolved > 0 => Shown::Open { unresolved, of: moving.len() },
            (None, Some(next)) if count(Answer::Equivalent) == 0 => Shown::Baseline { next },
            _ => Shown::NoneFaster,
        };
        CellAnswer { shown, sharers }
    }

    /// Ranges of sizes have the same variants in front, and the same ones too close to them.
    fn key(&self) -> Key {
        let (kind, mut of) = self.rough_key();
        if let Shown::Faster { others, unknown: 0, .. } = &self.shown
            && others.len() < NAMED_MAX
        {
            of.extend(others.iter().map(|other| other.variant.clone()));
            of.sort_unstable();
        }
        of.extend_from_slice(&self.sharers);
        (kind, of)
    }

    /// Answers of one kind with the same variant in front have the same key.
    fn rough_key(&self) -> Key {
        match &self.shown {
            Shown::Faster { leader, others, unknown } => {
                let is_close = others.len() + unknown > 0;
                (u8::from(is_close), vec![leader.variant.clone()])
            }
            Shown::Baseline { .. } => (2, Vec::new()),
            Shown::NoneFaster => (3, Vec::new()),
            Shown::Open { .. } => (4, Vec::new()),
            Shown::TooFew => (5, Vec::new()),
        }
    }

    /// Takes in the same answer for another size.
    fn add(&mut self, other: &CellAnswer) {
        match (&mut self.shown, &other.shown) {
            (Shown::Baseline { next }, Shown::Baseline { next: more }) => next.add(more),
            (
                Shown::Faster { leader, others, unknown },
                Shown::Faster { leader: new_leader, others: new, unknown: more },
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
            (Shown::Open { unresolved, of }, Shown::Open { unresolved: more, of: all }) => {
                *unresolved += more;
                *of += all;
            }
            _ => {}
        }
    }
}

/// Cells of neighbouring sizes with the same answer.
#[derive(Clone, Debug)]
pub(super) struct Range {
    /// The first cell.
    pub(super) cell: Cell,
    pub(super) sizes: Vec<u64>,
    pub(super) circumstances: String,
    pub(super) answer: CellAnswer,
}

impl Range {
    /// That of neighbouring cells, one at least.
    fn of(circumstances: &str, cells: &[(Cell, CellAnswer)]) -> Range {
        let (cell, mut answer) = cells[0].clone();
        cells[1..].iter().for_each(|(_, other)| answer.add(other));
        let sizes = cells.iter().map(|(cell, _)| cell.file_bytes).collect();
        Range { cell, sizes, circumstances: circumstances.to_owned(), answer }
    }

    /// `4 KiB`, `4 KiB and 64 KiB`, `4 KiB to 1 MiB`.
    pub(super) fn sizes(&self) -> String {
        let size = |bytes: &u64| words::file_size(*bytes);
        match self.sizes.as_slice() {
            [] => String::new(),
            [one] => size(one),
            [one, other] => format!("{} and {}", size(one), size(other)),
            [first, .., last] => format!("{} to {}", size(first), size(last)),
        }
    }

    /// What a sentence says of the files: ` for files of 1 MiB in the page cache`.
    pub(super) fn place(&self, part: &Part) -> String {
        let Some(files) = kind_of_files(part, &self.cell, &self.sizes()) else {
            return String::new();
        };
        match self.circumstances.as_str() {
            "" => format!(" for {files}"),
            circumstances => format!(" for {files} {circumstances}"),
        }
    }
}

/// `files of 4 KiB`, by their layout. `None` if the workload has no files.
pub(super) fn kind_of_files(part: &Part, cell: &Cell, sizes: &str) -> Option<String> {
    if part.sizes.is_empty() || workload::by_name(&part.workload)?.calls_of_run.is_some() {
        return None;
    }
    let files = words::grouped(&cell.files.to_string());
    Some(match (part.workload.as_str(), cell.shape) {
        ("memory", _) => format!("blocks of {sizes}"),
        (_, Shape::File) => format!("files of {sizes}"),
        (_, shape) => {
            let sizes = if shape.is_mixed() { format!("{sizes} on average") } else { sizes.into() };
            match shape.is_tree() {
                true => format!("a tree of {files} files of {sizes}"),
                false => format!("{files} files of {sizes} in one directory"),
            }
        }
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
