//! Everything that a report says, before anybody decides where.

use std::collections::BTreeMap;

use lab::compare::Change;
use lab::definition::Analysis;
use lab::tune::record::Record;

use crate::figure::{self, Figure};
use crate::palette::{self, Style};
use crate::source::Source;
use crate::summary::Summary;

/// A report on one or several runs.
#[derive(Debug)]
pub struct Report<'s> {
    /// The runs.
    pub summaries: Vec<Summary<'s>>,
    /// What changed from the first run to the second, where that was asked for.
    pub change: Option<Change>,
    /// What was tuned, where the report is of that and of no run.
    pub tuned: Vec<Record>,
    /// The figures for which there is data. The first is the one that answers the question.
    pub figures: Vec<Figure>,
    /// How the marks of each variant look.
    pub styles: BTreeMap<String, Style>,
}

impl<'s> Report<'s> {
    /// The report on `sources`. `epsilon` is the share that calls may add to what their bytes cost, for
    /// the buffer that is recommended; [`figure::EPSILON`] where nobody says another.
    #[must_use]
    pub fn of(sources: &'s [Source], epsilon: f64) -> Report<'s> {
        let label = |source: &Source| match sources.len() {
            1 => String::new(),
            _ => source.name(),
        };
        let summaries: Vec<Summary<'s>> =
            sources.iter().map(|source| Summary::of(source, label(source), epsilon)).collect();
        let mut figures: Vec<Figure> = figure::ALL.iter().filter_map(|of| of(&summaries)).collect();
        let answering = answering(sources);
        if let Some(place) = figures.iter().position(|figure| figure.id == answering) {
            let first = figures.remove(place);
            figures.insert(0, first);
        }
        let parts = sources.iter().flat_map(|source| &source.run.definition.parts);
        let styles = palette::styles(parts.flat_map(|part| &part.variants).map(String::as_str));
        Report { summaries, change: None, tuned: Vec::new(), figures, styles }
    }

    /// The report on what `haulage tune` measured.
    #[must_use]
    pub fn of_tuning(records: Vec<Record>) -> Report<'static> {
        let ways = records.iter().flat_map(|record| &record.situations);
        let styles = palette::styles(ways.flat_map(|finding| finding.choice.as_deref()));
        Report {
            summaries: Vec::new(),
            change: None,
            figures: figure::tuning::figures(&records),
            tuned: records,
            styles,
        }
    }

    /// The report on two runs that says first what changed from the first to the second.
    #[must_use]
    pub fn comparing(sources: &'s [Source; 2], epsilon: f64) -> Report<'s> {
        let mut report = Report::of(sources, epsilon);
        let [first, second] = sources;
        let (one, other) = (first.deltas(), second.deltas());
        let deltas = one.larger(other);
        let change = Change::of(&first.run, &second.run, deltas);
        report.figures.splice(0..0, figure::change::figure(&change, &report.summaries));
        report.change = Some(change);
        report
    }
}

/// The figure that answers what the first part of the experiment asks.
fn answering(sources: &[Source]) -> &'static str {
    let part = sources.first().and_then(|source| source.run.definition.parts.first());
    let of = |analysis: &Analysis| match analysis {
        Analysis::Buffer => Some("buffer"),
        Analysis::PerCall => Some("per-call"),
        Analysis::Page => Some("page-boundary"),
        Analysis::Scaling => Some("concurrency"),
        _ => None,
    };
    part.and_then(|part| part.analyses.iter().find_map(of)).unwrap_or("ratio")
}
