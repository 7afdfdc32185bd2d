//! What the figures need of the samples of each cell and variant. No I/O.

use std::collections::BTreeMap;

use lab::analysis::observations::value_ns;
use lab::analysis::view::{CellView, Rules, View};
use lab::definition::cell::{Cell, Destination, Shape};
use lab::definition::{Measure, Part};
use lab::in_order::gathered;
use lab::sample::measurement::Measurement;
use lab::sample::record::{RoundRecord, Sample};
use lab::stats::{Interval, median, median_interval};
use lab::studies::Finding;
use lab::verdict::CellVerdict;

use crate::plot::{Entry, Facets};
use crate::source::Source;

/// A run, as the figures use it.
#[derive(Debug)]
pub struct Summary<'s> {
    /// The run directory.
    pub source: &'s Source,
    /// Its name among the runs of the report. Empty if there is one run only.
    pub label: String,
    /// The cells in the order of the experiment.
    pub cells: Vec<CellSummary<'s>>,
    /// The share ε that calls may add to what their bytes cost.
    pub epsilon: f64,
}

/// A cell of a run.
#[derive(Debug)]
pub struct CellSummary<'s> {
    /// The cell.
    pub cell: Cell,
    /// Its part.
    pub part: &'s Part,
    /// Its verdict.
    pub verdict: Option<&'s CellVerdict>,
    /// Its variants in the order of the experiment, without those that were refused or did not run.
    pub variants: Vec<VariantSummary<'s>>,
    /// Its rounds.
    pub rounds: Vec<&'s RoundRecord>,
    /// What the filters of the page compare.
    pub facets: Facets,
}

/// A variant in a cell.
#[derive(Debug)]
pub struct VariantSummary<'s> {
    /// The variant.
    pub variant: &'s str,
    /// All its runs in order, including those that do not count.
    pub all: Vec<&'s Sample>,
    /// The runs that count.
    pub counted: Vec<&'s Sample>,
    /// The compared quantity of each of these, in nanoseconds.
    pub values_ns: Vec<f64>,
    /// Their median.
    pub median_ns: f64,
    /// The 95 % bootstrap interval of the median.
    pub interval: Interval,
}

impl<'s> Summary<'s> {
    /// The summary of a run.
    pub fn of(source: &'s Source, label: String, epsilon: f64) -> Summary<'s> {
        let definition = &source.run.definition;
        let views = View::all(definition, source.run.samples(), Rules::default());
        let cells = views.into_iter().flat_map(|view| {
            let of_cell = move |cell| CellSummary::of(source, view.part, cell);
            view.cells.into_iter().map(of_cell)
        });
        let cells = cells.filter(|cell| !cell.variants.is_empty()).collect();
        Summary { source, label, cells, epsilon }
    }

    /// The findings of each part, with the part.
    pub fn findings(&self) -> impl Iterator<Item = (&'s Part, &'s Finding)> {
        let parts = self.source.verdict.parts.iter();
        let definition = &self.source.run.definition;
        parts.flat_map(|verdict| {
            let part = definition.parts.iter().find(|part| part.name == verdict.part);
            verdict.analyses.iter().filter_map(move |finding| Some((part?, finding)))
        })
    }

    /// The cells of a part that differ in the size only, ascending.
    pub fn series(&self, part: &Part) -> Vec<Vec<&CellSummary<'s>>> {
        let cells = self.cells.iter().filter(|cell| cell.part.name == part.name);
        let mut series = gathered(cells, |cell| cell.circumstances());
        series.iter_mut().for_each(|(_, cells)| cells.sort_by_key(|cell| cell.cell.file_bytes));
        series.into_iter().map(|(_, cells)| cells).collect()
    }

    /// The cell with this id.
    pub fn cell(&self, id: &str) -> Option<&CellSummary<'s>> {
        self.cells.iter().find(|cell| cell.cell.id() == id)
    }

    /// `title`, with the name of the run if the report has several.
    pub fn titled(&self, title: &str) -> String {
        if self.label.is_empty() { title.to_owned() } else { format!("{title} · {}", self.label) }
    }
}

