//! Writes the elements of an SVG file. Text stays text.

use std::fmt::Write;

use crate::escape::escaped;
use crate::palette::{Dash, Symbol};

/// An SVG file to which elements are added.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
}

/// The point of a text that is placed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How text looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    pub(crate) px: f64,
    pub(crate) bold: bool,
    pub(crate) colour: &'static str,
    pub(crate) anchor: Anchor,
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pen<'c> {
    pub(crate) colour: &'c str,
    pub(crate) width: f64,
    pub(crate) opacity: f64,
    pub(crate) dash: &'static str,
}

impl<'c> Pen<'c> {
    pub(crate) fn thin(colour: &'c str) -> Pen<'c> {
        Pen { colour, width: 0.8, opacity: 1.0, dash: "" }
    }
}

impl Svg {
    pub(crate) fn text(&mut self, [x, y]: [f64; 2], words: &str, of: Type, turned: bool) {
        let anchor = match of.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if of.bold { " font-weight=\"bold\"" } else { "" };
        let turn = if turned {
            format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"")
        } else {
            String::new()
        };
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}{turn}>{}</text>",
            of.px,
            of.colour,
            in_xml(words)
        );
    }

    pub(crate) fn line(&mut self, points: &[[f64; 2]], pen: Pen<'_>) {
        let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
        let dash = match pen.dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        let _ = writeln!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\"{dash}/>",
            points.join(" "),
            pen.colour,
            pen.width,
            pen.opacity
        );
    }

    /// A filled outline, with a thin line around it if `edge`.
    pub(crate) fn area(&mut self, points: &[[f64; 2]], colour: &str, opacity: f64, edge: bool) {
        let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
        let edge =
            if edge { format!(" stroke=\"{colour}\" stroke-width=\"0.6\"") } else { String::new() };
        let _ = writeln!(
            self.body,
            "<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"{opacity}\"{edge}/>",
            points.join(" ")
        );
    }

    pub(crate) fn rect(&mut self, from: [f64; 2], to: [f64; 2], colour: &str, opacity: f64) {
        let [x0, x1] = [from[0].min(to[0]), from[0].max(to[0])];
        let [y0, y1] = [from[1].min(to[1]), from[1].max(to[1])];
        self.area(&[[x0, y0], [x1, y0], [x1, y1], [x0, y1]], colour, opacity, false);
    }

    /// The symbol of an engine with the radius `px`.
    pub(crate) fn symbol(
        &mut self,
        at: [f64; 2],
        symbol: Symbol,
        px: f64,
        colour: &str,
        hollow: bool,
    ) {
        let fill = if hollow { "#ffffff" } else { colour };
        let [x, y] = at;
        if symbol == Symbol::Circle {
            let _ = writeln!(
                self.body,
                "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{px}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1\"/>"
            );
            return;
        }
        let points: Vec<String> = corners(symbol)
            .into_iter()
            .map(|[dx, dy]| format!("{:.2},{:.2}", x + px * dx, y + px * dy))
            .collect();
        let _ = writeln!(
            self.body,
            "<polygon points=\"{}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1\"/>",
            points.join(" ")
        );
    }

    /// Clips all further elements to the rectangle, until [`Svg::unclip`].
    pub(crate) fn clip(&mut self, id: &str, from: [f64; 2], to: [f64; 2]) {
        let _ = writeln!(
            self.body,
            "<clipPath id=\"{id}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath>\
             <g clip-path=\"url(#{id})\">",
            from[0],
            from[1],
            to[0] - from[0],
            to[1] - from[1]
        );
    }

    pub(crate) fn unclip(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// The complete file. `mm` is its width on paper; `px` and `high` are its width and height in
    /// its own units.
    pub(crate) fn finish(self, title: &str, mm: f64, px: f64, high: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{mm}mm\" height=\"{:.1}mm\" viewBox=\"0 0 {px} \
             {high:.0}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" role=\"img\">\n<title>{}</title>\n\
             <rect width=\"{px}\" height=\"{high:.0}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            mm * high / px,
            in_xml(title),
            self.body
        )
    }
}

/// Text for XML, which cannot contain control characters, not even escaped.
fn in_xml(text: &str) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    escaped(&text.chars().map(visible).collect::<String>())
}

/// A pattern as the value of `stroke-dasharray`.
pub(crate) fn dashes(dash: Dash) -> &'static str {
    match dash {
        Dash::Solid => "",
        Dash::Dash => "5 3",
        Dash::Dot => "1.5 2",
        Dash::DashDot => "5 2 1.5 2",
        Dash::LongDash => "9 3",
        Dash::LongDashDot => "9 2 1.5 2",
    }
}

/// The corners of a symbol of radius 1 around the origin.
fn corners(symbol: Symbol) -> Vec<[f64; 2]> {
    let regular = |count: u32, turn: f64, radius: fn(u32) -> f64| -> Vec<[f64; 2]> {
        (0..count)
            .map(|index| {
                let angle = std::f64::consts::TAU * (f64::from(index) / f64::from(count) + turn);
                [radius(index) * angle.sin(), -radius(index) * angle.cos()]
            })
            .collect()
    };
    let plain = |_: u32| 1.15;
    let plus = vec![
        [-0.4, -1.1],
        [0.4, -1.1],
        [0.4, -0.4],
        [1.1, -0.4],
        [1.1, 0.4],
        [0.4, 0.4],
        [0.4, 1.1],
        [-0.4, 1.1],
        [-0.4, 0.4],
        [-1.1, 0.4],
        [-1.1, -0.4],
        [-0.4, -0.4],
    ];
    match symbol {
        Symbol::Circle => regular(24, 0.0, |_| 1.0),
        Symbol::Square => vec![[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
        Symbol::Diamond => regular(4, 0.0, |_| 1.25),
        Symbol::TriangleUp => regular(3, 0.0, plain),
        Symbol::TriangleDown => regular(3, 0.5, plain),
        Symbol::TriangleRight => regular(3, 0.25, plain),
        Symbol::TriangleLeft => regular(3, 0.75, plain),
        Symbol::Hourglass => vec![[-0.9, -1.0], [0.9, -1.0], [-0.9, 1.0], [0.9, 1.0]],
        Symbol::Pentagon => regular(5, 0.0, plain),
        Symbol::Hexagon => regular(6, 0.0, plain),
        Symbol::Star => regular(10, 0.0, |index| if index % 2 == 0 { 1.3 } else { 0.6 }),
        Symbol::Cross => plus,
        Symbol::X => {
            let turned = |[x, y]: [f64; 2]| {
                let half = std::f64::consts::FRAC_1_SQRT_2;
                [half * (x - y), half * (x + y)]
            };
            plus.into_iter().map(turned).collect()
        }
    }
}
