//! Draws a canvas as PNG, with the embedded fonts only, so that a drawing is the same on every machine.

use tiny_skia::{
    Color, FillRule, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::svg::visible;
use crate::canvas::{Anchor, Canvas, Edge, Pen, Point, Shape, Type};

const REGULAR: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");
const BOLD: &[u8] = include_bytes!("../../assets/DejaVuSans-Bold-subset.ttf");

/// The complete file of a canvas of `size` units, with `scale` pixels for each unit.
///
/// # Errors
/// If there is no memory for so many pixels, with the reason in words.
pub(super) fn file(canvas: &Canvas, size: [f64; 2], scale: f32) -> Result<Vec<u8>, String> {
    // A size that does not fit saturates, and is then refused.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let [width, height] = size.map(|units| (units * f64::from(scale)).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or("the drawing is too large, or empty")?;
    pixels.fill(Color::WHITE);
    let mut drawing = Drawing {
        pixels,
        scale: Transform::from_scale(scale, scale),
        clip: None,
        regular: face(REGULAR),
        bold: face(BOLD),
    };
    canvas.shapes.iter().for_each(|shape| drawing.draw(shape));
    drawing.pixels.encode_png().map_err(|error| error.to_string())
}

fn face(font: &'static [u8]) -> Face<'static> {
    Face::parse(font, 0).expect("the embedded fonts are whole")
}

struct Drawing {
    pixels: Pixmap,
    /// From units of the drawing to pixels.
    scale: Transform,
    /// The pixels that can be drawn to; `None` for all.
    clip: Option<Mask>,
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Drawing {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Text { at, words, of, turned } => self.text(*at, words, *of, *turned),
            Shape::Line { points, pen } => self.stroke(outline(points, false), *pen),
            Shape::Area { points, fill, opacity, edge } => {
                self.area(outline(points, true), fill, *opacity, *edge);
            }
            Shape::Circle { at, radius, fill, edge } => {
                let [x, y] = at.map(narrow);
                let circle = PathBuilder::from_circle(x, y, narrow(*radius));
                self.area(circle, fill, 1.0, Some(*edge));
            }
            Shape::Clip { from, to, .. } => self.clip(*from, *to),
            Shape::Unclip => self.clip = None,
        }
    }

    /// Nothing is drawn for a path of `None`, one with a point that is not finite.
    fn area(&mut self, path: Option<Path>, fill: &str, opacity: f64, edge: Option<Edge>) {
        let Some(path) = path else { return };
        let paint = paint(fill, opacity);
        self.pixels.fill_path(&path, &paint, FillRule::Winding, self.scale, self.clip.as_ref());
        if let Some(edge) = edge {
            self.stroke(Some(path), Pen { width: edge.width, ..Pen::thin(edge.colour) });
        }
    }

    fn stroke(&mut self, path: Option<Path>, pen: Pen) {
        let Some(path) = path else { return };
        let stroke = Stroke {
            width: narrow(pen.width),
            dash: StrokeDash::new(pen.dash.to_vec(), 0.0),
            ..Stroke::default()
        };
        let paint = paint(pen.colour, pen.opacity);
        self.pixels.stroke_path(&path, &paint, &stroke, self.scale, self.clip.as_ref());
    }

    fn clip(&mut self, from: Point, to: Point) {
        let ([x0, y0], [x1, y1]) = (from.map(narrow), to.map(narrow));
        let mask = Mask::new(self.pixels.width(), self.pixels.height());
        let (Some(mut mask), Some(rect)) = (mask, Rect::from_ltrb(x0, y0, x1, y1)) else { return };
        let rect = PathBuilder::from_rect(rect);
        mask.fill_path(&rect, FillRule::Winding, true, self.scale);
        self.clip = Some(mask);
    }

    /// One glyph for each character, side by side: the texts of figures are Latin and Greek letters.
    fn text(&mut self, [x, y]: Point, words: &str, of: Type, turned: bool) {
        let words = visible(words);
        let glyphs: Vec<(&Face<'_>, GlyphId)> =
            words.chars().map(|c| self.glyph(c, of.bold)).collect();
        let wide: f64 = glyphs.iter().map(|(face, glyph)| advance(face, *glyph, of.px)).sum();
        let start = match of.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -wide / 2.0,
            Anchor::End => -wide,
        };
        let mut pen = GlyphPen { path: PathBuilder::new(), x: start, unit: 0.0 };
        for (face, glyph) in glyphs {
            pen.unit = of.px / f64::from(face.units_per_em());
            // A blank has no outline.
            let _ = face.outline_glyph(glyph, &mut pen);
            pen.x += advance(face, glyph, of.px);
        }
        let Some(path) = pen.path.finish() else { return };
        let angle = if turned { -90.0 } else { 0.0 };
        let place = Transform::from_rotate(angle).post_translate(narrow(x), narrow(y));
        let place = place.post_concat(self.scale);
        let paint = paint(of.colour, 1.0);
        self.pixels.fill_path(&path, &paint, FillRule::Winding, place, self.clip.as_ref());
    }

    /// The glyph of a character. One that the bold font lacks is taken from the other font. One that
    /// both lack is a question mark: the glyph for missing ones is blank in these fonts.
    fn glyph(&self, c: char, bold: bool) -> (&Face<'static>, GlyphId) {
        let face = if bold { &self.bold } else { &self.regular };
        let faces = [(face, c), (&self.regular, c), (face, '?')];
        let found = faces.into_iter().find_map(|(face, c)| Some((face, face.glyph_index(c)?)));
        found.expect("the embedded fonts have a question mark")
    }
}

/// The distance from a glyph to the next.
fn advance(face: &Face<'_>, glyph: GlyphId, px: f64) -> f64 {
    let units = f64::from(face.glyph_hor_advance(glyph).unwrap_or_default());
    units * px / f64::from(face.units_per_em())
}

/// Collects the outlines of glyphs along a line.
struct GlyphPen {
    path: PathBuilder,
    /// Where the glyph begins.
    x: f64,
    /// The size of a unit of its font.
    unit: f64,
}

impl GlyphPen {
    fn at(&self, x: f32, y: f32) -> [f32; 2] {
        // y of a font grows upwards.
        [narrow(self.x + f64::from(x) * self.unit), narrow(-f64::from(y) * self.unit)]
    }
}

impl OutlineBuilder for GlyphPen {
    fn move_to(&mut self, x: f32, y: f32) {
        let [x, y] = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let [x, y] = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ([x1, y1], [x, y]) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ([x1, y1], [x2, y2], [x, y]) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn outline(points: &[Point], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, point) in points.iter().enumerate() {
        let [x, y] = point.map(narrow);
        if index == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    if closed && !points.is_empty() {
        path.close();
    }
    path.finish()
}

fn paint(colour: &str, opacity: f64) -> Paint<'static> {
    let rgb = colour.strip_prefix('#').and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let [_, red, green, blue] = rgb.expect("colours are #rrggbb").to_be_bytes();
    let mut paint = Paint::default();
    let mut colour = Color::from_rgba8(red, green, blue, u8::MAX);
    colour.set_alpha(narrow(opacity));
    paint.set_color(colour);
    paint
}

#[allow(clippy::cast_possible_truncation)] // Pixels need no more digits.
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::palette::Symbol;

    const SIZE: [f64; 2] = [40.0, 20.0];

    /// The pixels of what `draw` draws, one a unit.
    fn drawn(draw: impl FnOnce(&mut Canvas)) -> Pixmap {
        let mut canvas = Canvas::default();
        draw(&mut canvas);
        let png = file(&canvas, SIZE, 1.0).expect("a small drawing");
        Pixmap::decode_png(&png).expect("a PNG")
    }

    fn colour(pixels: &Pixmap, x: u32, y: u32) -> String {
        let pixel = pixels.pixel(x, y).expect("a pixel in the drawing");
        format!("#{:02x}{:02x}{:02x}", pixel.red(), pixel.green(), pixel.blue())
    }

    /// The smallest rectangle with all pixels that are not white: left, top, right, bottom.
    fn bounds(pixels: &Pixmap) -> [u32; 4] {
        let all = (0..pixels.height()).flat_map(|y| (0..pixels.width()).map(move |x| (x, y)));
        all.filter(|&(x, y)| colour(pixels, x, y) != "#ffffff").fold(
            [u32::MAX, u32::MAX, 0, 0],
            |[left, top, right, bottom], (x, y)| {
                [left.min(x), top.min(y), right.max(x), bottom.max(y)]
            },
        )
    }

    #[test]
    fn shapes_have_their_places_and_colours() {
        let pixels = drawn(|canvas| {
            canvas.rect([2.0, 2.0], [6.0, 6.0], "#0072b2", 1.0);
            canvas.rect([10.0, 2.0], [14.0, 6.0], "#000000", 0.5);
            canvas.symbol([20.0, 10.0], Symbol::Circle, 4.0, "#d55e00", true);
            canvas.symbol([30.0, 10.0], Symbol::Square, 4.0, "#d55e00", false);
            canvas.line(&[[2.0, 15.5], [14.0, 15.5]], Pen { width: 1.0, ..Pen::thin("#000000") });
        });
        for ((x, y), expected) in [
            ((3, 3), "#0072b2"),
            ((8, 3), "#ffffff"),
            ((12, 4), "#7f7f7f"),
            ((20, 10), "#ffffff"),
            ((30, 10), "#d55e00"),
            ((8, 15), "#000000"),
            ((15, 15), "#ffffff"),
        ] {
            assert_eq!(colour(&pixels, x, y), expected, "{x} {y}");
        }
        assert_ne!(colour(&pixels, 16, 10), "#ffffff", "a hollow circle has an edge");
    }

    #[test]
    fn nothing_is_drawn_outside_a_clip() {
        let pixels = drawn(|canvas| {
            canvas.clip("c", [10.0, 5.0], [20.0, 10.0]);
            canvas.rect([0.0, 0.0], SIZE, "#000000", 1.0);
            canvas.unclip();
            canvas.rect([30.0, 15.0], [31.0, 16.0], "#000000", 1.0);
        });
        assert_eq!(colour(&pixels, 9, 7), "#ffffff");
        assert_eq!(colour(&pixels, 10, 7), "#000000");
        assert_eq!(bounds(&pixels), [10, 5, 30, 15]);
    }

    #[test]
    fn a_dashed_line_has_gaps() {
        let pen = Pen { width: 2.0, dash: &[5.0, 3.0], ..Pen::thin("#000000") };
        let pixels = drawn(|canvas| canvas.line(&[[0.0, 5.0], [40.0, 5.0]], pen));
        let row: String =
            (0..16).map(|x| if colour(&pixels, x, 5) == "#ffffff" { ' ' } else { '-' }).collect();
        assert_eq!(row, "-----   -----   ");
    }

    #[test]
    fn text_stands_on_its_baseline_at_its_anchor() {
        for (anchor, turned, expected) in [
            // An H of 10 px is 7.5 px wide, of which its stems take the middle 5.6, and 7.3 high.
            (Anchor::Start, false, [21, 7, 26, 14]),
            (Anchor::Middle, false, [17, 7, 22, 14]),
            (Anchor::End, false, [13, 7, 18, 14]),
            (Anchor::Start, true, [12, 8, 19, 13]),
        ] {
            let of = Type { px: 10.0, bold: false, colour: "#000000", anchor };
            let pixels = drawn(|canvas| canvas.text([20.0, 15.0], "H", of, turned));
            assert_eq!(bounds(&pixels), expected, "{anchor:?} {turned}");
        }
    }

    #[test]
    fn bold_text_is_wider_and_missing_glyphs_are_shown() {
        let wide = |words: &str, bold: bool| {
            let of = Type { px: 10.0, bold, colour: "#000000", anchor: Anchor::Start };
            let [left, _, right, _] = bounds(&drawn(|canvas| {
                canvas.text([0.0, 15.0], words, of, false);
            }));
            right.checked_sub(left)
        };
        assert!(wide("mm", true) > wide("mm", false));
        assert_eq!(wide("\u{4e2d}", false), wide("?", false));
        assert_eq!(wide(" ", false), None);
    }

    #[test]
    fn no_drawing_is_made_of_a_bad_size() {
        for size in [[0.0, 10.0], [f64::NAN, 10.0], [1e9, 1e9]] {
            file(&Canvas::default(), size, 1.0).expect_err("no such picture");
        }
    }
}
