//! Collects a figure from the runs of a report.

use lab::definition::Part;
use lab::studies::Finding;

use crate::plot::{About, Figure};
use crate::summary::Summary;

/// What `add` adds for each run. `None` if it adds no group of panels.
pub(super) fn of_runs(
    about: &'static About,
    summaries: &[Summary<'_>],
    mut add: impl FnMut(&mut Figure, &Summary<'_>),
) -> Option<Figure> {
    let mut figure = Figure { about, groups: Vec::new(), notes: Vec::new(), tables: Vec::new() };
    summaries.iter().for_each(|summary| add(&mut figure, summary));
    (!figure.groups.is_empty()).then_some(figure)
}

/// What `add` adds for each part of each run.
pub(super) fn of_parts(
    about: &'static About,
    summaries: &[Summary<'_>],
    mut add: impl FnMut(&mut Figure, &Summary<'_>, &Part),
) -> Option<Figure> {
    of_runs(about, summaries, |figure, summary| {
        let parts = &summary.source.run.definition.parts;
        parts.iter().for_each(|part| add(figure, summary, part));
    })
}

/// What `add` adds for each finding of each part of each run.
pub(super) fn of_findings(
    about: &'static About,
    summaries: &[Summary<'_>],
    mut add: impl FnMut(&mut Figure, &Summary<'_>, &Part, &Finding),
) -> Option<Figure> {
    of_runs(about, summaries, |figure, summary| {
        summary.findings().for_each(|(part, finding)| add(figure, summary, part, finding));
    })
}
