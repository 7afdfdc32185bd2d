//! Draws marks.

use super::frame::{Frame, in_xml, percent, units};
use crate::palette::{Style, Styles};
use crate::plot::{Along, Dot, Mark, Panel, Shape, Stroke, Unit, Violin};
use crate::scale::{Range, shown};

/// The marks of a panel.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// Ranges, bars and straight lines.
    pub(super) back: String,
    /// Outlines and curves, which are stretched with the panel.
    pub(super) stretched: String,
    /// Symbols and words.
    pub(super) front: String,
}

/// Draws the marks of a panel.
pub(super) fn draw(panel: &Panel, frame: &Frame, styles: &Styles) -> Layers {
    let mut all: [Vec<(String, String)>; 3] = Default::default();
    let mut ends: Vec<(f64, f64)> = Vec::new();
    for mark in &panel.marks {
        let style = mark.variant.as_ref().and_then(|variant| styles.get(variant));
        let mut pen = Pen { panel, frame, mark, style, own: Layers::default() };
        pen.draw(&mut ends);
        let bar = if matches!(mark.shape, Shape::Bar { .. }) { " bar" } else { "" };
        let variant = style.map_or("\"".to_owned(), |style| {
            format!(" e{}\" data-v=\"{}\"", style.row, style.number)
        });
        let hidden = if mark.hidden { " display=\"none\"" } else { "" };
        let attributes = format!("class=\"mark{bar}{variant}{hidden}");
        let own = [pen.own.back, pen.own.stretched, pen.own.front];
        for (layer, own) in all.iter_mut().zip(own).filter(|(_, own)| !own.is_empty()) {
            // Marks that look alike are one element.
            match layer.last_mut().filter(|(last, _)| *last == attributes) {
                Some((_, marks)) => marks.push_str(&own),
                None => layer.push((attributes.clone(), own)),
            }
        }
    }
    let joined = |layer: Vec<(String, String)>| {
        layer
            .into_iter()
            .map(|(attributes, marks)| format!("<g {attributes}>{marks}</g>"))
            .collect()
    };
    let [back, stretched, front] = all.map(joined);
    Layers { back, stretched, front }
}

/// Draws one mark.
struct Pen<'p> {
    panel: &'p Panel,
    frame: &'p Frame,
    mark: &'p Mark,
    style: Option<&'p Style>,
    own: Layers,
}

