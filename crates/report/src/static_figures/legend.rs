//! The legend above a drawing.

use super::frame::{INK, TEXT_PX, WIDTH, style};
use crate::canvas::{Anchor, Canvas, DOTS, Pen, Type, dashes};
use crate::in_order::distinct;
use crate::plot::{Figure, Group, Look};
use crate::report::Report;

/// The colour of the keys that apply to all variants.
const NEUTRAL: &str = "#4a545e";

/// The height of a line.
const LINE: f64 = 15.0;

/// Draws the legend from `y` on, and returns where it ends.
pub(super) fn draw(
    canvas: &mut Canvas,
    figure: &Figure,
    group: &Group,
    report: &Report<'_>,
    y: f64,
) -> f64 {
    let mut pen = Place { x: 0.0, y };
    let words = Type { px: TEXT_PX - 1.0, bold: false, colour: INK, anchor: Anchor::Start };
    for key in figure.keys.iter().filter(|key| concerns(key.look, group)) {
        let [x, y] = pen.next(&key.text);
        look(canvas, key.look, x, y);
        canvas.text([x + 28.0, y + 3.5], &key.text, words, false);
    }
    let marks = group.panels.iter().flat_map(|panel| &panel.marks);
    let listed = marks.filter(|mark| mark.legend && !mark.hidden);
    // Panels may each have a mark of one name.
    for (name, variant) in distinct(listed.map(|mark| (&mark.name, mark.variant.as_deref()))) {
        let Some(style) = style(report, variant) else { continue };
        let [x, y] = pen.next(name);
        let dash = dashes(style.dash);
        canvas.line(
            &[[x, y], [x + 24.0, y]],
            Pen { colour: style.light, width: 1.4, opacity: 1.0, dash },
        );
        canvas.symbol([x + 12.0, y], style.symbol, 3.0, style.light, false);
        canvas.text([x + 28.0, y + 3.5], name, words, false);
    }
    if pen.x > 0.0 { pen.y + LINE } else { pen.y.max(24.0) }
}

/// The position of the next entry.
struct Place {
    x: f64,
    y: f64,
}

impl Place {
    fn next(&mut self, text: &str) -> [f64; 2] {
        let width = 28.0 + text.chars().count() as f64 * 5.9 + 14.0;
        if self.x > 0.0 && self.x + width > WIDTH {
            self.x = 0.0;
            self.y += LINE;
        }
        let at = [self.x, self.y];
        self.x += width;
        at
    }
}

/// Whether a group has a mark with that look. The keys of a figure are those of all its groups.
fn concerns(look: Look, group: &Group) -> bool {
    use crate::plot::{Shape, Stroke};
    let mut marks = group.panels.iter().flat_map(|panel| &panel.marks).filter(|mark| !mark.hidden);
    let strengths = |wanted: std::ops::Range<f32>| move |shape: &Shape| matches!(shape, Shape::Bars { strength, .. } if wanted.contains(strength));
    let is: Box<dyn Fn(&Shape) -> bool> = match look {
        Look::Full => Box::new(|shape| matches!(shape, Shape::Dots { hollow: false, .. })),
        Look::Hollow => Box::new(|shape| matches!(shape, Shape::Dots { hollow: true, .. })),
        Look::Strong => Box::new(strengths(0.8..2.0)),
        Look::Medium => Box::new(strengths(0.3..0.8)),
        Look::Pale => Box::new(strengths(0.0..0.3)),
        Look::Band => Box::new(|shape| matches!(shape, Shape::Band { warning: false, .. })),
        Look::Warning => Box::new(|shape| matches!(shape, Shape::Band { warning: true, .. })),
        Look::Rule => Box::new(|shape| matches!(shape, Shape::Rule { .. })),
        Look::Line => Box::new(|shape| {
            matches!(shape, Shape::Line { stroke: Stroke::Own | Stroke::Thin, .. })
        }),
        Look::Fit => Box::new(|shape| matches!(shape, Shape::Line { stroke: Stroke::Fit, .. })),
        Look::Tiles => Box::new(|shape| matches!(shape, Shape::Heat { .. })),
    };
    marks.any(|mark| is(&mark.shape))
}

fn look(canvas: &mut Canvas, look: Look, x: f64, y: f64) {
    use crate::palette::Symbol;
    let bar = |canvas: &mut Canvas, opacity: f64| {
        let [x0, x1] = [x + 3.0, x + 22.0];
        let corners = [[x0, y - 4.0], [x1, y - 4.0], [x1, y + 4.0], [x0, y + 4.0]];
        canvas.area(&corners, NEUTRAL, opacity, true);
    };
    let across = [[x, y], [x + 24.0, y]];
    match look {
        Look::Full => canvas.symbol([x + 12.0, y], Symbol::Circle, 3.2, NEUTRAL, false),
        Look::Hollow => canvas.symbol([x + 12.0, y], Symbol::Circle, 3.2, NEUTRAL, true),
        Look::Strong => bar(canvas, 1.0),
        Look::Medium => bar(canvas, 0.55),
        Look::Pale => bar(canvas, 0.18),
        Look::Band => canvas.rect([x + 3.0, y - 5.0], [x + 22.0, y + 5.0], NEUTRAL, 0.2),
        Look::Warning => {
            canvas.rect([x + 3.0, y - 5.0], [x + 22.0, y + 5.0], super::marks::WARNING, 0.18);
        }
        Look::Rule => {
            canvas.line(&[[x + 12.0, y - 6.0], [x + 12.0, y + 6.0]], Pen::thin(NEUTRAL));
        }
        Look::Line => canvas.line(&across, Pen { width: 1.4, ..Pen::thin(NEUTRAL) }),
        Look::Fit => canvas.line(&across, Pen { dash: DOTS, ..Pen::thin(NEUTRAL) }),
        Look::Tiles => {
            for (step, strength) in [0.06, 0.37, 0.69, 1.0].into_iter().enumerate() {
                let from = x + 1.0 + 5.6 * step as f64;
                canvas.rect([from, y - 5.0], [from + 5.6, y + 5.0], super::marks::STRONG, strength);
            }
        }
    }
}
