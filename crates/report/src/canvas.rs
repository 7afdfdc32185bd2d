//! The shapes of a drawing. [`crate::static_figures`] makes SVG and PNG of them.

use crate::palette::{Dash, Symbol};

/// The shapes of a drawing, in its own units, from the bottom to the top.
#[derive(Clone, Debug, Default)]
pub(crate) struct Canvas {
    pub(crate) shapes: Vec<Shape>,
}

/// A shape. Its colours are `#rrggbb`.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Words at the place of their anchor on the baseline. Turned words run upwards.
    Text { at: Point, words: String, of: Type, turned: bool },
    /// A line through points.
    Line { points: Vec<Point>, pen: Pen },
    /// A closed outline.
    Area { points: Vec<Point>, fill: &'static str, opacity: f64, edge: Option<Edge> },
    /// A circle around a point.
    Circle { at: Point, radius: f64, fill: &'static str, edge: Edge },
    /// All further shapes are visible only inside the rectangle, until [`Shape::Unclip`].
    Clip { id: String, from: Point, to: Point },
    /// The end of a [`Shape::Clip`].
    Unclip,
}

/// x and y. y grows downwards.
pub(crate) type Point = [f64; 2];

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
pub(crate) struct Pen {
    pub(crate) colour: &'static str,
    pub(crate) width: f64,
    pub(crate) opacity: f64,
    /// The lengths of dashes and gaps in turn; none for a solid line.
    pub(crate) dash: &'static [f32],
}

/// The line around a shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) colour: &'static str,
    pub(crate) width: f64,
}

impl Pen {
    pub(crate) fn thin(colour: &'static str) -> Pen {
        Pen { colour, width: 0.8, opacity: 1.0, dash: &[] }
    }
}

impl Canvas {
    pub(crate) fn text(&mut self, at: Point, words: &str, of: Type, turned: bool) {
        self.shapes.push(Shape::Text { at, words: words.to_owned(), of, turned });
    }

    pub(crate) fn line(&mut self, points: &[Point], pen: Pen) {
        self.shapes.push(Shape::Line { points: points.to_vec(), pen });
    }

    /// A filled outline, with a thin line around it if `edge`.
    pub(crate) fn area(&mut self, points: &[Point], fill: &'static str, opacity: f64, edge: bool) {
        let edge = edge.then_some(Edge { colour: fill, width: 0.6 });
        self.shapes.push(Shape::Area { points: points.to_vec(), fill, opacity, edge });
    }

    pub(crate) fn rect(&mut self, from: Point, to: Point, colour: &'static str, opacity: f64) {
        let [x0, x1] = [from[0].min(to[0]), from[0].max(to[0])];
        let [y0, y1] = [from[1].min(to[1]), from[1].max(to[1])];
        self.area(&[[x0, y0], [x1, y0], [x1, y1], [x0, y1]], colour, opacity, false);
    }

    /// The symbol of an engine with the radius `px`.
    pub(crate) fn symbol(
        &mut self,
        at: Point,
        symbol: Symbol,
        px: f64,
        colour: &'static str,
        hollow: bool,
    ) {
        let fill = if hollow { "#ffffff" } else { colour };
        let edge = Edge { colour, width: 1.0 };
        if symbol == Symbol::Circle {
            self.shapes.push(Shape::Circle { at, radius: px, fill, edge });
            return;
        }
        let [x, y] = at;
        let points =
            corners(symbol).into_iter().map(|[dx, dy]| [x + px * dx, y + px * dy]).collect();
        self.shapes.push(Shape::Area { points, fill, opacity: 1.0, edge: Some(edge) });
    }

    pub(crate) fn clip(&mut self, id: &str, from: Point, to: Point) {
        self.shapes.push(Shape::Clip { id: id.to_owned(), from, to });
    }

    pub(crate) fn unclip(&mut self) {
        self.shapes.push(Shape::Unclip);
    }
}

/// A dotted line.
pub(crate) const DOTS: &[f32] = &[1.5, 2.0];

/// A pattern as the lengths of dashes and gaps.
pub(crate) fn dashes(dash: Dash) -> &'static [f32] {
    match dash {
        Dash::Solid => &[],
        Dash::Dash => &[5.0, 3.0],
        Dash::Dot => DOTS,
        Dash::DashDot => &[5.0, 2.0, 1.5, 2.0],
        Dash::LongDash => &[9.0, 3.0],
        Dash::LongDashDot => &[9.0, 2.0, 1.5, 2.0],
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
