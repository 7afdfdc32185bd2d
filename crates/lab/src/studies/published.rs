//! Published times and ratios beside those that were measured.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, size};
use crate::analysis::view::{CellView, View, user_and_system_ns};
use crate::definition::reference::{self, Data, Figure};
use crate::definition::{Measure, Reference, is_floor};
use crate::page_cache::state::State;
use crate::stats::{Estimated, median};
use crate::words;
use crate::workload::calls;

/// Published and measured figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where the figures are from.
    pub source: String,
    /// What was not controlled then.
    pub not_controlled: String,
    /// The variant that ratios are to.
    pub baseline: String,
    /// Each variant in each cell that has a published figure.
    pub rows: Vec<Row>,
}

/// One variant in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// The published series.
    pub series: String,
    /// What was published.
    pub then: Figure,
    /// The published time over that of the baseline, at the same size and place.
    pub then_ratio: Option<f64>,
    /// Bytes of the file now.
    pub now_bytes: u64,
    /// The page cache state now.
    pub now_state: State,
    /// The median of the runs now.
    pub now_ns: f64,
    /// Processor time in user mode: a share of the median of both together.
    pub now_user_ns: Option<f64>,
    /// Processor time in the kernel: a share of the median of both together.
    pub now_system_ns: Option<f64>,
    /// The ratio to the baseline now, paired within rounds.
    pub now_ratio: Option<Estimated>,
}

pub(crate) fn of(view: &View<'_>) -> Option<Published> {
    let reference = view.part.reference.as_ref()?;
    // Single calls have an analysis of their own.
    if view.part.workload == calls::NAME {
        return None;
    }
    let data = reference::by_name(&reference.data)?;
    let mut names = std::iter::once(&view.part.baseline).chain(&view.part.variants);
    let baseline = names.find(|name| reference.series.contains_key(*name))?;
    let rows: Vec<Row> = view
        .cells
        .iter()
        .filter(|cell| reference.is_like(cell))
        .flat_map(|cell| rows(view, cell, reference, data, baseline))
        .collect();
    let years: BTreeSet<String> = rows.iter().map(|row| row.then.year.to_string()).collect();
    let years: Vec<String> = years.into_iter().collect();
    (!rows.is_empty()).then(|| Published {
        source: data.title.replace("{years}", &words::listed(&years)),
        not_controlled: reference.not_controlled.clone(),
        baseline: baseline.clone(),
        rows,
    })
}

impl Reference {
    /// Whether the cell has the state and the runs at once of the study.
    fn is_like(&self, cell: &CellView<'_>) -> bool {
        let same_state = self.state.is_none_or(|state| state == cell.cell.state);
        same_state && self.at_once == cell.cell.at_once
    }
}

/// The figure of this size; of another one, where a series has only one.
fn figure(data: &Data, series: &str, file_bytes: u64) -> Option<Figure> {
    let figures = data.figures(series);
    if let [one] = figures.as_slice() {
        return Some(one.clone());
    }
    figures.into_iter().find(|figure| figure.file_bytes == file_bytes)
}

fn rows(
    view: &View<'_>,
    cell: &CellView<'_>,
    reference: &Reference,
    data: &Data,
    baseline: &String,
) -> Vec<Row> {
    let points = cell.points(Measure::Elapsed);
    let bytes = cell.cell.file_bytes;
    let base_index = view.part.index_of(baseline);
    let base_figure = reference.series.get(baseline).and_then(|series| figure(data, series, bytes));
    let row = |(index, variant): (usize, &String)| {
        let (now_user_ns, now_system_ns) = user_and_system_ns(&cell.counted[index]).unzip();
        let series = reference.series.get(variant)?;
        let then = figure(data, series, bytes)?;
        let same_place =
            |base: &&Figure| (base.file_bytes, &base.system) == (then.file_bytes, &then.system);
        let base = base_figure.as_ref().filter(same_place);
        let is_base = Some(index) == base_index;
        let compared = base_index.filter(|_| !is_base);
        let now_ratio = compared.and_then(|base| view.ratio(cell, &points, (index, base)));
        Some(Row {
            cell: cell.cell.id(),
            variant: variant.clone(),
            series: series.clone(),
            then_ratio: base.filter(|_| !is_base).map(|base| then.elapsed_ns / base.elapsed_ns),
            then,
            now_bytes: bytes,
            now_state: cell.cell.state,
            now_ns: cell.median_ns(index, Measure::Elapsed)?,
            now_user_ns,
            now_system_ns,
            now_ratio,
        })
    };
    view.part.variants.iter().enumerate().filter_map(row).collect()
}

