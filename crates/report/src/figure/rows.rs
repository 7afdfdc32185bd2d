//! Panels with a row for each variant.

use crate::plot::{Axis, Mark, Panel};
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
