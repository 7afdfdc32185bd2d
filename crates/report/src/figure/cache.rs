//! The page cache: cold and warm, returned and durable, and what a run leaves in it.

use lab::definition::cell::Cell;
use lab::in_order::gathered;
use lab::page_cache::state::State;
use lab::words::nanoseconds;

use super::content;
use super::rows::{self, Found};
use super::size::elsewhere;
use crate::plot::{About, Axis, Dot, Entry, Figure, Group, Look, Mark, Table, Unit};
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

/// Warm and cold cells that are otherwise equal, of any part.
fn states(summary: &Summary<'_>, figure: &mut Figure) {
    let key = |cell: &Cell| Cell {
        part: String::new(),
        state: State::Warm,
        durable: false,
        ..cell.clone()
    };
    let elapsed = |variant: &VariantSummary<'_>| {
        variant.median_of(|measured| Some(measured.elapsed_ns.max(1)))
    };
    let is_cold = |it: &&CellSummary<'_>| it.cell.state == State::Cold && !elsewhere(it.part);
    let mut cold: Vec<&CellSummary<'_>> = summary.cells.iter().filter(is_cold).collect();
    cold.sort_by_key(|cell| cell.cell.file_bytes);
    let times = |cold: &CellSummary<'_>, variant: &VariantSummary<'_>| {
        let mut warm = summary.cells.iter().filter(|it| it.cell.state == State::Warm);
        let warm = warm.find(|it| key(&it.cell) == key(&cold.cell))?;
        Some([elapsed(warm.variant(variant.variant)?)?, elapsed(variant)?])
    };
    add(figure, &summary.titled("cold against warm"), ["warm", "cold"], &rows::found(cold, times));
}

/// Cells whose runs were synced: until the last call returned, and until fsync returned.
fn durable(summary: &Summary<'_>, figure: &mut Figure) {
    let found = rows::found(&summary.cells, |_, variant| {
        let durable = variant.median_of(|measured| measured.durable_ns)?;
        Some([variant.median_of(|measured| Some(measured.elapsed_ns))?, durable])
    });
    let title = summary.titled("until return and until durable");
    add(figure, &title, ["returned", "durable"], &found);
}

/// A panel with two times of each variant for each cell, and a table of all.
fn add(figure: &mut Figure, title: &str, names: [&str; 2], found: &[Found<'_, '_, [f64; 2]>]) {
    let [first, second] = names;
    let alt = |cell: &CellSummary<'_>| {
        format!("{first} and {second} times of each variant at {}.", cell.size_words())
    };
    let group =
        rows::group(title, found, &Axis::time("time"), alt, |variant, row, &[one, other]| {
            let dot = |ns: f64, name: &str| {
                Dot::at(ns, row, format!("{variant}, {name}: {}", nanoseconds(ns)))
            };
            Mark::pair(variant, dot(one, first), dot(other, second)).into()
        });
    let Some(mut group) = group else { return };
    // A panel has both states, so the filter of states does not hide it.
    group.panels.iter_mut().for_each(|panel| panel.facets.state = None);
    figure.groups.push(titled(group, found));
    figure.tables.push(Table::of(
        title,
        rows::each(found),
        &[
            ("variant", &|(_, name, _)| Entry::words(name)),
            ("part", &|(cell, ..)| Entry::words(&cell.part.name)),
            ("file size", &|(cell, ..)| cell.size_entry()),
            (first, &|(.., pair)| Entry::ns(pair[0])),
            (second, &|(.., pair)| Entry::ns(pair[1])),
            (&format!("{second} / {first}"), &|(.., pair)| Entry::digits(pair[1] / pair[0])),
        ],
    ));
}

/// The group with the parts in the titles of its panels: those of several parts are side by side.
fn titled(mut group: Group, found: &[Found<'_, '_, [f64; 2]>]) -> Group {
    for (panel, (cell, _)) in group.panels.iter_mut().zip(found) {
        panel.title = format!("{}: {}", cell.part.name, cell.size_words());
    }
    group
}

/// Resident bytes after a run, at the largest size of each part.
fn resident_after(summary: &Summary<'_>, figure: &mut Figure) {
    let cells = summary.cells.iter().filter(|cell| !elsewhere(cell.part));
    // Of several that are the largest, the first.
    let largest = gathered(cells, |cell| &cell.cell.part)
        .into_iter()
        .filter_map(|(_, cells)| cells.into_iter().rev().max_by_key(|cell| cell.cell.run_bytes()));
    let found = rows::found(largest, |_, variant| {
        let src = variant.median_of(|of| of.src_resident_bytes_after)?;
        Some([src, variant.median_of(|of| of.dst_resident_bytes_after)?])
    });
    let title = summary.titled("resident in the page cache after a run");
    let x = Axis::amount("in the page cache", Unit::Bytes);
    let alt = |cell: &CellSummary<'_>| {
        format!("Bytes in the page cache after a run at {}.", cell.words())
    };
    let group = rows::group(&title, &found, &x, alt, |name, row, &[src, dst]| {
        let bar = |(what, bytes, strength)| {
            let text = format!("{name}: {what} {}", Entry::bytes(bytes).as_ref());
            Mark::bar(name, row, bytes, strength, text)
        };
        [("source", src, 1.0), ("copy", dst, 0.45)].map(bar).into()
    });
    let Some(group) = group else { return };
    figure.groups.push(titled(group, &found));
    figure.tables.push(Table::of(
        &title,
        rows::each(&found),
        &[
            ("variant", &|(_, name, _)| Entry::words(name)),
            ("file size", &|(cell, ..)| cell.size_entry()),
            ("state", &|(cell, ..)| Entry::words(&cell.circumstances())),
            ("source", &|(.., pair)| Entry::bytes(pair[0])),
            ("copy", &|(.., pair)| Entry::bytes(pair[1])),
        ],
    ));
}
