//! What other protocols would have concluded from the same machine.
//!
//! The samples come from shuffled, interleaved rounds. This analysis picks from them what a simpler
//! protocol would have measured (one run of each, or one variant after the other), and puts its
//! answer beside the answer of all rounds. It does the same for cells whose page cache state was
//! not set.

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, in_both_states};
use crate::analysis::view::{CellView, View};
use crate::definition::Order;
use crate::definition::cell::Cell;
use crate::definition::deltas::Deltas;
use crate::page_cache::state::State;
use crate::stats::{Estimated, median, rank_sum_p};
use crate::words;

/// The level of the rank-sum test.
const ALPHA: f64 = 0.05;

/// With fewer runs, halves say nothing.
const RUNS_MIN: usize = 8;

/// How the shortcuts did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderOfRuns {
    /// δ: the share that does not matter, of runs whose source is in the page cache.
    pub delta: f64,
    /// δ of cold runs: the share that does not matter.
    #[serde(default = "Deltas::least")]
    pub delta_cold: f64,
    /// One run of each variant: the first.
    pub first_runs: Shortcut,
    /// A variant's first half against the baseline's second half: one after the other.
    pub blocks: Shortcut,
    /// Each variant's first half against its own second half.
    pub halves: Against,
    /// Each variant's odd runs against its own even runs.
    pub alternate: Against,
    /// Runs that were really made one variant after the other, where the experiment has a part of
    /// those, against the shuffled ones.
    pub one_after_another: Vec<OneAfterAnother>,
    /// Runs whose page cache was left as it came.
    pub unproved: Vec<Unproved>,
}

/// Comparisons made by a shortcut, against those of interleaved rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shortcut {
    /// How many.
    pub comparisons: usize,
    /// Of these, ratios that lie outside the interval of interleaved rounds, and off by more than
    /// δ.
    pub off: usize,
    /// Of these, ratios that make faster what is shown to be slower, or slower what is faster.
    pub reversed: usize,
    /// The one that is off the most.
    pub worst: Option<Box<Off>>,
    /// All of them, for figures.
    #[serde(default)]
    pub each: Vec<Off>,
}

/// A shortcut's ratio beside the one of interleaved rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Off {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// What the shortcut says.
    pub ratio: f64,
    /// What interleaved rounds say.
    pub interleaved: Estimated,
}

/// Runs of the same variant in the same cell against each other, by the usual test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Against {
    /// How many times.
    pub tests: usize,
    /// How often the test calls them significantly different at 5 %.
    pub significant: usize,
}

/// A variant in runs that followed one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneAfterAnother {
    /// The median of its runs over that of the baseline's, beside what interleaved rounds say.
    #[serde(flatten)]
    pub off: Off,
    /// The cell of shuffled rounds that it is put beside.
    pub interleaved_cell: String,
}

impl Off {
    fn distance(&self) -> f64 {
        (self.ratio / self.interleaved.value).ln().abs()
    }
}

/// A variant whose source was left in the page cache as it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unproved {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// The median of its runs.
    pub median_ns: f64,
    /// The median where the source was proved to be in the page cache; none where it was not
    /// measured.
    pub warm_median_ns: Option<f64>,
    /// The median where it was proved not to be.
    pub cold_median_ns: Option<f64>,
    /// The share of the source that was in the page cache before the runs, on average; none where
    /// that cannot be counted.
    pub resident_share: Option<f64>,
}

