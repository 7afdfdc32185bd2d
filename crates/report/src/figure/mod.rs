//! One file a figure: from the summaries of the runs to panels and marks.

use crate::plot::Figure;
use crate::summary::Summary;

pub mod buffer;
pub mod cache;
pub mod change;
pub mod concurrency;
mod content;
pub mod drift;
mod estimate;
pub mod order;
pub mod page_boundary;
pub mod per_call;
pub mod ratio;
mod rows;
pub mod size;
pub mod split;
pub mod then_and_now;
pub mod tuning;

/// Makes a figure. `None` if the runs have no data for it.
pub type Make = fn(&[Summary<'_>]) -> Option<Figure>;

/// All figures, in their order on the page.
pub const ALL: &[Make] = &[
    size::figure,
    ratio::figure,
    buffer::figure,
    page_boundary::figure,
    per_call::figure,
    split::figure,
    cache::figure,
    concurrency::figure,
    order::figure,
    drift::figure,
    then_and_now::figure,
];

/// The default of ε, the share that calls may add to the cost of their bytes.
pub const EPSILON: f64 = 0.01;
