//! A panel: its axes, and the layers of its marks.

use super::frame::{Frame, NAME_CHARS_MAX, in_xml, units};
use super::marks;
use crate::palette::Styles;
use crate::plot::{Axis, Panel, Unit};
use crate::scale::Range;

/// The contents of the `svg` element of a panel. Its titles and ticks are outside of the element's box.
pub(super) fn contents(panel: &Panel, frame: &Frame, slanted: bool, styles: &Styles) -> String {
    let [grid, words] = axes(panel, frame, slanted, styles);
    let layers = marks::draw(panel, frame, styles);
    let mut svg = format!("{words}<svg width=\"100%\" height=\"100%\">{}", layers.back);
    let [width, height] = [frame.width, frame.height].map(units);
    svg.push_str(&format!(
        "<svg width=\"100%\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         preserveAspectRatio=\"none\">{grid}{}</svg>{}</svg>",
        layers.stretched, layers.front
    ));
    if !panel.title.is_empty() {
        svg.push_str(&format!("<text class=\"head\" y=\"-6\">{}</text>", in_xml(&panel.title)));
    }
    svg
}

/// The horizontal lines of the grid, which are stretched with the panel, and all else of the axes.
fn axes(panel: &Panel, frame: &Frame, slanted: bool, styles: &Styles) -> [String; 2] {
    let mut grid = String::new();
    let mut svg = String::from("<g class=\"grid\">");
    let mut words = String::new();
    for (value, label, class) in ticks_of_x(panel, frame) {
        let x = frame.x(value);
        svg.push_str(&format!("<line{class} x1=\"{x}\" x2=\"{x}\" y2=\"100%\"/>"));
        let label = in_xml(&cut(&label));
        words.push_str(&match slanted {
            true => format!(
                "<svg x=\"{x}\" y=\"100%\" overflow=\"visible\"><text class=\"tick slanted\" y=\"12\" \
                 transform=\"rotate(-35)\">{label}</text></svg>"
            ),
            false => {
                // The last label must not stick out.
                let last = if frame.share(value) > 0.93 { " last\" dx=\"8" } else { "" };
                format!(
                    "<g{class}><text class=\"tick at-x{last}\" x=\"{x}\" y=\"100%\" dy=\"13\">{label}</text></g>"
                )
            }
        });
    }
    let mut across = |y: &str| {
        grid.push_str(&format!("M0 {y}h{}", units(frame.width)));
    };
    if frame.rows {
        let rows = 0..panel.y.categories.len();
        rows.for_each(|row| across(&units(frame.y(row as f64))));
        words.push_str(&names(panel, frame, styles));
    } else {
        for (value, label) in frame.y.ticks(&panel.y, most(frame.height, 26.0)) {
            let y = units(frame.y(value));
            across(&y);
            words.push_str(&format!(
                "<text class=\"tick at-y\" x=\"-5\" y=\"{y}\" dy=\"3.5\">{label}</text>"
            ));
        }
        // The label must not be longer than its axis.
        let label = fitting(&panel.y, frame.y, frame.height + 10.0);
        words.push_str(&format!(
            "<svg y=\"50%\" overflow=\"visible\"><text class=\"label\" y=\"-56\" \
             transform=\"rotate(-90)\">{}</text></svg>",
            in_xml(&label)
        ));
    }
    svg.push_str("</g>");
    svg.push_str(&words);
    svg.push_str("<line class=\"axis\" x2=\"100%\" y1=\"100%\" y2=\"100%\"/>");
    if panel.x.categories.is_empty() {
        svg.push_str(&label_of_x(&fitting(&panel.x, frame.x, frame.width + 40.0), frame.narrow));
    }
    [format!("<path class=\"grid\" d=\"{grid}\"/>"), svg]
}

/// The label below a panel. A long one ends at the end of the panel on a phone: it has the room below
/// the names of rows, too.
fn label_of_x(label: &str, narrow: f64) -> String {
    let is_long = label.chars().count() as f64 * 6.5 > narrow;
    let text = |class: &str, x: &str| {
        let label = in_xml(label);
        format!("<text class=\"{class}\" x=\"{x}\" y=\"100%\" dy=\"27\">{label}</text>")
    };
    match is_long {
        true => format!(
            "<g class=\"wide-tick\">{}</g><g class=\"narrow\">{}</g>",
            text("label", "50%"),
            text("tick before", "100%")
        ),
        false => text("label", "50%"),
    }
}

/// The names of rows. On a wide page those of the first column are shown only.
fn names(panel: &Panel, frame: &Frame, styles: &Styles) -> String {
    let of = |(index, name): (usize, &String)| {
        let y = units(frame.y(index as f64) + 3.5);
        let style = styles.get(name);
        let variant = style.map_or(String::new(), |it| format!(" data-v=\"{}\"", it.number));
        format!("<text class=\"name\"{variant} x=\"-6\" y=\"{y}\">{}</text>", in_xml(&cut(name)))
    };
    panel.y.categories.iter().enumerate().map(of).collect()
}

/// Positions, labels and classes of ticks. Those that are too many for a phone have a class by which
/// they are hidden there, and those in their place have another.
fn ticks_of_x(panel: &Panel, frame: &Frame) -> Vec<(f64, String, &'static str)> {
    let axis = &panel.x;
    if !axis.categories.is_empty() {
        let names = axis.categories.iter().enumerate();
        return names.map(|(index, name)| (index as f64, name.clone(), "")).collect();
    }
    let each = if axis.unit == Unit::Ratio { 34.0 } else { 52.0 };
    let few = frame.x.ticks(axis, most(frame.width.min(frame.narrow), each));
    if frame.width <= frame.narrow {
        return few.into_iter().map(|(value, label)| (value, label, "")).collect();
    }
    let many = frame.x.ticks(axis, most(frame.width, each));
    let class = |in_other: bool, other: &'static str| if in_other { "" } else { other };
    let only_few = few.iter().filter(|tick| !many.contains(tick));
    let only_few = only_few.map(|(value, label)| (*value, label.clone(), " class=\"narrow\""));
    let many = many
        .iter()
        .map(|tick| (tick.0, tick.1.clone(), class(few.contains(tick), " class=\"wide-tick\"")));
    many.chain(only_few).collect()
}

/// The labels that fit side by side, each of so many units.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A few labels.
fn most(width: f64, each: f64) -> usize {
    (width / each).max(2.0) as usize
}

/// The title of an axis, without its scale where there is no room for it.
fn fitting(axis: &Axis, range: Range, width: f64) -> String {
    let log = if range.log { " (log scale)" } else { "" };
    let title = format!("{}{log}", axis.label);
    let fits = title.chars().count() as f64 * 5.9 < width;
    if fits { title } else { axis.label.clone() }
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect()
}