impl<'s> CellSummary<'s> {
    fn of(source: &'s Source, part: &'s Part, view: CellView<'s>) -> CellSummary<'s> {
        let CellView { cell, all, counted, .. } = view;
        let id = cell.id();
        let variants = part.variants.iter().zip(counted).filter_map(|(variant, counted)| {
            let own = all.iter().copied().filter(|sample| sample.variant == *variant);
            VariantSummary::of(variant, own.collect(), counted, part.measure)
        });
        let mut verdicts = source.verdict.parts.iter().flat_map(|part| &part.cells);
        CellSummary {
            variants: variants.collect(),
            part,
            verdict: verdicts.find(|verdict| verdict.cell == id),
            rounds: source.run.rounds.iter().filter(|round| round.cell == id).collect(),
            facets: source.facets(Some(cell.file_bytes), cell.state),
            cell,
        }
    }

    /// The variant of this name. `None` if it did not run.
    pub fn variant(&self, name: &str) -> Option<&VariantSummary<'s>> {
        self.variants.iter().find(|variant| variant.variant == name)
    }

    /// The size and the number of files.
    pub fn size_words(&self) -> String {
        let bytes = lab::words::file_size(self.cell.file_bytes);
        match self.cell.shape {
            Shape::File => bytes,
            shape => {
                let mean = if shape.is_mixed() { "about " } else { "" };
                let place = if shape.is_tree() { "tree" } else { "directory" };
                format!("{} files of {mean}{bytes} in a {place}", self.cell.files)
            }
        }
    }

    /// [`size_words`](CellSummary::size_words) for a table, which sorts it by the size of a file.
    pub fn size_entry(&self) -> Entry {
        Entry::Number { value: self.cell.file_bytes as f64, shown: self.size_words() }
    }

    /// How it differs from other cells of its part, except for the size.
    pub fn circumstances(&self) -> String {
        let mut words = vec![self.cell.state.name().to_owned()];
        if self.cell.destination == Destination::Overwritten {
            words.push("destination overwritten".to_owned());
        } else if self.part.destinations.len() > 1 {
            words.push("destination new".to_owned());
        }
        if self.cell.at_once > 1 {
            words.push(format!("{} at once", self.cell.at_once));
        }
        words.join(", ")
    }

    /// The part and the circumstances. The part is left out if the circumstances begin with it.
    pub fn titled_part(&self) -> String {
        let (part, words) = (&self.part.name, self.circumstances());
        if words.starts_with(part.as_str()) { words } else { format!("{part}: {words}") }
    }

    /// Size and circumstances, for a title of its own.
    pub fn words(&self) -> String {
        format!("{}, {}", self.size_words(), self.circumstances())
    }
}

impl<'s> VariantSummary<'s> {
    fn of(
        variant: &'s str,
        all: Vec<&'s Sample>,
        counted: Vec<&'s Sample>,
        measure: Measure,
    ) -> Option<VariantSummary<'s>> {
        let values_ns: Vec<f64> =
            counted.iter().map(|record| value_ns(&record.measured, measure)).collect();
        let median_ns = median(&values_ns)?;
        let mut sessions: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (record, value) in counted.iter().zip(&values_ns) {
            sessions.entry(record.session).or_default().push(*value);
        }
        let sessions: Vec<&[f64]> = sessions.values().map(Vec::as_slice).collect();
        let interval = median_interval(&sessions)?;
        Some(VariantSummary { variant, all, counted, values_ns, median_ns, interval })
    }

    /// The median of a field over the counted runs. `None` if fewer than half of them have it.
    pub fn median_of(&self, field: impl Fn(&Measurement) -> Option<u64>) -> Option<f64> {
        let known = self.counted.iter().filter_map(|record| field(&record.measured));
        let values: Vec<f64> = known.map(|value| value as f64).collect();
        if values.len() * 2 < self.counted.len() { None } else { median(&values) }
    }
}