/// The heads of what part of the time was the processor's in the kernel.
const KERNEL_THEN: &str = "kernel then";

const KERNEL_NOW: &str = "kernel now";

/// A table of more rows than this is for programs; people get a row a size.
const ROWS_MAX: usize = 32;

impl Row {
    /// The rate now over the rate then.
    fn times_the_rate(&self) -> f64 {
        let then = self.then.file_bytes as f64 / self.then.elapsed_ns;
        self.now_bytes as f64 / self.now_ns / then
    }
}

/// The row with the least value, of rows of a cell.
fn least<'r>(rows: &[&'r Row], value: fn(&Row) -> f64) -> &'r Row {
    rows.iter().min_by(|a, b| value(a).total_cmp(&value(b))).expect("a chunk has rows")
}

impl Published {
    pub(crate) fn sheet(&self) -> Sheet {
        let mut sheet =
            if self.rows.len() <= ROWS_MAX { self.every_row() } else { self.a_row_a_cell() };
        sheet.table.title = format!("Then and now: {}", self.source);
        if let Some(said) = self.directions_in_words() {
            sheet.say(said);
        }
        if sheet.table.columns.iter().any(|column| column == KERNEL_NOW) {
            sheet.say("Kernel: the processor's time there, as a share of the time by the clock.");
        }
        if self.rows.iter().any(|row| row.then.file_bytes != row.now_bytes) {
            sheet.say(
                "Files then and now are not of one size: compare ratios and rates, not times.",
            );
        }
        let mut systems: Vec<String> =
            self.rows.iter().map(|row| format!("{}, {}", row.then.year, row.then.system)).collect();
        systems.sort();
        systems.dedup();
        sheet.say(format!("Then: {}.", systems.join("; ")));
        sheet.say(format!("Not controlled then: {}", self.not_controlled));
        sheet
    }

    fn every_row(&self) -> Sheet {
        let then = format!("then, to {}", self.baseline);
        let digits = words::three_digits;
        let none = || "-".to_owned();
        let share = |system_ns: Option<f64>, elapsed_ns: f64| {
            system_ns.map_or_else(none, |ns| format!("{:.0} %", ns / elapsed_ns * 100.0))
        };
        let mut sheet = Sheet::of(
            "",
            2,
            &self.rows,
            &[
                ("variant", &|row| row.variant.clone()),
                ("cell", &|row| row.cell.clone()),
                ("file then", &|row| size(row.then.file_bytes)),
                ("then", &|row| words::nanoseconds(row.then.elapsed_ns)),
                ("now", &|row| words::nanoseconds(row.now_ns)),
                ("times the rate", &|row| digits(row.times_the_rate())),
                (&then, &|row| row.then_ratio.map_or_else(none, digits)),
                ("now, to it", &|row| row.now_ratio.map_or_else(none, |it| it.in_words(digits))),
                (KERNEL_THEN, &|row| share(row.then.system_ns, row.then.elapsed_ns)),
                (KERNEL_NOW, &|row| share(row.now_system_ns, row.now_ns)),
            ],
        );
        let all = |is_so: fn(&Row) -> bool| self.rows.iter().all(is_so);
        sheet.drop_if(all(|row| row.then.file_bytes == row.now_bytes), "file then");
        sheet.drop_if(all(|row| row.then.system_ns.is_none()), KERNEL_THEN);
        sheet.drop_if(all(|row| row.then.system_ns.is_none()), KERNEL_NOW);
        sheet.drop_if(all(|row| row.now_ratio.is_none()), "now, to it");
        sheet
    }

    /// Who was the fastest, and how much faster all is.
    fn a_row_a_cell(&self) -> Sheet {
        let moving: Vec<&Row> = self.rows.iter().filter(|row| !is_floor(&row.variant)).collect();
        let then = |rows: &&[&Row]| least(rows, |row| row.then.elapsed_ns).clone();
        let now = |rows: &&[&Row]| least(rows, |row| row.now_ns).clone();
        let times_the_rate = |rows: &&[&Row]| {
            let ratio = median(rows.iter().map(|row| row.times_the_rate()));
            ratio.map_or_else(String::new, words::three_digits)
        };
        Sheet::of(
            "",
            1,
            moving.chunk_by(|a, b| a.cell == b.cell),
            &[
                ("cell", &|rows| rows[0].cell.clone()),
                ("methods", &|rows| rows.len().to_string()),
                ("fastest then", &|rows| then(rows).variant),
                ("took", &|rows| words::nanoseconds(then(rows).then.elapsed_ns)),
                ("fastest now", &|rows| now(rows).variant),
                ("takes", &|rows| words::nanoseconds(now(rows).now_ns)),
                ("times the rate", &times_the_rate),
            ],
        )
    }

