//! The page cache: cold and warm, returned and durable, and what a run leaves in it.

use lab::analysis::observations::value_ns;
use lab::definition::Measure;
use lab::definition::cell::Cell;
use lab::page_cache::state::State;
use lab::stats::median;
use lab::words::nanoseconds;

use super::content::Content;
use super::size::elsewhere;
use super::split::ranked;
use crate::plot::{
    Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Table, Unit,
};
use crate::summary::{CellSummary, Summary, VariantSummary};

/// The figure. `None` if there is no pair of states, no durable time, and no count of resident
/// pages.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, .. } = Content::of_runs(summaries, |content, summary| {
        states(summary, content);
        durable(summary, content);
        resident_after(summary, content);
    })?;
    Some(Figure {
        id: "cache",
        title: "The page cache: cold, durable, resident after a run".to_owned(),
        reading: "A line joins two medians of one variant. The hollow symbol is the time with the \
                  source in the page cache (warm), or until the last call returned. The full \
                  symbol is the time with the source on the device only (cold), or until all of \
                  the copy is on the medium (durable). Time axes are logarithmic. Bars show how \
                  many bytes of source (full colour) and copy (pale) are in the page cache after \
                  a run."
            .to_owned(),
        keys: vec![
            Key::new(Look::Hollow, "warm, or returned"),
            Key::new(Look::Full, "cold, or durable"),
            Key::new(Look::Strong, "source in the cache"),
            Key::new(Look::Medium, "copy in the cache"),
        ],
        groups,
        notes: Vec::new(),
        tables,
    })
}

/// Two times of a variant: warm and cold, or returned and durable.
struct Pair<'s> {
    variant: &'s str,
    first_ns: f64,
    second_ns: f64,
}

/// Warm and cold cells that are otherwise equal, of any part.
fn states(summary: &Summary<'_>, content: &mut Content) {
    let key = |cell: &Cell| {
        (
            cell.workload.clone(),
            cell.file_bytes,
            cell.files,
            cell.shape,
            cell.destination,
            cell.at_once,
        )
    };
    let elapsed = |variant: &VariantSummary<'_>| {
        let values: Vec<f64> = variant
            .counted
            .iter()
            .map(|record| value_ns(&record.measured, Measure::Elapsed))
            .collect();
        median(&values)
    };
    let mut panels = Vec::new();
    let mut table = table(&summary.titled("Cold against warm"), ["warm", "cold", "cold / warm"]);
    let mut cold: Vec<&CellSummary<'_>> =
        summary.cells.iter().filter(|cell| cell.cell.state == State::Cold).collect();
    cold.retain(|cell| !elsewhere(cell.part));
    cold.sort_by_key(|cell| cell.cell.file_bytes);
    let rows = ranked(&cold);
    for cold in cold {
        let warm = summary
            .cells
            .iter()
            .find(|it| it.cell.state == State::Warm && key(&it.cell) == key(&cold.cell));
        let Some(warm) = warm else { continue };
        let pairs: Vec<Pair<'_>> = cold
            .variants
            .iter()
            .filter_map(|variant| {
                let first_ns = elapsed(warm.variant(variant.variant)?)?;
                Some(Pair { variant: variant.variant, first_ns, second_ns: elapsed(variant)? })
            })
            .collect();
        add_rows(&mut table, cold, &pairs);
        panels.push(dumbbells(cold, &rows, &pairs, "time", ["warm", "cold"]));
    }
    add(summary, "cold against warm", panels, table, content);
}

/// Cells whose runs were synced: until the last call returned, and until fsync returned.
fn durable(summary: &Summary<'_>, content: &mut Content) {
    let mut panels = Vec::new();
    let mut table = table(
        &summary.titled("Until return and until durable"),
        ["returned", "durable", "durable / returned"],
    );
    let has = |cell: &&CellSummary<'_>| {
        cell.variants.iter().any(|it| it.median_of(|measured| measured.durable_ns).is_some())
    };
    let cells: Vec<&CellSummary<'_>> = summary.cells.iter().filter(has).collect();
    let rows = ranked(&cells);
    for cell in cells {
        let pairs: Vec<Pair<'_>> = cell
            .variants
            .iter()
            .filter_map(|variant| {
                let first_ns = variant.median_of(|measured| Some(measured.elapsed_ns))?;
                let second_ns = variant.median_of(|measured| measured.durable_ns)?;
                Some(Pair { variant: variant.variant, first_ns, second_ns })
            })
            .collect();
        add_rows(&mut table, cell, &pairs);
        panels.push(dumbbells(cell, &rows, &pairs, "time", ["returned", "durable"]));
    }
    add(summary, "until return and until durable", panels, table, content);
}

