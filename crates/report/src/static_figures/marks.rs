//! Draws marks.

use unicode_width::UnicodeWidthStr;

use super::frame::{Frame, INK, SOFT, TEXT_PX, style};
use crate::canvas::{Anchor, Canvas, DOTS, Pen, Type, dashes};
use crate::in_order::distinct;
use crate::palette::{self, Style, Symbol};
use crate::plot::{Along, Dot, Mark, Panel, Scale, Shape, Stroke};
use crate::report::Report;

/// The colour of rounds that the gates found disturbed.
pub(super) const WARNING: &str = "#d55e00";

/// The colour of the strongest tiles, and of the recommended buffer.
pub(super) const STRONG: &str = "#b5451b";

/// Draws the marks of a panel that are shown at first.
pub(super) fn draw(canvas: &mut Canvas, panel: &Panel, frame: &Frame, report: &Report<'_>) {
    let violins: Vec<&str> = violins(panel);
    let mut ends: Vec<(f64, f64)> = Vec::new();
    for mark in panel.marks.iter().filter(|mark| !mark.hidden) {
        let style = style(report, mark.variant.as_deref());
        let colour = style.map_or(SOFT, |style| style.light);
        let middle = |at: f64| dodged(panel, mark, &violins, at);
        match &mark.shape {
            Shape::Violin { at, room, outline, runs, median, .. } => {
                let half = half_width(panel, frame, *room, violins.len());
                let violin =
                    Violin { x: frame.x(middle(*at)), half, outline, runs, median: *median };
                violin.draw(canvas, frame, colour);
            }
            Shape::Line { points, stroke } => {
                let own = *stroke == Stroke::Own;
                let x = |value: f64| if own { middle(value) } else { value };
                let points: Vec<[f64; 2]> =
                    points.iter().map(|[at, y]| [frame.x(x(*at)), frame.y(*y)]).collect();
                canvas.line(&points, pen(colour, *stroke, style));
            }
            Shape::Dots { dots, along, hollow } => {
                for dot in dots {
                    draw_dot(canvas, frame, dot, *along, *hollow, style);
                }
            }
            Shape::Cloud { points } => {
                let symbol = style.map_or(Symbol::Circle, |style| style.symbol);
                for [x, y] in points {
                    canvas.symbol([frame.x(*x), frame.y(*y)], symbol, 1.4, colour, false);
                }
            }
            Shape::Bars { bars, strength, named, .. } => {
                for [row, length] in bars {
                    let from = match ends.iter_mut().find(|(of, _)| of == row) {
                        Some((_, end)) => std::mem::replace(end, *end + length),
                        None => {
                            ends.push((*row, *length));
                            0.0
                        }
                    };
                    let (x0, x1) = (frame.x(from), frame.x(from + length));
                    let (y0, y1) = (frame.y(row - 0.36), frame.y(row + 0.36));
                    let corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
                    canvas.area(&corners, colour, f64::from(*strength), true);
                    if *named {
                        name(canvas, &mark.name, [x0, x1, frame.y(*row)], colour);
                    }
                }
            }
            Shape::Heat { xs, ys, rows, scale, .. } => {
                tiles(canvas, panel, frame, (xs, ys, rows), *scale);
            }
            Shape::Rule { cuts, at, text, stroke } => {
                let width = if text.is_empty() { 0.7 } else { 1.3 };
                let pen = Pen { width, opacity: 0.7, ..pen(colour, *stroke, style) };
                canvas.line(&across(frame, *cuts, *at), pen);
            }
            Shape::Band { cuts, from, to, warning, .. } => {
                let (colour, opacity) = if *warning { (WARNING, 0.15) } else { (INK, band(panel)) };
                let (first, last) = (across(frame, *cuts, *from), across(frame, *cuts, *to));
                canvas.rect(first[0], last[1], colour, opacity);
            }
            Shape::Recommended { epsilon, call_ns, byte_ns, low_share, high_share } => {
                let at = call_ns / (epsilon * byte_ns);
                if let (Some(low), Some(high)) = (low_share, high_share) {
                    let (first, last) =
                        (across(frame, Along::X, at * low), across(frame, Along::X, at * high));
                    canvas.rect(first[0], last[1], INK, 0.1);
                }
                canvas.line(&across(frame, Along::X, at), Pen { width: 1.6, ..Pen::thin(STRONG) });
            }
        }
    }
}