impl Pen<'_> {
    fn draw(&mut self, ends: &mut Vec<(f64, f64)>) {
        match &self.mark.shape {
            Shape::Violin(violin) => self.violin(violin),
            Shape::Line { points, stroke } => self.line(points, *stroke),
            Shape::Dots { dots, along, hollow } => {
                dots.iter().for_each(|dot| self.dot(dot, *along, *hollow));
            }
            Shape::Cloud { points } => {
                let mut path = RelativePath::default();
                for [x, y] in points {
                    path.push('m', self.place(*x, *y));
                    path.text.push_str("h0");
                }
                self.own.stretched += &format!("<path class=\"cloud\" d=\"{}\"/>", path.text);
            }
            Shape::Bar { row, length, text, strength, named } => {
                let from = match ends.iter_mut().find(|(of, _)| of == row) {
                    Some((_, end)) => std::mem::replace(end, *end + length),
                    None => {
                        ends.push((*row, *length));
                        0.0
                    }
                };
                self.bar(*row, [from, from + length], text, *strength);
                if *named {
                    self.name(*row);
                }
            }
            Shape::Heat { xs, rows } => self.tiles(xs, rows),
            Shape::Rule { at, text } => {
                let class = if text.is_empty() { "faint" } else { "rule" };
                self.own.back += &self.across(*at, &format!("{class}{}", self.dash()));
                if !text.is_empty() {
                    let note = self.note(*at, text);
                    self.own.front.push_str(&note);
                }
            }
            Shape::Band { from, to, text, warning } => {
                self.own.back += &self.band([*from, *to], *warning);
                if !text.is_empty() {
                    let middle = (self.frame.share(*from) + self.frame.share(*to)) / 2.0;
                    self.own.front += &format!(
                        "<use class=\"flag\" href=\"#flag\" x=\"{}\" data-t=\"{}\"/>",
                        percent(middle),
                        in_xml(text)
                    );
                }
            }
            Shape::Recommended { epsilon, product, shares } => {
                self.recommended(*epsilon, *product, *shares);
            }
        }
    }

    /// A place in units.
    fn place(&self, x: f64, y: f64) -> [f64; 2] {
        [self.frame.share(x) * self.frame.width, self.frame.y(y)]
    }

    /// The attribute by which the filter of sizes hides a mark.
    fn size(&self, at: f64) -> String {
        if self.panel.x.file_sizes { format!(" data-b=\"{at:.0}\"") } else { String::new() }
    }

    /// The words that a mark shows under the pointer, without the name of the variant if they begin
    /// with it: the script of the page adds it.
    fn words(&self, text: &str) -> String {
        let name = self.style.and(self.mark.variant.as_deref());
        let rest = name.and_then(|name| text.strip_prefix(name));
        in_xml(rest.filter(|rest| rest.starts_with([':', ','])).unwrap_or(text))
    }

    /// The class of the pattern of lines.
    fn dash(&self) -> String {
        match self.style {
            Some(style) if style.dash > 0 => format!(" d{}", style.dash),
            _ => String::new(),
        }
    }

    fn violin(&mut self, violin: &Violin) {
        let Violin { size, middle, width, outline, runs, median, text } = violin;
        let size = self.size(*size);
        let across = self.frame.x;
        let whole = match across.log {
            true => across.share(across.low * width),
            false => across.share(*width) - across.share(0.0),
        };
        let half = whole / 2.0 * self.frame.width;
        let side = |sign: f64| -> Vec<[f64; 2]> {
            let of = |[value, share]: &[f64; 2]| {
                let [x, y] = self.place(*middle, *value);
                [x + sign * half * share, y]
            };
            outline.iter().map(of).collect()
        };
        let points = [side(1.0), side(-1.0).into_iter().rev().collect()].concat();
        if !points.is_empty() {
            let path = path(&points);
            self.own.stretched += &format!("<path class=\"violin\"{size} d=\"{path}z\"/>");
        }
        let x = self.frame.x(*middle);
        for run in runs {
            let y = units(self.frame.y(*run));
            self.own.front +=
                &format!("<use class=\"run\" href=\"#run\" x=\"{x}\" y=\"{y}\"{size}/>");
        }
        let (y, text) = (units(self.frame.y(*median)), self.words(text));
        self.own.front += &format!(
            "<use class=\"median\" href=\"#median\" x=\"{x}\" y=\"{y}\"{size} data-t=\"{text}\"/>"
        );
    }

    fn line(&mut self, points: &[[f64; 2]], stroke: Stroke) {
        let class = match stroke {
            Stroke::Own => format!("line{}", self.dash()),
            Stroke::Fit => "fit".to_owned(),
            Stroke::Thin => "thin".to_owned(),
        };
        if let [[x1, y1], [x2, y2]] = *points {
            let [x1, x2] = [x1, x2].map(|x| self.frame.x(x));
            let [y1, y2] = [y1, y2].map(|y| units(self.frame.y(y)));
            self.own.back += &format!(
                "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
            );
            return;
        }
        let points: Vec<[f64; 2]> = points.iter().map(|[x, y]| self.place(*x, *y)).collect();
        self.own.stretched += &format!("<path class=\"{class}\" d=\"{}\"/>", path(&points));
    }

    fn dot(&mut self, dot: &Dot, along: Along, hollow: bool) {
        let (x, y) = (self.frame.x(dot.x), units(self.frame.y(dot.y)));
        if let Some((low, high)) = dot.interval {
            let (x1, x2, y1, y2) = match along {
                Along::X => (self.frame.x(low), self.frame.x(high), y.clone(), y.clone()),
                Along::Y => {
                    let [y1, y2] = [low, high].map(|value| units(self.frame.y(value)));
                    (x.clone(), x.clone(), y1, y2)
                }
            };
            self.own.front += &format!(
                "<line class=\"interval\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
            );
        }
        let hollow = if hollow { " hollow" } else { "" };
        let (symbol, text) = (self.style.map_or(0, |style| style.row), self.words(&dot.text));
        self.own.front += &format!(
            "<use class=\"dot{hollow}\" href=\"#s{symbol}\" x=\"{x}\" y=\"{y}\" data-t=\"{text}\"/>"
        );
    }

    fn bar(&mut self, row: f64, [from, to]: [f64; 2], text: &str, strength: f32) {
        let [first, last] = [from, to].map(|value| self.frame.share(value));
        let [top, bottom] = [row - 0.36, row + 0.36].map(|row| self.frame.y(row));
        if last <= first {
            return;
        }
        let words = self.words(text);
        self.own.back += &format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill-opacity=\"{strength}\" \
             data-t=\"{words}\"/>",
            percent(first),
            units(top),
            percent(last - first),
            units(bottom - top),
        );
    }

    /// The name of the mark, from the beginning of its bar on.
    fn name(&mut self, row: f64) {
        let (y, name) =
            (units(self.frame.y(row)), in_xml(self.mark.variant.as_deref().unwrap_or_default()));
        self.own.front +=
            &format!("<text class=\"named\" x=\"0\" y=\"{y}\" dx=\"4\" dy=\"3.5\">{name}</text>");
    }

    fn tiles(&mut self, xs: &[f64], rows: &[Vec<Option<f64>>]) {
        let unit = self.panel.x.unit;
        let at = |index: usize| self.frame.share(xs[index]);
        let edges = |index: usize| {
            let [last, one] = [xs.len() - 1, 1.min(xs.len() - 1)];
            let before = if index > 0 { at(index - 1) } else { 2.0 * at(0) - at(one) };
            let after = if index < last { at(index + 1) } else { 2.0 * at(index) - before };
            [(before + at(index)) / 2.0, (after + at(index)) / 2.0]
        };
        for (place, (row, category)) in rows.iter().zip(&self.panel.y.categories).enumerate() {
            let [top, bottom] =
                [place as f64 - 0.44, place as f64 + 0.44].map(|row| self.frame.y(row));
            let [top, high] = [top, bottom - top].map(units);
            self.own.back.push_str("<g class=\"hot\">");
            for (index, value) in row.iter().enumerate() {
                let Some(value) = value else { continue };
                let strength = 0.06 + 0.94 * (value.log2() / 2.0).clamp(0.0, 1.0);
                let [left, right] = edges(index);
                let text = format!(
                    "{}, {}: {} × the best",
                    category,
                    shown(unit, xs[index]),
                    shown(Unit::Ratio, *value)
                );
                self.own.back += &format!(
                    "<rect x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{high}\" \
                     fill-opacity=\"{strength:.2}\" data-t=\"{}\"/>",
                    percent(left),
                    percent(right - left),
                    in_xml(&text)
                );
            }
            self.own.back.push_str("</g>");
        }
    }

    /// A line across the panel.
    fn across(&self, at: f64, class: &str) -> String {
        let x = self.frame.x(at);
        format!("<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y2=\"100%\"/>")
    }

    /// The words beside a vertical line, on the side that has room.
    fn note(&self, at: f64, text: &str) -> String {
        let (class, aside) = match self.frame.share(at) {
            share if share > 0.55 => ("note before", -4),
            _ => ("note", 4),
        };
        format!(
            "<text class=\"{class}\" x=\"{}\" y=\"100%\" dx=\"{aside}\" dy=\"-4\">{}</text>",
            self.frame.x(at),
            in_xml(text)
        )
    }

    /// A shaded range.
    fn band(&self, [from, to]: [f64; 2], warning: bool) -> String {
        let class = match (warning, self.panel.x.file_sizes) {
            (true, _) => "warning",
            // The ground of violins.
            (false, true) => "slot",
            (false, false) => "band",
        };
        let size = self.size((from * to).sqrt());
        let [first, last] = [from, to].map(|value| self.frame.share(value));
        let [x, width] = [first, (last - first).max(0.0)].map(percent);
        format!("<rect class=\"{class}\" x=\"{x}\" width=\"{width}\" height=\"100%\"{size}/>")
    }

    /// The recommended buffer, `product` / ε. The script of the page moves it for another ε.
    fn recommended(&mut self, epsilon: f64, product: f64, shares: Option<(f64, f64)>) {
        let at = product / epsilon;
        let Range { low, high, .. } = self.frame.x;
        let interval = shares.map(|(low, high)| self.band([at * low, at * high], false));
        let percent = shown(Unit::Ratio, epsilon * 100.0);
        let text = format!("ε {percent} %: {}", shown(Unit::Bytes, at));
        self.own.front += &format!(
            "<svg class=\"recommended\" width=\"100%\" height=\"100%\" overflow=\"visible\" \
             data-epsilon=\"{epsilon}\" data-product=\"{product:.4}\" data-share=\"{:.4}\" \
             data-decades=\"{:.4}\">{}{}{}</svg>",
            self.frame.share(at),
            (high / low).log10(),
            interval.unwrap_or_default(),
            self.across(at, "strong"),
            self.note(at, &text)
        );
    }
}

/// A path through points.
fn path(points: &[[f64; 2]]) -> String {
    let mut path = RelativePath::default();
    points.iter().for_each(|point| path.push('l', *point));
    path.text
}

/// Path data whose points are relative to the point before, which takes few digits.
#[derive(Debug, Default)]
struct RelativePath {
    text: String,
    /// The last point, in tenths of a unit.
    last: Option<[f64; 2]>,
}

impl RelativePath {
    /// Goes on to `point` with `command`, or begins there.
    fn push(&mut self, command: char, point: [f64; 2]) {
        // Rounded before the difference is taken, so that no error adds up.
        let point = point.map(|value| (value * 10.0).round());
        let (command, from) = match self.last.replace(point) {
            Some(last) => (command, last),
            None => ('M', [0.0, 0.0]),
        };
        let [x, y] = [point[0] - from[0], point[1] - from[1]].map(|value| units(value / 10.0));
        let between = if y.starts_with('-') { "" } else { " " };
        self.text += &format!("{command}{x}{between}{y}");
    }
}
