//! Collects the parts of a figure from the runs of a report.

use lab::analysis::Finding;
use lab::definition::Part;

use crate::plot::{Group, Table};
use crate::summary::Summary;

/// The parts of a figure that depend on samples. The rest is constant text.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) groups: Vec<Group>,
    pub(super) tables: Vec<Table>,
    pub(super) notes: Vec<String>,
}

impl Content {
    /// What `add` adds for each run. `None` if it adds no group of panels.
    pub(super) fn of_runs(
        summaries: &[Summary<'_>],
        mut add: impl FnMut(&mut Content, &Summary<'_>),
    ) -> Option<Content> {
        let mut content = Content::default();
        summaries.iter().for_each(|summary| add(&mut content, summary));
        (!content.groups.is_empty()).then_some(content)
    }

    /// What `add` adds for each part of each run.
    pub(super) fn of_parts(
        summaries: &[Summary<'_>],
        mut add: impl FnMut(&mut Content, &Summary<'_>, &Part),
    ) -> Option<Content> {
        Content::of_runs(summaries, |content, summary| {
            let parts = &summary.source.run.definition.parts;
            parts.iter().for_each(|part| add(content, summary, part));
        })
    }

    /// What `add` adds for each finding of each part of each run.
    pub(super) fn of_findings(
        summaries: &[Summary<'_>],
        mut add: impl FnMut(&mut Content, &Summary<'_>, &Part, &Finding),
    ) -> Option<Content> {
        Content::of_runs(summaries, |content, summary| {
            summary.findings().for_each(|(part, finding)| add(content, summary, part, finding));
        })
    }
}