    /// How many ratios lie on the same side of 1 now as then.
    fn directions_in_words(&self) -> Option<String> {
        let both: Vec<(f64, Estimated)> =
            self.rows.iter().filter_map(|row| Some((row.then_ratio?, row.now_ratio?))).collect();
        if both.is_empty() {
            return None;
        }
        let (mut same, mut other) = (0, 0);
        for (then, now) in &both {
            let slower = now.low.is_some_and(|low| low > 1.0);
            let faster = now.high.is_some_and(|high| high < 1.0);
            same += usize::from((slower && *then > 1.0) || (faster && *then < 1.0));
            other += usize::from((slower && *then < 1.0) || (faster && *then > 1.0));
        }
        let baseline = &self.baseline;
        if both.len() == 1 {
            return Some(match (same, other) {
                (1, _) => format!("The ratio to {baseline} lies on the same side of 1 as then."),
                (_, 1) => format!("The ratio to {baseline} lies on the other side of 1 than then."),
                _ => format!("The ratio to {baseline} is not distinguishable from 1 now."),
            });
        }
        Some(format!(
            "Of {} ratios to {baseline}, {same} lie on the same side of 1 as then, {other} on the other, and {} \
             are not distinguishable from 1 now.",
            both.len(),
            both.len() - same - other
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::tests::Synthetic;

    fn reference(data: &str, series: &[(&str, &str)]) -> Option<Reference> {
        let own = |(variant, series): &(&str, &str)| ((*variant).to_owned(), (*series).to_owned());
        Some(Reference {
            data: data.to_owned(),
            series: series.iter().map(own).collect::<BTreeMap<_, _>>(),
            not_controlled: "The order.".to_owned(),
            state: Some(State::Warm),
            at_once: 1,
        })
    }

    #[test]
    fn figures_of_the_same_size_stand_beside_those_of_now() {
        let mut made = Synthetic::new(
            "copy",
            &["sendfile", "copy_file_range", "mmap:8M"],
            &["4K", "1M", "2M"],
        );
        made.part().states = vec![State::Warm, State::Cold];
        made.part().reference = reference(
            "copying-disk-bytes",
            &[("sendfile", "size:sendfile"), ("copy_file_range", "size:copy_file_range")],
        );
        made.measure(6, 2, |_, variant| if variant == "sendfile" { 1e5 } else { 2e5 });
        let found = of(&made.view()).expect("rows");
        // Two of three sizes, one of two states, two of three variants.
        assert_eq!(found.rows.len(), 4);
        let row = &found.rows[1];
        assert_eq!((row.cell.as_str(), row.variant.as_str()), ("part/4K", "copy_file_range"));
        let published = reference::by_name("copying-disk-bytes").expect("there");
        let published = |series: &str| published.figures(series)[6].elapsed_ns;
        let expected = published("size:copy_file_range") / published("size:sendfile");
        assert_eq!(row.then_ratio, Some(expected));
        assert!((row.now_ratio.expect("sessions").value - 2.0).abs() < 0.05, "{row:?}");
        let said = found.sheet().sentences.join(" ");
        assert!(
            said.contains("Of 2 ratios to sendfile") && said.contains("2025, Linux 6.12"),
            "{said}"
        );
        assert!(said.ends_with("Not controlled then: The order."), "{said}");
    }

    #[test]
    fn a_single_figure_stands_beside_any_size() {
        let mut made = Synthetic::new("copy", &["read_write:8M", "mmap:8M"], &["64M"]);
        made.part().reference = reference(
            "earlier-measurements",
            &[
                ("read_write:8M", "closson-3/read 8M + write 8M (cp8M)"),
                ("mmap:8M", "closson-3/mmap 8M + write 8M (stock cp)"),
            ],
        );
        made.measure(6, 2, |_, variant| if variant == "mmap:8M" { 1e7 } else { 2e7 });
        let found = of(&made.view()).expect("rows");
        assert!((found.rows[1].then_ratio.expect("one") - 137.504 / 116.217).abs() < 1e-9);
        let said = found.sheet().sentences;
        assert_eq!(said[0], "The ratio to read_write:8M lies on the other side of 1 than then.");
        assert_eq!(found.sheet().table.title, "Then and now: figures published in 2007");
        assert!(said[1].starts_with("Kernel: ") && said[2].contains("not of one size"), "{said:?}");
    }
}
