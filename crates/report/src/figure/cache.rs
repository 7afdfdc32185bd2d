//! The page cache: cold and warm, returned and durable, and what a run leaves in it.

use lab::analysis::observations::value_ns;
use lab::definition::Measure;
use lab::definition::cell::Cell;
use lab::in_order::gathered;
use lab::page_cache::state::State;
use lab::stats::median;
use lab::words::nanoseconds;

use super::size::elsewhere;
use super::{content, rows};
use crate::plot::{About, Axis, Dot, Entry, Facets, Figure, Group, Look, Mark, Panel, Table, Unit};
use crate::summary::{CellSummary, Summary, VariantSummary};

const ABOUT: About = About {
    id: "cache",
    title: "The page cache: cold, durable, resident after a run",
    reading: "A line joins two medians of one variant. The hollow symbol is the time with the source in the \
              page cache (warm), or until the last call returned. The full symbol is the time with the \
              source on the device only (cold), or until all of the copy is on the medium (durable). Time \
              axes are logarithmic. Bars show how many bytes of source (full colour) and copy (pale) are in \
              the page cache after a run.",
    keys: &[
        (Look::Hollow, "warm, or returned"),
        (Look::Full, "cold, or durable"),
        (Look::Strong, "source in the cache"),
        (Look::Medium, "copy in the cache"),
    ],
};

/// The figure. `None` if there is no pair of states, no durable time, and no count of resident
/// pages.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_runs(&ABOUT, summaries, |figure, summary| {
        states(summary, figure);
        durable(summary, figure);
        resident_after(summary, figure);
    })
}

/// Two times of a variant in a cell: warm and cold, or returned and durable.
struct Pair<'a, 's> {
    cell: &'a CellSummary<'s>,
    variant: &'s str,
    first_ns: f64,
    second_ns: f64,
}

/// Warm and cold cells that are otherwise equal, of any part.
fn states(summary: &Summary<'_>, figure: &mut Figure) {
    let key = |cell: &Cell| Cell {
        part: String::new(),
        state: State::Warm,
        durable: false,
        ..cell.clone()
    };
    let elapsed = |variant: &VariantSummary<'_>| {
        median(variant.counted.iter().map(|it| value_ns(&it.measured, Measure::Elapsed)))
    };
    let mut cold: Vec<&CellSummary<'_>> =
        summary.cells.iter().filter(|cell| cell.cell.state == State::Cold).collect();
    cold.retain(|cell| !elsewhere(cell.part));
    cold.sort_by_key(|cell| cell.cell.file_bytes);
    let rows = rows::ranked(&cold);
    let warm = |cold: &CellSummary<'_>| {
        let mut warm = summary.cells.iter().filter(|it| it.cell.state == State::Warm);
        warm.find(|it| key(&it.cell) == key(&cold.cell))
    };
    let cells = cold.into_iter().filter_map(|cold| {
        let warm = warm(cold)?;
        let pair = |variant: &VariantSummary<'_>| {
            Some((elapsed(warm.variant(variant.variant)?)?, elapsed(variant)?))
        };
        Some((cold, pairs(cold, pair)))
    });
    add(figure, summary, "cold against warm", ["warm", "cold"], &rows, cells.collect());
}

/// Cells whose runs were synced: until the last call returned, and until fsync returned.
fn durable(summary: &Summary<'_>, figure: &mut Figure) {
    let durable = |it: &VariantSummary<'_>| it.median_of(|measured| measured.durable_ns);
    let has = |cell: &&CellSummary<'_>| cell.variants.iter().any(|it| durable(it).is_some());
    let cells: Vec<&CellSummary<'_>> = summary.cells.iter().filter(has).collect();
    let rows = rows::ranked(&cells);
    let pair = |variant: &VariantSummary<'_>| {
        Some((variant.median_of(|measured| Some(measured.elapsed_ns))?, durable(variant)?))
    };
    let cells = cells.into_iter().map(|cell| (cell, pairs(cell, pair))).collect();
    let title = "until return and until durable";
    add(figure, summary, title, ["returned", "durable"], &rows, cells);
}

fn pairs<'a, 's>(
    cell: &'a CellSummary<'s>,
    times: impl Fn(&VariantSummary<'_>) -> Option<(f64, f64)>,
) -> Vec<Pair<'a, 's>> {
    let pair = |of: &VariantSummary<'s>| {
        let (first_ns, second_ns) = times(of)?;
        Some(Pair { cell, variant: of.variant, first_ns, second_ns })
    };
    cell.variants.iter().filter_map(pair).collect()
}

