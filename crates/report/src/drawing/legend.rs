//! Small pictures of looks, for the legends of the page and of files.

use lab::in_order::distinct;

use crate::palette::Style;
use crate::plot::{Group, Look, Shape, Stroke};

/// The width and the height of a picture.
pub(crate) const SIZE: [f64; 2] = [26.0, 12.0];

/// The variants that the legend of a group names, and whether each is shown at first.
pub(crate) fn entries(group: &Group) -> Vec<(&str, bool)> {
    let marks = group.panels.iter().flat_map(|panel| &panel.marks);
    let own = |shape: &Shape| {
        matches!(shape, Shape::Line { stroke: Stroke::Own, .. } | Shape::Bar { named: true, .. })
    };
    let listed = marks.filter(|mark| own(&mark.shape));
    // Panels may each have a mark of one name.
    distinct(listed.filter_map(|mark| Some((mark.variant.as_deref()?, !mark.hidden))))
}

/// The line and the symbol of a variant.
pub(crate) fn swatch(style: &Style) -> String {
    let row = style.row;
    let dash = style.dash;
    format!(
        "<g class=\"mark e{row}\"><path class=\"line d{dash}\" d=\"M0 6h26\"/><use class=\"dot\" href=\"#s{row}\" \
         x=\"13\" y=\"6\"/></g>"
    )
}

/// The picture of a look.
pub(crate) fn picture(look: Look) -> String {
    let bar = |strength: &str| {
        format!("<path class=\"bar\" d=\"M3 2h19v8h-19z\" fill-opacity=\"{strength}\"/>")
    };
    let dot = |class: &str| format!("<use class=\"{class}\" href=\"#s0\" x=\"13\" y=\"6\"/>");
    let path = |class: &str, d: &str| format!("<path class=\"{class}\" d=\"{d}\"/>");
    let inside = match look {
        Look::Full => dot("dot"),
        Look::Hollow => dot("dot hollow"),
        Look::Strong => bar("1"),
        Look::Medium => bar("0.55"),
        Look::Pale => bar("0.18"),
        Look::Band => path("band", "M3 1h19v10h-19z"),
        Look::Warning => path("warning", "M3 1h19v10h-19z"),
        Look::Rule => path("thin", "M13 0v12"),
        Look::Line => path("line", "M0 6h26"),
        Look::Fit => path("fit", "M0 6h26"),
        Look::Tiles => [0.06, 0.37, 0.69, 1.0]
            .into_iter()
            .zip([2, 8, 14, 20])
            .map(|(strength, x)| {
                format!("<path class=\"hot\" d=\"M{x} 1h6v10h-6z\" fill-opacity=\"{strength}\"/>")
            })
            .collect(),
    };
    format!("<g class=\"mark soft\">{inside}</g>")
}

/// Whether a group has a mark with that look. The keys of a figure are those of all its groups.
pub(super) fn concerns(look: Look, group: &Group) -> bool {
    let mut marks = group.panels.iter().flat_map(|panel| &panel.marks).filter(|mark| !mark.hidden);
    marks.any(|mark| match (look, &mark.shape) {
        (Look::Full, Shape::Dots { hollow, .. }) => !hollow,
        (Look::Hollow, Shape::Dots { hollow, .. }) => *hollow,
        (Look::Strong, Shape::Bar { strength, .. }) => *strength >= 0.8,
        (Look::Medium, Shape::Bar { strength, .. }) => (0.3..0.8).contains(strength),
        (Look::Pale, Shape::Bar { strength, .. }) => *strength < 0.3,
        (Look::Band, Shape::Band { warning, .. }) => !warning,
        (Look::Warning, Shape::Band { warning, .. }) => *warning,
        (Look::Line, Shape::Line { stroke, .. }) => *stroke != Stroke::Fit,
        (Look::Fit, Shape::Line { stroke, .. }) => *stroke == Stroke::Fit,
        (Look::Rule, Shape::Rule { .. }) | (Look::Tiles, Shape::Heat { .. }) => true,
        _ => false,
    })
}