/// Resident bytes after a run, at the largest size of each state.
fn resident_after(summary: &Summary<'_>, content: &mut Content) {
    let mut table = Table::new(
        &summary.titled("Resident in the page cache after a run"),
        &["variant", "file size", "state", "source", "copy"],
    );
    let mut largest: Vec<&CellSummary<'_>> = Vec::new();
    for cell in summary.cells.iter().filter(|cell| !elsewhere(cell.part)) {
        match largest.iter_mut().find(|of| of.cell.part == cell.cell.part) {
            Some(of) if of.cell.run_bytes() < cell.cell.run_bytes() => *of = cell,
            Some(_) => {}
            None => largest.push(cell),
        }
    }
    let mut panels = Vec::new();
    let known = |name: &&str| {
        let variants = largest.iter().filter_map(|cell| cell.variant(name));
        variants.into_iter().any(|it| it.median_of(|of| of.dst_resident_bytes_after).is_some())
    };
    let rows: Vec<&str> = ranked(&largest).into_iter().filter(known).collect();
    for cell in largest {
        let mut marks = Vec::new();
        for variant in &cell.variants {
            let src = variant.median_of(|it| it.src_resident_bytes_after);
            let dst = variant.median_of(|it| it.dst_resident_bytes_after);
            let (Some(src), Some(dst)) = (src, dst) else { continue };
            let Some(row) = rows.iter().position(|name| *name == variant.variant) else { continue };
            let row = row as f64;
            for (what, bytes, strength) in [("source", src, 1.0), ("copy", dst, 0.45)] {
                let text =
                    format!("{}: {what} {}", variant.variant, Entry::bytes(Some(bytes)).shown());
                let bars = Shape::Bars {
                    bars: vec![[row, bytes]],
                    texts: vec![text],
                    strength,
                    named: false,
                };
                marks.push(Mark::of(variant.variant, bars).unlisted());
            }
            table.rows.push(vec![
                Entry::words(variant.variant),
                cell.size_entry(),
                Entry::words(&cell.circumstances()),
                Entry::bytes(Some(src)),
                Entry::bytes(Some(dst)),
            ]);
        }
        if marks.is_empty() {
            continue;
        }
        panels.push(Panel {
            title: format!("{}: {}", cell.part.name, cell.size_words()),
            alt: format!("Bytes in the page cache after a run at {}.", cell.words()),
            facets: cell.facets(),
            x: Axis {
                label: "in the page cache".to_owned(),
                unit: Unit::Bytes,
                reach: Some(0.0),
                ..Axis::default()
            },
            y: Axis::variants(rows.iter().copied()),
            marks,
        });
    }
    add(summary, "resident in the page cache after a run", panels, table, content);
}

fn dumbbells(
    cell: &CellSummary<'_>,
    rows: &[&str],
    pairs: &[Pair<'_>],
    label: &str,
    names: [&str; 2],
) -> Panel {
    let mut marks = Vec::new();
    for pair in pairs {
        let row = rows.iter().position(|name| *name == pair.variant).unwrap_or(0) as f64;
        let dot = |ns: f64, name: &str| {
            let text = format!("{}, {name}: {}", pair.variant, nanoseconds(ns));
            Dot { x: ns, y: row, low: None, high: None, text }
        };
        let (first, second) = (dot(pair.first_ns, names[0]), dot(pair.second_ns, names[1]));
        marks.extend(Mark::pair(pair.variant, first, second));
    }
    Panel {
        title: format!("{}: {}", cell.part.name, cell.size_words()),
        alt: format!(
            "{} and {} times of each variant at {}.",
            names[0],
            names[1],
            cell.size_words()
        ),
        // The panel has both states, so the filter of states does not hide it.
        facets: crate::plot::Facets { state: None, ..cell.facets() },
        x: Axis::time(label),
        y: Axis::variants(rows.iter().copied()),
        marks,
    }
}

fn table(title: &str, columns: [&str; 3]) -> Table {
    let [first, second, ratio] = columns;
    Table::new(title, &["variant", "part", "file size", first, second, ratio])
}

fn add_rows(table: &mut Table, cell: &CellSummary<'_>, pairs: &[Pair<'_>]) {
    for pair in pairs {
        table.rows.push(vec![
            Entry::words(pair.variant),
            Entry::words(&cell.part.name),
            cell.size_entry(),
            Entry::ns(Some(pair.first_ns)),
            Entry::ns(Some(pair.second_ns)),
            Entry::digits(Some(pair.second_ns / pair.first_ns)),
        ]);
    }
}

fn add(
    summary: &Summary<'_>,
    title: &str,
    panels: Vec<Panel>,
    table: Table,
    content: &mut Content,
) {
    if !panels.is_empty() {
        content.groups.push(Group { title: summary.titled(title), panels, height: Height::Rows });
        content.tables.push(table);
    }
}
