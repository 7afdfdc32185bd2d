//! The arrangement of the panels of a group.

use super::frame::{Frame, NAME_CHARS_MAX, PHONE, ROW};
use super::panel;
use crate::palette::Styles;
use crate::plot::{Axis, Group, Height, Panel, Unit};
use crate::scale::Range;

/// The width of a drawing in its own units, of which 96 are an inch: two columns of most journals.
pub(super) const WIDTH: f64 = 658.0;

/// The width of the figures on the page in a window of 1280 pixels.
const PAGE_WIDTH: f64 = 1134.0;

/// The room right of the last panel.
pub(super) const RIGHT: f64 = 8.0;

/// The room for names on a phone. Longer names are in small type there.
const NARROW_LEFT_MAX: f64 = 200.0;

/// The arrangement of the panels of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Panels side by side in a file.
    pub(crate) columns: usize,
    /// Panels side by side on a wide page.
    pub(crate) page_columns: usize,
    /// The room for names or ticks left of a panel.
    pub(crate) left: f64,
    /// The same on a phone.
    pub(crate) narrow_left: f64,
    /// The width of a panel in a file, and its height.
    pub(crate) size: [f64; 2],
    /// The room above a panel for its title.
    pub(crate) head: f64,
    /// The room below it for ticks and the name of the axis.
    pub(crate) foot: f64,
    /// The room between two panels.
    pub(crate) gap: f64,
    slanted: bool,
}

impl Plan {
    pub(crate) fn of(group: &Group) -> Plan {
        let longest = |axis: &Axis| {
            let names = axis.categories.iter().map(|name| name.chars().count());
            names.max().unwrap_or(0).min(NAME_CHARS_MAX) as f64
        };
        let (x, y) = (&group.panels[0].x, &group.panels[0].y);
        let rows = !y.categories.is_empty();
        // In tens, so that the style of a page needs few rules.
        let left = if rows { ((longest(y) * 6.7 + 10.0) / 10.0).ceil() * 10.0 } else { 70.0 };
        let narrow_left = left.min(NARROW_LEFT_MAX);
        let (least, page_least) = match group.height {
            Height::Rows => (92.0, 165.0),
            Height::Strip => (170.0, 240.0),
            Height::Plot => (230.0, 360.0),
        };
        let gap = if rows { 18.0 } else { left };
        let count = group.panels.len();
        // At least one column, and at most one for each panel; lines are about equally long.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let columns = |width: f64, least: f64| {
            let fit = ((width - left - RIGHT + gap) / (least + gap)) as usize;
            count.div_ceil(count.div_ceil(fit.clamp(1, count)))
        };
        let in_file = columns(WIDTH, least);
        let wide = (WIDTH - left - RIGHT - gap * (in_file - 1) as f64) / in_file as f64;
        let tall = match group.height {
            Height::Rows if rows => y.categories.len().max(1) as f64 * ROW,
            Height::Strip => 140.0,
            _ => 270.0,
        };
        // Names below a panel are slanted where they would overlap on a phone.
        let names = x.categories.len() as f64 * longest(x) * 6.5;
        let slanted = names > PHONE - narrow_left;
        let foot = if slanted { 14.0 + longest(x) * 4.2 } else { 36.0 };
        let titled = group.panels.iter().any(|panel| !panel.title.is_empty());
        Plan {
            columns: in_file,
            page_columns: columns(PAGE_WIDTH, page_least),
            left,
            narrow_left,
            size: [wide, tall],
            head: if titled { 20.0 } else { 6.0 },
            foot,
            gap,
            slanted,
        }
    }
}

/// The contents of the `svg` element of each panel of a group.
pub(crate) fn panels(group: &Group, plan: &Plan, styles: &Styles) -> Vec<String> {
    let joined = common_range(group);
    let draw = |panel: &Panel| {
        let frame = Frame {
            x: joined.unwrap_or_else(|| Range::of_x(panel)),
            y: Range::of_y(panel),
            width: plan.size[0],
            height: plan.size[1],
            narrow: PHONE - plan.narrow_left,
            rows: !panel.y.categories.is_empty(),
        };
        panel::contents(panel, &frame, plan.slanted, styles)
    };
    group.panels.iter().map(draw).collect()
}

/// The common range of panels that all show ratios of the same quantities.
fn common_range(group: &Group) -> Option<Range> {
    let first = &group.panels[0].x;
    let alike = |panel: &Panel| panel.x.unit == Unit::Ratio && panel.x.label == first.label;
    if group.panels.len() < 2 || !group.panels.iter().all(alike) {
        return None;
    }
    group.panels.iter().map(Range::of_x).reduce(Range::joined)
}
