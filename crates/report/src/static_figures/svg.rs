//! Writes a canvas as SVG. Text stays text.

use std::fmt::{self, Write};

use crate::canvas::{Anchor, Canvas, Edge, Pen, Point, Shape, Type};
use crate::escape::escaped;

/// The complete file. `mm` is its width on paper; `size` is width and height in units of the drawing.
pub(super) fn file(canvas: &Canvas, title: &str, mm: f64, [px, high]: [f64; 2]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{mm}mm\" height=\"{:.1}mm\" viewBox=\"0 0 {px} \
         {high:.0}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{px}\" height=\"{high:.0}\" fill=\"#ffffff\"/>\n",
        mm * high / px,
        in_xml(title),
    );
    for shape in &canvas.shapes {
        // A string takes everything that is written to it.
        let _ = write_shape(&mut svg, shape);
    }
    svg.push_str("</svg>\n");
    svg
}

fn write_shape(svg: &mut String, shape: &Shape) -> fmt::Result {
    match shape {
        Shape::Text { at, words, of, turned } => write_text(svg, *at, words, *of, *turned),
        Shape::Line { points, pen } => write_line(svg, points, *pen),
        Shape::Area { points, fill, opacity, edge } => {
            // The corners of a symbol are opaque.
            let opacity = match opacity {
                1.0 => String::new(),
                opacity => format!(" fill-opacity=\"{opacity}\""),
            };
            let edge = edge.map_or(String::new(), edge_attributes);
            writeln!(
                svg,
                "<polygon points=\"{}\" fill=\"{fill}\"{opacity}{edge}/>",
                in_attribute(points)
            )
        }
        Shape::Circle { at: [x, y], radius, fill, edge } => writeln!(
            svg,
            "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius}\" fill=\"{fill}\"{}/>",
            edge_attributes(*edge)
        ),
        Shape::Clip { id, from, to } => writeln!(
            svg,
            "<clipPath id=\"{id}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath>\
             <g clip-path=\"url(#{id})\">",
            from[0],
            from[1],
            to[0] - from[0],
            to[1] - from[1]
        ),
        Shape::Unclip => writeln!(svg, "</g>"),
    }
}

fn write_text(svg: &mut String, [x, y]: Point, words: &str, of: Type, turned: bool) -> fmt::Result {
    let anchor = match of.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let weight = if of.bold { " font-weight=\"bold\"" } else { "" };
    let turn =
        if turned { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}{turn}>{}</text>",
        of.px,
        of.colour,
        in_xml(words)
    )
}

fn write_line(svg: &mut String, points: &[Point], pen: Pen) -> fmt::Result {
    let dash = if pen.dash.is_empty() {
        String::new()
    } else {
        let lengths: Vec<String> = pen.dash.iter().map(f32::to_string).collect();
        format!(" stroke-dasharray=\"{}\"", lengths.join(" "))
    };
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\"{dash}/>",
        in_attribute(points),
        pen.colour,
        pen.width,
        pen.opacity
    )
}

fn edge_attributes(edge: Edge) -> String {
    format!(" stroke=\"{}\" stroke-width=\"{}\"", edge.colour, edge.width)
}

fn in_attribute(points: &[Point]) -> String {
    let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
    points.join(" ")
}

/// Text for XML.
fn in_xml(text: &str) -> String {
    escaped(&visible(text))
}

/// `text` without control characters, which XML cannot contain, not even escaped.
pub(super) fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