/// What the runs of `view` come to in other orders; `views` are all parts.
pub(crate) fn of(view: &View<'_>, views: &[View<'_>]) -> Option<OrderOfRuns> {
    let baseline = view.part.index_of(&view.part.baseline);
    let mut of = OrderOfRuns {
        delta: view.rules.deltas.warm,
        delta_cold: view.rules.deltas.cold,
        ..OrderOfRuns::default()
    };
    for cell in &view.cells {
        for index in 0..view.part.variants.len() {
            let values = cell.values(index, view.part.measure);
            let (first, second) = values.split_at(values.len() / 2);
            of.halves.add(first, second);
            let half = |odd: usize| values.iter().skip(odd).step_by(2).copied().collect::<Vec<_>>();
            of.alternate.add(&half(0), &half(1));
        }
        if cell.cell.state == State::AsItComes {
            of.unproved.extend(unproved(view, cell, views));
        }
        let Some(baseline) = baseline else { continue };
        if view.part.order == Order::OneAfterAnother {
            of.one_after_another.extend(one_after_another(cell, baseline, views));
        } else {
            shortcuts(view, cell, baseline, &mut of);
        }
    }
    (of.halves.tests > 0 || of.first_runs.comparisons > 0 || !of.one_after_another.is_empty())
        .then_some(of)
}

fn shortcuts(view: &View<'_>, cell: &CellView<'_>, baseline: usize, of: &mut OrderOfRuns) {
    let delta = view.rules.deltas.of(cell.cell.state);
    let points = cell.points(view.part.measure);
    let base = cell.values(baseline, view.part.measure);
    for variant in view.part.compared() {
        let Some(index) = view.part.index_of(variant) else { continue };
        let Some(interleaved) = view.ratio(cell, &points, (index, baseline)) else { continue };
        let own = cell.values(index, view.part.measure);
        let off =
            |ratio: f64| Off { cell: cell.cell.id(), variant: variant.clone(), ratio, interleaved };
        if let (Some(own), Some(base)) = (own.first(), base.first()) {
            of.first_runs.add(off(own / base), delta);
        }
        let halves = (median(&own[..own.len() / 2]), median(&base[base.len() / 2..]));
        if let (Some(own), Some(base)) = halves {
            of.blocks.add(off(own / base), delta);
        }
    }
}

impl Shortcut {
    fn add(&mut self, off: Off, delta: f64) {
        let limit = delta.ln_1p();
        self.comparisons += 1;
        let Estimated { low, high, .. } = off.interleaved;
        // What interleaved rounds cannot tell themselves is no fault of the shortcut.
        let outside =
            low.is_none_or(|low| off.ratio < low) || high.is_none_or(|high| off.ratio > high);
        self.off += usize::from(outside && off.distance() > limit);
        let said = off.ratio.ln();
        let reversed = (low.is_some_and(|low| low > 1.0) && said < -limit)
            || (high.is_some_and(|high| high < 1.0) && said > limit);
        self.reversed += usize::from(reversed);
        if self.worst.as_ref().is_none_or(|worst| worst.distance() < off.distance()) {
            self.worst = Some(Box::new(off.clone()));
        }
        self.each.push(off);
    }
}

impl Against {
    fn add(&mut self, one: &[f64], other: &[f64]) {
        if one.len() + other.len() >= RUNS_MIN {
            self.tests += 1;
            self.significant += usize::from(rank_sum_p(one, other) < ALPHA);
        }
    }
}

/// The first cell of shuffled rounds in `views` that is like `cell` in this state, with its view.
fn shuffled<'v, 'r>(
    cell: &CellView<'_>,
    state: State,
    views: impl IntoIterator<Item = &'v View<'r>>,
) -> Option<(&'v View<'r>, &'v CellView<'r>)>
where
    'r: 'v,
{
    let wanted = Cell { part: String::new(), state, ..cell.cell.clone() };
    let is_wanted =
        |other: &&CellView<'_>| Cell { part: String::new(), ..other.cell.clone() } == wanted;
    let mut shuffled = views.into_iter().filter(|view| view.part.order == Order::Shuffled);
    shuffled.find_map(|view| Some((view, view.cells.iter().find(is_wanted)?)))
}