/// Writes a name in its bar, or after it if the bar is too short.
fn name(canvas: &mut Canvas, name: &str, [from, to, y]: [f64; 3], bar: &str) {
    let px = TEXT_PX - 2.0;
    let inside = to - from > name.width() as f64 * px * 0.62 + 8.0;
    let (x, colour) = if inside { (from, palette::ink_on(bar)) } else { (to, INK) };
    let of = Type { px, bold: false, colour, anchor: Anchor::Start };
    canvas.text([x + 4.0, y + px * 0.36], name, of, false);
}

/// Writes the texts of vertical lines, on the side that has room.
pub(super) fn notes(canvas: &mut Canvas, panel: &Panel, frame: &Frame) {
    for mark in panel.marks.iter().filter(|mark| !mark.hidden) {
        let (at, text) = match &mark.shape {
            Shape::Rule { cuts: Along::X, at, text, .. } if !text.is_empty() => (*at, text.clone()),
            Shape::Recommended { epsilon, call_ns, byte_ns, .. } => {
                let at = call_ns / (epsilon * byte_ns);
                let percent = crate::scale::shown(crate::plot::Unit::Ratio, epsilon * 100.0);
                let bytes = crate::scale::shown(crate::plot::Unit::Bytes, at);
                (at, format!("ε {percent} %: {bytes}"))
            }
            _ => continue,
        };
        let far = frame.x.share(at) > 0.55;
        let (anchor, aside) = if far { (Anchor::End, -4.0) } else { (Anchor::Start, 4.0) };
        let of = Type { px: TEXT_PX - 1.6, bold: false, colour: SOFT, anchor };
        canvas.text([frame.x(at) + aside, frame.y1 - 4.0], &text, of, false);
    }
}

fn pen(colour: &'static str, stroke: Stroke, style: Option<&Style>) -> Pen {
    match stroke {
        Stroke::Own => Pen {
            width: 1.4,
            dash: style.map_or(&[][..], |style| dashes(style.dash)),
            ..Pen::thin(colour)
        },
        Stroke::Fit => Pen { dash: DOTS, ..Pen::thin(colour) },
        Stroke::Thin => Pen { opacity: 0.8, ..Pen::thin(colour) },
    }
}

/// The opacity of a band. On an axis of file sizes it is the background of violins, and paler.
fn band(panel: &Panel) -> f64 {
    if panel.x.file_sizes { 0.05 } else { 0.16 }
}

fn across(frame: &Frame, cuts: Along, at: f64) -> [[f64; 2]; 2] {
    match cuts {
        Along::X => [[frame.x(at), frame.y0], [frame.x(at), frame.y1]],
        Along::Y => [[frame.x0, frame.y(at)], [frame.x1, frame.y(at)]],
    }
}

/// The variants that have violins. They share the room at each size.
fn violins(panel: &Panel) -> Vec<&str> {
    let violin = |mark: &&Mark| !mark.hidden && matches!(mark.shape, Shape::Violin { .. });
    distinct(panel.marks.iter().filter(violin).filter_map(|mark| mark.variant.as_deref()))
}

fn room(panel: &Panel) -> Option<f64> {
    panel.marks.iter().find_map(|mark| match &mark.shape {
        Shape::Violin { room, .. } => Some(*room),
        _ => None,
    })
}

/// The middle of a variant's part of the room around `at`.
fn dodged(panel: &Panel, mark: &Mark, violins: &[&str], at: f64) -> f64 {
    let index = violins.iter().position(|name| Some(*name) == mark.variant.as_deref());
    match (index, room(panel)) {
        (Some(index), Some(room)) if panel.x.categories.is_empty() => {
            let share = (index as f64 + 0.5) / violins.len() as f64;
            at / room.sqrt() * room.powf(share)
        }
        _ => at,
    }
}

