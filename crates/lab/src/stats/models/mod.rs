//! Models of what a call and a byte cost, and what follows from them.
//!
//! Sizes span from bytes to gibibytes, so errors are taken as shares: logarithms of times are
//! fitted, and a residual of 0.01 is one percent.

mod buffer;
mod curve;
mod fit;
mod jackknife;
mod line;
mod plateau;
mod segments;

pub use buffer::buffer_for_overhead;
pub use curve::Point;
pub use jackknife::Estimate;
pub use line::{CostLine, Misfit, cost_line};
pub use plateau::{Plateau, Setting, plateau};
pub use segments::{Broken, Segments, segments};

#[cfg(test)]
mod tests;
