//! Where the time goes: user mode, kernel, waiting, and page faults.

use lab::definition::Analysis;
use lab::definition::cell::Cell;
use lab::words::grouped;

use super::content::Content;
use crate::in_order::gathered;
use crate::plot::{Axis, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Table, Unit};
use crate::summary::{CellSummary, Summary, VariantSummary};

/// The figure. `None` if nothing was measured.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, .. } = Content::of_parts(summaries, |content, summary, part| {
        // A part with other analyses only is not shown here.
        if !part.analyses.is_empty() && !part.analyses.contains(&Analysis::Split) {
            return;
        }
        let cells: Vec<&CellSummary<'_>> = summary.of_part(part).collect();
        if cells.is_empty() {
            return;
        }
        content.groups.extend(groups_of(summary, &cells));
        content.tables.push(table(summary, &part.name, &cells));
    })?;
    Some(Figure {
        id: "split",
        title: "Where the time goes".to_owned(),
        reading: "Each bar is the median run of a variant, from the first byte to the return of \
                  the last call: processor time in user mode (full colour), processor time in the \
                  kernel (medium), and the rest, in which no thread of it ran (pale). With \
                  several workers processor time is the sum over threads and may exceed the \
                  elapsed time; the rest is zero then. Many kernels tell user from kernel time by \
                  the timer tick, so for runs of a few milliseconds only their sum is meaningful. \
                  Bars of page faults are medians too: major faults, which waited for the device, \
                  in full colour, minor faults medium. The axes are linear."
            .to_owned(),
        keys: vec![
            Key::new(Look::Strong, "user mode"),
            Key::new(Look::Medium, "kernel"),
            Key::new(Look::Pale, "waiting"),
        ],
        groups,
        notes: Vec::new(),
        tables,
    })
}

/// Cells of the same circumstances are side by side. Their sizes differ, so each has its own axis.
fn groups_of(summary: &Summary<'_>, cells: &[&CellSummary<'_>]) -> Vec<Group> {
    let groups_of = |(_, cells): (String, Vec<&CellSummary<'_>>)| {
        let ranked = ranked(&cells);
        let title = cells[0].titled_part();
        let group = |title: &str, panels: Vec<Panel>| {
            let title = summary.titled(title);
            (!panels.is_empty()).then_some(Group { title, panels, height: Height::Rows })
        };
        let times = cells.iter().map(|cell| panel(cell, &ranked)).collect();
        let faults = cells.iter().filter_map(|cell| faults(cell, &ranked)).collect();
        [group(&title, times), group(&format!("{title}, page faults"), faults)]
    };
    let cells = gathered(cells.iter().copied(), |cell| cell.circumstances());
    cells.into_iter().flat_map(groups_of).flatten().collect()
}

/// Variants by their median in the largest cell that has them, the fastest first.
pub(super) fn ranked<'s>(cells: &[&CellSummary<'s>]) -> Vec<&'s str> {
    let by_size = |cell: &Cell| cell.run_bytes();
    let mut cells = cells.to_vec();
    cells.sort_by_key(|cell| std::cmp::Reverse(by_size(&cell.cell)));
    let mut ranked: Vec<&str> = Vec::new();
    for cell in cells {
        let mut variants: Vec<&VariantSummary<'_>> = cell.variants.iter().collect();
        variants.sort_by(|a, b| a.median_ns.total_cmp(&b.median_ns));
        for variant in variants {
            if !ranked.contains(&variant.variant) {
                ranked.push(variant.variant);
            }
        }
    }
    ranked
}

/// Medians of one variant, in nanoseconds.
struct Split {
    elapsed_ns: f64,
    user_ns: f64,
    system_ns: f64,
    rest_ns: f64,
}

impl Split {
    fn of(variant: &VariantSummary<'_>) -> Split {
        let median = |field: fn(&lab::sample::measurement::Measurement) -> u64| {
            variant.median_of(|measured| Some(field(measured))).unwrap_or(0.0)
        };
        let elapsed_ns = median(|measured| measured.elapsed_ns);
        let (user_ns, system_ns) = (median(|it| it.user_ns), median(|it| it.system_ns));
        let rest_ns = median(|it| it.elapsed_ns.saturating_sub(it.user_ns + it.system_ns));
        Split { elapsed_ns, user_ns, system_ns, rest_ns }
    }
}

