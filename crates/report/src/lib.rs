//! From samples to figures, and from figures to a page, to drawings and to text.
//!
//! Nothing here measures. A [`source`] reads a run directory, a [`summary`] sorts its samples by cell
//! and variant, and each file of [`figure`] makes one figure of these, as plain data. The [`page`]
//! and the other drawings know only such data, so that they agree.

pub mod certificate;
mod escape;
pub mod figure;
pub mod headline;
mod in_order;
mod machine;
pub mod page;
pub mod palette;
pub mod plot;
pub mod report;
pub mod scale;
pub mod source;
pub mod static_figures;
pub mod summary;
mod svg;
pub mod text;

pub use report::Report;
pub use source::Source;
