//! The sizes of panels, positions in a panel and words as attributes.

use crate::columns::visible;
use crate::escape::escaped;
use crate::scale::Range;

/// The height of a row.
pub(super) const ROW: f64 = 17.0;

/// The width of a panel on a phone, with what is left of it.
pub(super) const PHONE: f64 = 330.0;

/// The names of rows that are longer are cut.
pub(super) const NAME_CHARS_MAX: usize = 40;

/// The place of marks: the ranges of the axes, and the size of a panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) x: Range,
    pub(super) y: Range,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The width on a phone.
    pub(super) narrow: f64,
    /// Whether the first category is the top row.
    pub(super) rows: bool,
}

impl Frame {
    /// A value on x as a share of the width.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = self.x.share(value);
        // What is far outside is clipped wherever it is.
        if share.is_finite() { share.clamp(-9.0, 9.0) } else { -9.0 }
    }

    /// A value on x, for an attribute.
    pub(super) fn x(&self, value: f64) -> String {
        percent(self.share(value))
    }

    /// A value on y, in units.
    pub(super) fn y(&self, value: f64) -> f64 {
        let share = self.y.share(value);
        let share = if share.is_finite() { share.clamp(-9.0, 9.0) } else { -9.0 };
        (if self.rows { share } else { 1.0 - share }) * self.height
    }
}

/// A share, for an attribute.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{}%", tidy(&text))
}

/// A number of units with one decimal.
pub(super) fn units(value: f64) -> String {
    tidy(&format!("{value:.1}")).to_owned()
}

/// A decimal number without trailing zeros.
fn tidy(text: &str) -> &str {
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" | "" => "0",
        text => text,
    }
}

/// `text` for SVG, without control characters, which XML cannot contain, not even escaped.
pub(super) fn in_xml(text: &str) -> String {
    escaped(&visible(text))
}
