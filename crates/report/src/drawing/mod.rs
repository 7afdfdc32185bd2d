//! Figures as SVG, for the page and for files, and as PNG: a drawing for each group of panels.
//!
//! A panel is the contents of an `svg` element. Positions across are shares of its width, positions
//! down are in its units, so text keeps its size where the page makes a panel wider or narrower. Only
//! outlines and curves are stretched. Looks are classes of `drawing.css`.

mod file;
mod frame;
pub(crate) mod group;
pub(crate) mod legend;
mod marks;
mod panel;
mod png;
pub(crate) mod style;

pub use file::{Drawing, drawings};