/// A part of each bar: its name, the opacity of its colour, and its length.
type Share = (&'static str, f32, fn(&Split) -> f64);

const SHARES: [Share; 3] = [
    ("user mode", 1.0, |split| split.user_ns),
    ("kernel", 0.55, |split| split.system_ns),
    ("waiting", 0.18, |split| split.rest_ns),
];

fn panel(cell: &CellSummary<'_>, variants: &[&str]) -> Panel {
    let mut marks = Vec::new();
    for variant in &cell.variants {
        let row = variants.iter().position(|name| *name == variant.variant).unwrap_or(0) as f64;
        let split = Split::of(variant);
        for (what, strength, length) in SHARES {
            let length = length(&split);
            let text = format!(
                "{}: {what} {} of {}",
                variant.variant,
                lab::words::nanoseconds(length),
                lab::words::nanoseconds(split.elapsed_ns)
            );
            let bars = Shape::Bars {
                bars: vec![[row, length]],
                texts: vec![text],
                strength,
                named: false,
            };
            marks.push(Mark::of(variant.variant, bars).unlisted());
        }
    }
    Panel {
        title: cell.size_words(),
        alt: format!("User, kernel and waiting time of each variant at {}.", cell.words()),
        facets: cell.facets(),
        x: Axis { label: "time".to_owned(), unit: Unit::Ns, reach: Some(0.0), ..Axis::default() },
        y: Axis::variants(variants.iter().copied()),
        marks,
    }
}

/// Page faults of each variant. `None` if there were none.
fn faults(cell: &CellSummary<'_>, variants: &[&str]) -> Option<Panel> {
    let mut marks = Vec::new();
    let mut any = false;
    for variant in &cell.variants {
        let row = variants.iter().position(|name| *name == variant.variant).unwrap_or(0) as f64;
        let major = variant.median_of(|it| Some(it.major_faults));
        let minor = variant.median_of(|it| Some(it.minor_faults));
        for (what, strength, count) in [("major", 1.0, major), ("minor", 0.55, minor)] {
            let Some(count) = count else { continue };
            any |= count > 0.0;
            let name = variant.variant;
            let texts =
                vec![format!("{name}: {} {what} page faults", grouped(&format!("{count:.0}")))];
            let bars = Shape::Bars { bars: vec![[row, count]], texts, strength, named: false };
            marks.push(Mark::of(name, bars).unlisted());
        }
    }
    any.then(|| Panel {
        title: cell.size_words(),
        alt: format!("Page faults of each variant at {}.", cell.words()),
        facets: cell.facets(),
        x: Axis {
            label: "page faults".to_owned(),
            unit: Unit::Count,
            reach: Some(0.0),
            ..Axis::default()
        },
        y: Axis::variants(variants.iter().copied()),
        marks,
    })
}

fn table(summary: &Summary<'_>, part: &str, cells: &[&CellSummary<'_>]) -> Table {
    let mut table = Table::new(
        &summary.titled(&format!("{part}: medians of each run")),
        &[
            "variant",
            "file size",
            "state",
            "elapsed",
            "user",
            "kernel",
            "waiting",
            "minor faults",
            "major faults",
            "waits",
            "preempted",
            "calls",
            "read from device",
            "written",
        ],
    );
    for cell in cells {
        for variant in &cell.variants {
            let split = Split::of(variant);
            table.rows.push(vec![
                Entry::words(variant.variant),
                cell.size_entry(),
                Entry::words(&cell.circumstances()),
                Entry::ns(Some(split.elapsed_ns)),
                Entry::ns(Some(split.user_ns)),
                Entry::ns(Some(split.system_ns)),
                Entry::ns(Some(split.rest_ns)),
                Entry::count(variant.median_of(|it| Some(it.minor_faults))),
                Entry::count(variant.median_of(|it| Some(it.major_faults))),
                Entry::count(variant.median_of(|it| Some(it.voluntary_switches))),
                Entry::count(variant.median_of(|it| Some(it.involuntary_switches))),
                Entry::count(variant.median_of(|it| it.calls)),
                Entry::bytes(variant.median_of(|it| it.device_read_bytes)),
                Entry::bytes(variant.median_of(|it| it.device_written_bytes)),
            ]);
        }
    }
    table
}
