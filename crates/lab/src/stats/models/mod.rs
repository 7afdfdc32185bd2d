//! Models of the costs of a call and of a byte, and the buffer sizes that follow from them.
//!
//! Sizes range from bytes to gibibytes, so errors are relative: the models fit logarithms of times,
//! and a residual of 0.01 is one percent.

mod buffer;
mod curve;
mod fit;
mod jackknife;
mod line;
mod plateau;
mod segments;

pub use buffer::buffer_for_overhead;
pub use curve::Point;
pub use line::{CostLine, Misfit, cost_line};
pub use plateau::{Plateau, Setting, plateau};
pub use segments::{Segments, segments};

#[cfg(test)]
mod tests;
