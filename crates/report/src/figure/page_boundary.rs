//! Files around the size of a page: the cost of the byte that needs another page.

use lab::definition::Part;
use lab::studies::Finding;
use lab::words::{grouped, nanoseconds};

use super::content;
use crate::plot::{
    About, Axis, Dot, Entry, Facets, Figure, Group, Height, Mark, Panel, Stroke, Table,
};
use crate::summary::{CellSummary, Summary};

const ABOUT: About = About {
    id: "page-boundary",
    title: "Around a page",
    reading: "Dots are medians with 95 % bootstrap intervals, at sizes that differ by one byte. A step \
              between two of them is the cost of the byte that needs another page, block or call. The \
              vertical axis is logarithmic and does not begin at zero; the table has the step as a ratio \
              with its interval.",
    keys: &[],
};

/// The figure. `None` if no part has this analysis.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_findings(&ABOUT, summaries, |figure, summary, part, finding| {
        let Finding::Page(page) = finding else { return };
        for cells in summary.series(part) {
            let title = summary.titled(&cells[0].titled_part());
            let panels = vec![panel(part, &cells)];
            figure.groups.push(Group { title, panels, height: Height::Plot });
        }
        figure.tables.push(Table::of(
            &summary.titled(&format!("{}: steps from one size to the next", part.name)),
            &page.steps,
            &[
                ("variant", &|step| Entry::words(&step.variant)),
                ("state", &|step| Entry::words(step.state.name())),
                ("from, B", &|step| Entry::count(step.from_bytes as f64)),
                ("to, B", &|step| Entry::count(step.to_bytes as f64)),
                ("median from", &|step| Entry::ns(step.from_median_ns)),
                ("median to", &|step| Entry::ns(step.to_median_ns)),
                ("ratio", &|step| Entry::digits(step.ratio.map(|ratio| ratio.value))),
                ("95 % from", &|step| Entry::digits(step.ratio.and_then(|ratio| ratio.low))),
                ("to", &|step| Entry::digits(step.ratio.and_then(|ratio| ratio.high))),
            ],
        ));
    })
}

fn panel(part: &Part, cells: &[&CellSummary<'_>]) -> Panel {
    let mut marks = Vec::new();
    for (index, name) in part.variants.iter().enumerate() {
        // Side by side, so that no interval hides another.
        let aside = 0.3 * ((index as f64 + 0.5) / part.variants.len() as f64 - 0.5);
        let mut dots = Vec::new();
        for (place, cell) in cells.iter().enumerate() {
            let Some(variant) = cell.variant(name) else { continue };
            let (bytes, median) = (cell.cell.file_bytes, nanoseconds(variant.median_ns));
            let text = format!("{name}, {bytes} B: {median}");
            let dot = Dot::at(place as f64 + aside, variant.median_ns, text);
            dots.push(dot.within(variant.interval.low, variant.interval.high));
        }
        marks.extend(Mark::joined(name, dots, Stroke::Own));
    }
    let size =
        |cell: &&CellSummary<'_>| format!("{} B", grouped(&cell.cell.file_bytes.to_string()));
    Panel {
        title: String::new(),
        alt: format!("Times at {}.", cells.iter().map(size).collect::<Vec<_>>().join(", ")),
        facets: Facets { file_bytes: None, ..cells[0].facets.clone() },
        x: Axis::names("file size", cells.iter().map(size)),
        y: Axis::time("time"),
        marks,
    }
}
