//! Panels with a row for each variant.

use crate::plot::{Axis, Group, Mark, Panel};
use crate::summary::{CellSummary, VariantSummary};

/// A panel of `cell` with these rows.
pub(super) fn panel(
    cell: &CellSummary<'_>,
    alt: String,
    x: Axis,
    rows: &[&str],
    marks: Vec<Mark>,
) -> Panel {
    let y = Axis::variants(rows);
    Panel { title: cell.size_words(), alt, facets: cell.facets.clone(), x, y, marks }
}

/// What was found of the variants of a cell.
pub(super) type Found<'a, 's, T> = (&'a CellSummary<'s>, Vec<(&'s str, T)>);

/// What `find` finds, of those cells in which it finds anything.
pub(super) fn found<'a, 's: 'a, T>(
    cells: impl IntoIterator<Item = &'a CellSummary<'s>>,
    find: impl Fn(&CellSummary<'_>, &VariantSummary<'_>) -> Option<T>,
) -> Vec<Found<'a, 's, T>> {
    let of_cell = |cell: &'a CellSummary<'s>| {
        let of = |variant: &VariantSummary<'s>| Some((variant.variant, find(cell, variant)?));
        (cell, cell.variants.iter().filter_map(of).collect())
    };
    let mut found: Vec<Found<'_, '_, T>> = cells.into_iter().map(of_cell).collect();
    found.retain(|(_, variants)| !variants.is_empty());
    found
}

/// A panel for each cell. `draw` gets the name of a variant, its row, and what was found of it.
pub(super) fn group<T>(
    title: &str,
    found: &[Found<'_, '_, T>],
    x: &Axis,
    alt: impl Fn(&CellSummary<'_>) -> String,
    draw: impl Fn(&str, f64, &T) -> Vec<Mark>,
) -> Option<Group> {
    let cells: Vec<&CellSummary<'_>> = found.iter().map(|(cell, _)| *cell).collect();
    let mut rows = ranked(&cells);
    rows.retain(|name| found.iter().flat_map(|(_, of)| of).any(|(of, _)| of == name));
    let panel = |(cell, variants): &Found<'_, '_, T>| {
        let marks = variants.iter().flat_map(|(name, of)| draw(name, row_of(&rows, name), of));
        panel(cell, alt(cell), x.clone(), &rows, marks.collect())
    };
    Group::of_rows(title.to_owned(), found.iter().map(panel).collect())
}

/// Each variant in each cell, for the rows of a table.
pub(super) fn each<'f, 'a, 's, T>(
    found: &'f [Found<'a, 's, T>],
) -> impl Iterator<Item = (&'a CellSummary<'s>, &'s str, &'f T)> {
    found.iter().flat_map(|(cell, of)| of.iter().map(|(name, value)| (*cell, *name, value)))
}

/// The row of a variant.
pub(super) fn row_of(rows: &[&str], variant: &str) -> f64 {
    rows.iter().position(|name| *name == variant).unwrap_or(0) as f64
}

/// Variants by their median in the largest cell that has them, the fastest first.
pub(super) fn ranked<'s>(cells: &[&CellSummary<'s>]) -> Vec<&'s str> {
    let mut cells = cells.to_vec();
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.cell.run_bytes()));
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