fn one_after_another(
    cell: &CellView<'_>,
    baseline: usize,
    views: &[View<'_>],
) -> Vec<OneAfterAnother> {
    // What was left as it came is put beside what it was taken for.
    let states = [cell.cell.state, State::Warm, State::Cold];
    let found = states.into_iter().find_map(|state| shuffled(cell, state, views));
    let Some((other, beside)) = found else { return Vec::new() };
    let (part, measure) = (cell.part, cell.part.measure);
    let points = beside.points(measure);
    let naive = |variant: &String| {
        let own = cell.median_ns(part.index_of(variant)?, measure)?;
        let base = cell.median_ns(baseline, measure)?;
        let pair = (other.part.index_of(variant)?, other.part.index_of(&part.baseline)?);
        let interleaved = other.ratio(beside, &points, pair)?;
        let (cell, variant) = (cell.cell.id(), variant.clone());
        let off = Off { cell, variant, ratio: own / base, interleaved };
        Some(OneAfterAnother { off, interleaved_cell: beside.cell.id() })
    };
    part.compared().filter_map(naive).collect()
}

fn unproved(view: &View<'_>, cell: &CellView<'_>, views: &[View<'_>]) -> Vec<Unproved> {
    let median_in = |state: State, variant: &String| {
        // That of the part itself comes first.
        let (other, beside) = shuffled(cell, state, std::iter::once(view).chain(views))?;
        beside.median_ns(other.part.index_of(variant)?, view.part.measure)
    };
    let src_bytes = cell.cell.run_bytes() as f64 * f64::from(cell.cell.at_once);
    let of = |(index, variant): (usize, &String)| {
        let resident: Vec<f64> = cell.counted[index]
            .iter()
            .filter_map(|record| record.measured.src_resident_bytes_before)
            .map(|bytes| bytes as f64 / src_bytes)
            .collect();
        Some(Unproved {
            cell: cell.cell.id(),
            variant: variant.clone(),
            median_ns: cell.median_ns(index, view.part.measure)?,
            warm_median_ns: median_in(State::Warm, variant),
            cold_median_ns: median_in(State::Cold, variant),
            resident_share: (!resident.is_empty())
                .then(|| resident.iter().sum::<f64>() / resident.len() as f64),
        })
    };
    view.part.variants.iter().enumerate().filter_map(of).collect()
}

impl OrderOfRuns {
    /// What runs said that were made one after another; none where there were no such.
    pub(crate) fn headline(&self) -> Option<String> {
        let all = self.one_after_another.iter().map(|it| &it.off);
        let worst = all.max_by(|a, b| a.distance().total_cmp(&b.distance()))?;
        Some(format!(
            "one after another {} took {} x the time, interleaved {}",
            worst.variant,
            words::three_digits(worst.ratio),
            worst.interleaved.in_words(words::three_digits)
        ))
    }

    pub(crate) fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::of(
            "What the order of runs would have made of it",
            2,
            self.one_after_another.iter().map(|it| &it.off),
            &[
                ("variant", &|naive| naive.variant.clone()),
                ("cell", &|naive| naive.cell.clone()),
                ("one after another", &|naive| words::three_digits(naive.ratio)),
                ("interleaved", &|naive| naive.interleaved.in_words(words::three_digits)),
            ],
        );
        let deltas = Deltas { warm: self.delta, cold: self.delta_cold };
        sheet.sentences.extend(self.first_runs.in_words("One run of each, the first,", deltas));
        sheet.sentences.extend(self.blocks.in_words(
            "A first half of runs against the baseline's second half, as when one is measured after \
             the other,",
            deltas,
        ));
        if self.halves.tests > 0 {
            sheet.say(format!(
                "The usual test at 5 % calls the first half of a variant's runs different from its own \
                 second half in {} of {} cases, and its odd runs from its even ones in {} of {}: what \
                 is over one in twenty is drift, and no method made it.",
                self.halves.significant,
                self.halves.tests,
                self.alternate.significant,
                self.alternate.tests
            ));
        }
        for unproved in &self.unproved {
            sheet.say(unproved.in_words());
        }
        sheet
    }
}

impl Unproved {
    pub(crate) fn in_words(&self) -> String {
        let mut said = vec![format!(
            "{} with an unproved page cache state took {} at {}",
            self.variant,
            words::nanoseconds(self.median_ns),
            self.cell
        )];
        let share = self.resident_share;
        said.extend(share.map(|it| format!("{:.0} % of the source was there", it * 100.0)));
        let proved = |(name, ns): (&str, Option<f64>)| {
            Some(format!("proved to be {name} it takes {}", words::nanoseconds(ns?)))
        };
        let states = [("warm", self.warm_median_ns), ("cold", self.cold_median_ns)];
        let proved: Vec<String> = states.into_iter().filter_map(proved).collect();
        said.extend((!proved.is_empty()).then(|| words::listed(&proved)));
        said.join("; ") + "."
    }
}

impl Shortcut {
    fn in_words(&self, what: &str, deltas: Deltas) -> Option<String> {
        let worst = self.worst.as_ref()?;
        Some(format!(
            "{what} would have given a ratio outside the interval, and off by more than {}, in {} of \
             {} comparisons, and with the opposite direction in {}; farthest off {} at {}: {} instead of \
             {}.",
            in_both_states(deltas),
            self.off,
            self.comparisons,
            self.reversed,
            worst.variant,
            worst.cell,
            words::three_digits(worst.ratio),
            worst.interleaved.in_words(words::three_digits)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    #[test]
    fn drift_misleads_measurements_one_after_the_other() {
        let mut made = Synthetic::new("copy", &["sendfile", "read_write:64K"], &["1M"]);
        // Identical variants on a machine that becomes slower by half.
        made.measure_with(12, 2, |_, _, record| 1e6 * (1.0 + f64::from(record.session) / 24.0));
        let order = of(&made.view(), &[]).expect("runs");
        assert_eq!((order.blocks.comparisons, order.blocks.off), (1, 1));
        assert_eq!(order.blocks.each.first(), order.blocks.worst.as_deref());
        let worst = order.blocks.worst.as_ref().expect("one");
        assert!(worst.ratio < 0.9 && (worst.interleaved.value - 1.0).abs() < 0.02, "{worst:?}");
        assert_eq!(order.halves, Against { tests: 2, significant: 2 });
        assert_eq!(order.alternate, Against { tests: 2, significant: 0 });
    }

    #[test]
    fn a_steady_machine_does_not_mislead_them() {
        let mut made = Synthetic::new("copy", &["sendfile", "read_write:64K"], &["1M"]);
        made.measure(12, 4, |_, variant| if variant == "sendfile" { 1e6 } else { 1.5e6 });
        made.rules.deltas.warm = 0.1;
        let order = of(&made.view(), &[]).expect("runs");
        assert_eq!((order.first_runs.off, order.blocks.off, order.blocks.reversed), (0, 0, 0));
    }

    #[test]
    fn runs_one_after_another_stand_beside_the_shuffled_ones() {
        let mut made = Synthetic::new("copy", &["sendfile", "read_write:64K"], &["1M"]);
        let mut naive = made.definition.parts[0].clone();
        naive.name = "naive".to_owned();
        naive.order = Order::OneAfterAnother;
        naive.states = vec![State::AsItComes];
        made.definition.parts.push(naive);
        made.measure_with(5, 3, |cell, variant, record| {
            record.measured.src_resident_bytes_before = Some(1 << 19);
            // The first variant in an unproved cache reads from the device.
            if cell.state == State::AsItComes && variant == "sendfile" { 3e6 } else { 1e6 }
        });
        let views = View::all(&made.definition, made.samples(), made.rules);
        let order = of(&views[1], &views).expect("runs");
        assert_eq!(order.first_runs.comparisons, 0);
        let naive = &order.one_after_another[0];
        assert_eq!(naive.interleaved_cell, "part/1M");
        assert!((naive.off.ratio - 1.0 / 3.0).abs() < 0.02, "{naive:?}");
        assert!((naive.off.interleaved.value - 1.0).abs() < 0.02, "{naive:?}");
        let unproved = &order.unproved[0];
        assert_eq!(unproved.resident_share, Some(0.5));
        assert!(unproved.warm_median_ns.is_some() && unproved.cold_median_ns.is_none());
        assert!(unproved.in_words().contains("50 % of the source was there; proved to be warm"));
    }
}
