//! Which variants a copy will use between two file systems, computed without copying.

pub use tree::{PlannedFile, Predictor, RULE, Row};
