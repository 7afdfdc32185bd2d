//! Files around the size of a page: the cost of the byte that needs another page.

use lab::analysis::Finding;
use lab::analysis::page_boundary::Page;
use lab::definition::Part;
use lab::words::{grouped, nanoseconds};

use super::content::Content;
use crate::in_order::gathered;
use crate::plot::{
    Along, Axis, Dot, Entry, Facets, Figure, Group, Height, Mark, Panel, Shape, Stroke, Table,
};
use crate::summary::{CellSummary, Summary, state_words};

/// The figure. `None` if no part has this analysis.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, .. } =
        Content::of_findings(summaries, |content, summary, part, finding| {
            let Finding::Page(page) = finding else { return };
            content.groups.extend(groups_of(summary, part));
            content.tables.push(table(&summary.titled(&part.name), page));
        })?;
    Some(Figure {
        id: "page-boundary",
        title: "Around a page".to_owned(),
        reading: "Dots are medians with 95 % bootstrap intervals, at sizes that differ by one \
                  byte. A step between two of them is the cost of the byte that needs another \
                  page, block or call. The vertical axis is logarithmic and does not begin at \
                  zero; the table has the step as a ratio with its interval."
            .to_owned(),
        keys: Vec::new(),
        groups,
        notes: Vec::new(),
        tables,
    })
}

/// A panel for each state.
fn groups_of(summary: &Summary<'_>, part: &Part) -> Vec<Group> {
    let group = |(title, mut cells): (String, Vec<&CellSummary<'_>>)| {
        cells.sort_by_key(|cell| cell.cell.file_bytes);
        Group { title, panels: vec![panel(part, &cells)], height: Height::Plot }
    };
    let cells = gathered(summary.of_part(part), |cell| summary.titled(&cell.titled_part()));
    cells.into_iter().map(group).collect()
}

fn panel(part: &Part, cells: &[&CellSummary<'_>]) -> Panel {
    let mut marks = Vec::new();
    for (index, name) in part.variants.iter().enumerate() {
        // Side by side, so that no interval hides another.
        let aside = 0.3 * ((index as f64 + 0.5) / part.variants.len() as f64 - 0.5);
        let mut dots = Vec::new();
        for (place, cell) in cells.iter().enumerate() {
            let Some(variant) = cell.variant(name) else { continue };
            dots.push(Dot {
                x: place as f64 + aside,
                y: variant.median_ns,
                low: Some(variant.interval.low),
                high: Some(variant.interval.high),
                text: format!(
                    "{name}, {} B: {}",
                    cell.cell.file_bytes,
                    nanoseconds(variant.median_ns)
                ),
            });
        }
        let points = dots.iter().map(|dot| [dot.x, dot.y]).collect();
        let line = Shape::Line { points, stroke: Stroke::Own };
        marks.push(Mark::of(name, line));
        let dots = Shape::Dots { dots, along: Along::Y, hollow: false };
        marks.push(Mark::of(name, dots).unlisted());
    }
    let size =
        |cell: &&CellSummary<'_>| format!("{} B", grouped(&cell.cell.file_bytes.to_string()));
    let facets = cells.first().map(|cell| cell.facets()).unwrap_or_default();
    Panel {
        title: String::new(),
        alt: format!("Times at {}.", cells.iter().map(size).collect::<Vec<_>>().join(", ")),
        facets: Facets { file_bytes: None, ..facets },
        x: Axis::names("file size", cells.iter().map(size)),
        y: Axis::time("time"),
        marks,
    }
}

fn table(title: &str, page: &Page) -> Table {
    let mut table = Table::new(
        &format!("{title}: steps from one size to the next"),
        &[
            "variant",
            "state",
            "from, B",
            "to, B",
            "median from",
            "median to",
            "ratio",
            "95 % from",
            "to",
        ],
    );
    for step in &page.steps {
        table.rows.push(vec![
            Entry::words(&step.variant),
            Entry::words(state_words(step.state)),
            Entry::count(Some(step.from_bytes as f64)),
            Entry::count(Some(step.to_bytes as f64)),
            Entry::ns(Some(step.from_median_ns)),
            Entry::ns(Some(step.to_median_ns)),
            Entry::digits(step.ratio.map(|ratio| ratio.value)),
            Entry::digits(step.ratio.and_then(|ratio| ratio.low)),
            Entry::digits(step.ratio.and_then(|ratio| ratio.high)),
        ]);
    }
    table
}
