//! The place of a panel in a drawing, and the sizes and colours that all parts of it use.

use crate::palette::Style;
use crate::report::Report;
use crate::scale::Range;

/// The width of a drawing in its own units, of which 96 are an inch.
pub(super) const WIDTH: f64 = 658.0;

/// The height of the text: 8 points.
pub(super) const TEXT_PX: f64 = 10.6;

/// The colour of text.
pub(super) const INK: &str = "#1b1f24";
/// The colour of axes and notes.
pub(super) const SOFT: &str = "#4a545e";

/// The place of a panel, and the ranges of its axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) x0: f64,
    pub(super) y0: f64,
    pub(super) x1: f64,
    pub(super) y1: f64,
    pub(super) x: Range,
    pub(super) y: Range,
    /// Whether the first category is the top row.
    pub(super) rows: bool,
}

impl Frame {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.x0 + self.x.share(value) * (self.x1 - self.x0)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let share = self.y.share(value);
        let up = if self.rows { 1.0 - share } else { share };
        self.y1 - up * (self.y1 - self.y0)
    }
}

/// How the marks of a variant look. `None` for a mark of no variant.
pub(super) fn style<'r>(report: &'r Report<'_>, variant: Option<&str>) -> Option<&'r Style> {
    report.styles.get(variant?)
}
