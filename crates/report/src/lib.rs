//! Makes figures of samples, and draws them as a page, as SVG and PNG, and as text.
//!
//! Nothing here measures. [`source`] reads a run directory, and [`summary`] groups its samples by
//! cell and variant. Each file of [`figure`] makes one figure of a summary, as the plain data of
//! [`plot`]. [`drawing`] makes SVG of that data, which the [`page`] contains, and [`text`] draws it
//! for a terminal, so they agree.

pub mod answer;
pub mod columns;
pub mod drawing;
mod escape;
pub mod figure;
pub mod headline;
mod machine;
pub mod page;
pub mod palette;
pub mod plot;
pub mod report;
pub mod scale;
pub mod source;
pub mod summary;
pub mod text;

pub use report::Report;
pub use source::Source;