/// Half the maximum width of a violin, in units of the drawing.
fn half_width(panel: &Panel, frame: &Frame, room: f64, count: usize) -> f64 {
    if panel.x.categories.is_empty() {
        let whole = frame.x(frame.x.low * room) - frame.x(frame.x.low);
        0.47 * whole / count.max(1) as f64
    } else {
        (frame.x(room) - frame.x(0.0)) / 2.0
    }
}

struct Violin<'v> {
    x: f64,
    half: f64,
    outline: &'v [[f64; 2]],
    runs: &'v [f64],
    median: f64,
}

impl Violin<'_> {
    fn draw(&self, canvas: &mut Canvas, frame: &Frame, colour: &'static str) {
        let side = |sign: f64| {
            self.outline
                .iter()
                .map(move |[value, share]| [self.x + sign * self.half * share, frame.y(*value)])
        };
        let points: Vec<[f64; 2]> = side(1.0).chain(side(-1.0).rev()).collect();
        if !points.is_empty() {
            canvas.area(&points, colour, 0.4, true);
        }
        for run in self.runs {
            canvas.symbol([self.x, frame.y(*run)], Symbol::Circle, 1.3, colour, false);
        }
        let (y, tick) = (frame.y(self.median), self.half.clamp(2.0, 5.0));
        let pen = Pen { width: 1.8, ..Pen::thin(colour) };
        canvas.line(&[[self.x - tick, y], [self.x + tick, y]], pen);
    }
}

fn draw_dot(
    canvas: &mut Canvas,
    frame: &Frame,
    dot: &Dot,
    along: Along,
    hollow: bool,
    style: Option<&Style>,
) {
    let colour = style.map_or(INK, |style| style.light);
    let at = [frame.x(dot.x), frame.y(dot.y)];
    if let (Some(low), Some(high)) = (dot.low, dot.high) {
        let pen = Pen { width: 1.2, ..Pen::thin(colour) };
        let place = |value: f64| match along {
            Along::X => [frame.x(value), at[1]],
            Along::Y => [at[0], frame.y(value)],
        };
        canvas.line(&[place(low), place(high)], pen);
        for [x, y] in [place(low), place(high)] {
            match along {
                Along::X => canvas.line(&[[x, y - 2.5], [x, y + 2.5]], pen),
                Along::Y => canvas.line(&[[x - 2.5, y], [x + 2.5, y]], pen),
            }
        }
    }
    canvas.symbol(at, style.map_or(Symbol::Circle, |style| style.symbol), 3.4, colour, hollow);
}

/// The values on both axes, and the rows of tiles.
type Tiles<'t> = (&'t [f64], &'t [f64], &'t [Vec<Option<f64>>]);

fn tiles(
    canvas: &mut Canvas,
    panel: &Panel,
    frame: &Frame,
    (xs, ys, rows): Tiles<'_>,
    scale: Scale,
) {
    let edges = |index: usize| {
        let at = |index: usize| frame.x(xs[index]);
        let before = if index > 0 { at(index - 1) } else { 2.0 * at(0) - at(1.min(xs.len() - 1)) };
        let after = if index + 1 < xs.len() { at(index + 1) } else { 2.0 * at(index) - before };
        ((before + at(index)) / 2.0, (after + at(index)) / 2.0)
    };
    for (row, y) in rows.iter().zip(ys) {
        let (top, bottom) = match panel.y.categories.is_empty() {
            true => (frame.y(*y) - 6.0, frame.y(*y) + 6.0),
            false => (frame.y(y - 0.44), frame.y(y + 0.44)),
        };
        for (index, value) in row.iter().enumerate() {
            let Some(value) = value else { continue };
            let strength = match scale {
                Scale::Share => *value,
                Scale::FromOne => (value.log2() / 2.0).clamp(0.0, 1.0),
            };
            let (left, right) = edges(index);
            canvas.rect([left, top], [right, bottom], STRONG, 0.06 + 0.94 * strength);
        }
    }
}