/// A panel for each cell, and a table of all.
fn add(
    figure: &mut Figure,
    summary: &Summary<'_>,
    title: &str,
    names: [&str; 2],
    rows: &[&str],
    cells: Vec<(&CellSummary<'_>, Vec<Pair<'_, '_>>)>,
) {
    let panels = cells.iter().map(|(cell, pairs)| dumbbells(cell, rows, pairs, names)).collect();
    let Some(group) = Group::of_rows(summary.titled(title), panels) else { return };
    figure.groups.push(group);
    let [first, second] = names;
    figure.tables.push(Table::of(
        &summary.titled(title),
        cells.into_iter().flat_map(|(_, pairs)| pairs),
        &[
            ("variant", &|pair| Entry::words(pair.variant)),
            ("part", &|pair| Entry::words(&pair.cell.part.name)),
            ("file size", &|pair| pair.cell.size_entry()),
            (first, &|pair| Entry::ns(pair.first_ns)),
            (second, &|pair| Entry::ns(pair.second_ns)),
            (&format!("{second} / {first}"), &|pair| Entry::digits(pair.second_ns / pair.first_ns)),
        ],
    ));
}

fn dumbbells(
    cell: &CellSummary<'_>,
    rows: &[&str],
    pairs: &[Pair<'_, '_>],
    [first, second]: [&str; 2],
) -> Panel {
    let mut marks = Vec::new();
    for pair in pairs {
        let dot = |ns: f64, name: &str| {
            let text = format!("{}, {name}: {}", pair.variant, nanoseconds(ns));
            Dot::at(ns, rows::row_of(rows, pair.variant), text)
        };
        let dots = (dot(pair.first_ns, first), dot(pair.second_ns, second));
        marks.extend(Mark::pair(pair.variant, dots.0, dots.1));
    }
    let alt = format!("{first} and {second} times of each variant at {}.", cell.size_words());
    let panel = rows::panel(cell, alt, Axis::time("time"), rows, marks);
    // The panel has both states, so the filter of states does not hide it.
    Panel { title: titled(cell), facets: Facets { state: None, ..cell.facets.clone() }, ..panel }
}

/// Panels of several parts are side by side.
fn titled(cell: &CellSummary<'_>) -> String {
    format!("{}: {}", cell.part.name, cell.size_words())
}

/// Resident bytes after a run, at the largest size of each part.
fn resident_after(summary: &Summary<'_>, figure: &mut Figure) {
    let cells = summary.cells.iter().filter(|cell| !elsewhere(cell.part));
    // Of several that are the largest, the first.
    let largest = gathered(cells, |cell| &cell.cell.part)
        .into_iter()
        .filter_map(|(_, cells)| cells.into_iter().rev().max_by_key(|cell| cell.cell.run_bytes()));
    let largest: Vec<&CellSummary<'_>> = largest.collect();
    let resident = |it: &VariantSummary<'_>| {
        let src = it.median_of(|of| of.src_resident_bytes_after)?;
        Some((src, it.median_of(|of| of.dst_resident_bytes_after)?))
    };
    let known = |name: &&str| {
        largest.iter().filter_map(|cell| cell.variant(name)).any(|it| resident(it).is_some())
    };
    let rows: Vec<&str> = rows::ranked(&largest).into_iter().filter(known).collect();
    let mut found = Vec::new();
    let mut panels = Vec::new();
    for cell in largest {
        let mut marks = Vec::new();
        for variant in &cell.variants {
            let Some((src, dst)) = resident(variant) else { continue };
            let (name, row) = (variant.variant, rows::row_of(&rows, variant.variant));
            for (what, bytes, strength) in [("source", src, 1.0), ("copy", dst, 0.45)] {
                let text = format!("{name}: {what} {}", Entry::bytes(bytes).shown());
                marks.push(Mark::bar(name, row, bytes, strength, text));
            }
            found.push((cell, name, src, dst));
        }
        let alt = format!("Bytes in the page cache after a run at {}.", cell.words());
        let x = Axis::amount("in the page cache", Unit::Bytes);
        if !marks.is_empty() {
            let panel = rows::panel(cell, alt, x, &rows, marks);
            panels.push(Panel { title: titled(cell), ..panel });
        }
    }
    let title = summary.titled("resident in the page cache after a run");
    figure.tables.extend((!panels.is_empty()).then(|| {
        Table::of(
            &title,
            found,
            &[
                ("variant", &|(_, name, ..)| Entry::words(name)),
                ("file size", &|(cell, ..)| cell.size_entry()),
                ("state", &|(cell, ..)| Entry::words(&cell.circumstances())),
                ("source", &|(_, _, src, _)| Entry::bytes(*src)),
                ("copy", &|(_, _, _, dst)| Entry::bytes(*dst)),
            ],
        )
    }));
    figure.groups.extend(Group::of_rows(title, panels));
}
