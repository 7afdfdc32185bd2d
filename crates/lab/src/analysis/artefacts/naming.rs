//! How a sentence names the cells and variants that it is about.

use crate::analysis::view::CellView;
use crate::sample::record::Sample;
use crate::words;
use std::collections::BTreeMap;

/// Cells that a sentence names.
pub(super) const NAMED_MAX: usize = 3;

pub(super) fn named(cells: &[String]) -> String {
    if cells.len() <= NAMED_MAX {
        return words::listed(cells);
    }
    format!("{} and {} more cells", cells[..NAMED_MAX - 1].join(", "), cells.len() - NAMED_MAX + 1)
}

/// For each variant the cells in which `is_so` for any of its counted runs.
pub(super) fn of_variants<'r>(
    cells: &[&CellView<'r>],
    is_so: impl Fn(&CellView<'_>, &Sample) -> bool,
) -> BTreeMap<&'r str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in cells {
        for (variant, records) in cell.part.variants.iter().zip(&cell.counted) {
            if records.iter().any(|record| is_so(cell, record)) {
                found.entry(variant).or_default().push(cell.cell.id());
            }
        }
    }
    found
}
