//! The contents of a report, before they are drawn.

use lab::compare::Change;
use lab::definition::Analysis;
use lab::tune::record::Record;

use crate::figure::{self};
use crate::palette::{self, Styles};
use crate::plot::Figure;
use crate::source::Source;
use crate::summary::Summary;

/// A report on one or several runs.
#[derive(Debug, Default)]
pub struct Report<'s> {
    /// The runs.
    pub summaries: Vec<Summary<'s>>,
    /// What changed from the first run to the second, for a comparison.
    pub change: Option<Change>,
    /// The records of `haulage tune`, for a report on these.
    pub tuned: Vec<Record>,
    /// The figures for which there is data. The first one answers the question.
    pub figures: Vec<Figure>,
    /// How the marks of each variant look.
    pub styles: Styles,
}

impl<'s> Report<'s> {
    /// The report on `sources`. `epsilon` is the share that calls may add to the cost of their
    /// bytes, for the recommended buffer. Its default is [`figure::EPSILON`].
    pub fn of(sources: &'s [Source], epsilon: f64) -> Report<'s> {
        let label = |source: &Source| match sources.len() {
            1 => String::new(),
            _ => source.name(),
        };
        let summaries: Vec<Summary<'s>> =
            sources.iter().map(|source| Summary::of(source, label(source), epsilon)).collect();
        let mut figures: Vec<Figure> = figure::ALL.iter().filter_map(|of| of(&summaries)).collect();
        let answering = answering(sources);
        if let Some(place) = figures.iter().position(|figure| figure.about.id == answering) {
            let first = figures.remove(place);
            figures.insert(0, first);
        }
        let parts = sources.iter().flat_map(|source| &source.run.definition.parts);
        let styles = palette::styles(parts.flat_map(|part| &part.variants).map(String::as_str));
        Report { summaries, figures, styles, ..Report::default() }
    }

    /// The report on what `haulage tune` measured.
    pub fn of_tuning(records: Vec<Record>) -> Report<'static> {
        let situations = records.iter().flat_map(|record| &record.situations);
        let styles = palette::styles(situations.flat_map(|finding| finding.choice.as_deref()));
        let figures = figure::tuning::figures(&records);
        Report { figures, tuned: records, styles, ..Report::default() }
    }

    /// The report on two runs, which begins with what changed from the first to the second.
    pub fn comparing(sources: &'s [Source; 2], epsilon: f64) -> Report<'s> {
        let mut report = Report::of(sources, epsilon);
        let [first, second] = sources;
        let deltas = first.deltas().larger(second.deltas());
        let change = Change::of(&first.run, &second.run, deltas);
        report.figures.splice(0..0, figure::change::figure(&change, &report.summaries));
        report.change = Some(change);
        report
    }
}

/// The id of the figure that answers the question of the first part of the experiment.
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
