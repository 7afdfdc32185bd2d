//! Marks: what a panel draws between its axes.

use super::axis::Along;

/// One thing that is drawn.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The variant, which determines the colour, and which the filter of engines compares. A mark without a
    /// variant has the colour of text. The legend names the variants of lines in their own pattern and
    /// of bars with names.
    pub variant: Option<String>,
    /// Whether it is hidden until a click on the legend shows it.
    pub hidden: bool,
    /// What it looks like.
    pub shape: Shape,
}

/// The shapes of marks.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A distribution.
    Violin(Violin),
    /// Points joined by straight lines.
    Line {
        /// The points.
        points: Vec<[f64; 2]>,
        /// How the line is drawn.
        stroke: Stroke,
    },
    /// Values with their intervals.
    Dots {
        /// The dots.
        dots: Vec<Dot>,
        /// The direction of their intervals.
        along: Along,
        /// Whether the symbols are hollow: unresolved, or the second of two kinds.
        hollow: bool,
    },
    /// Many values without intervals.
    Cloud {
        /// The points.
        points: Vec<[f64; 2]>,
    },
    /// A horizontal bar behind those before it in the same row.
    Bar {
        /// The category of y.
        row: f64,
        /// Its length.
        length: f64,
        /// The text of its tooltip.
        text: String,
        /// The opacity of its colour, 0 to 1.
        strength: f32,
        /// Whether it shows the name of the mark.
        named: bool,
    },
    /// Tiles whose colour shows a ratio to the best: from 1 (pale) to 4 and more (strong), by the
    /// logarithm.
    Heat {
        /// The values on x.
        xs: Vec<f64>,
        /// A row for each category of y. `None`: not measured.
        rows: Vec<Vec<Option<f64>>>,
    },
    /// A vertical line across the panel.
    Rule {
        /// Its place on x.
        at: f64,
        /// What it shows. Empty if the text of the figure explains it.
        text: String,
    },
    /// The smallest buffer with which calls cost at most a share ε of what their bytes cost:
    /// `product` / ε. The reader of the page can change ε.
    Recommended {
        /// The initial ε.
        epsilon: f64,
        /// The cost of a read and a write without their bytes, divided by that of reading and writing one
        /// byte.
        product: f64,
        /// The ends of the interval divided by the value, which are the same for every ε.
        shares: Option<(f64, f64)>,
    },
    /// A shaded range of x.
    Band {
        /// Its start.
        from: f64,
        /// Its end.
        to: f64,
        /// What it shows.
        text: String,
        /// Whether it marks a disturbance.
        warning: bool,
    },
}

/// A distribution: outline and median.
#[derive(Clone, Debug)]
pub struct Violin {
    /// The file size.
    pub size: f64,
    /// The middle on x.
    pub middle: f64,
    /// The maximum width: a factor on a logarithmic axis, a number of categories on an axis of
    /// categories.
    pub width: f64,
    /// Values, ascending, each with its share of half the width.
    pub outline: Vec<[f64; 2]>,
    /// The runs, if they are too few for an outline. The outline is empty then.
    pub runs: Vec<f64>,
    /// The median.
    pub median: f64,
    /// The text of the tooltip.
    pub text: String,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// In the pattern of the variant, which the legend has.
    Own,
    /// Thin and dotted: a model, not a measurement.
    Fit,
    /// Thin.
    Thin,
}

/// A value with its interval.
#[derive(Clone, Debug)]
pub struct Dot {
    /// The value on x.
    pub x: f64,
    /// The value on y.
    pub y: f64,
    /// The ends of the interval, if it is known.
    pub interval: Option<(f64, f64)>,
    /// The text of its tooltip.
    pub text: String,
}

impl Dot {
    /// A value without an interval.
    pub fn at(x: f64, y: f64, text: String) -> Dot {
        Dot { x, y, interval: None, text }
    }

    /// The value with its interval, if both ends are known.
    #[must_use]
    pub fn within(self, low: impl Into<Option<f64>>, high: impl Into<Option<f64>>) -> Dot {
        Dot { interval: low.into().zip(high.into()), ..self }
    }
}

impl Shape {
    /// The model `time` from one size to another. A straight line is a curve on logarithmic axes, which
    /// cannot show values below zero.
    pub fn fit([low, high]: [f64; 2], segments: u32, time: impl Fn(f64) -> f64) -> Shape {
        let at = |step: u32| low * (high / low).powf(f64::from(step) / f64::from(segments));
        let points = (0..=segments).map(|step| [at(step), time(at(step))]);
        Shape::Line { points: points.filter(|it| it[1] > 0.0).collect(), stroke: Stroke::Fit }
    }

    /// A vertical line that the text of the figure explains.
    pub fn rule(at: f64) -> Shape {
        Shape::Rule { at, text: String::new() }
    }

    /// A range of x that the text of the figure explains.
    pub fn band(from: f64, to: f64) -> Shape {
        Shape::Band { from, to, text: String::new(), warning: false }
    }

    /// The vertical band of ratios that differ from 1 by at most the share `delta`.
    pub fn delta_band(delta: f64) -> Shape {
        Shape::band(1.0 / (1.0 + delta), 1.0 + delta)
    }
}

impl Mark {
    /// A mark of `variant`.
    pub fn of(variant: &str, shape: Shape) -> Mark {
        Mark { variant: Some(variant.to_owned()), hidden: false, shape }
    }

    /// A value of `variant` with a horizontal interval.
    pub fn dot(variant: &str, dot: Dot, hollow: bool) -> Mark {
        Mark::of(variant, Shape::Dots { dots: vec![dot], along: Along::X, hollow })
    }

    /// Values of `variant` with vertical intervals, and the line through them.
    pub fn joined(variant: &str, dots: Vec<Dot>, stroke: Stroke) -> [Mark; 2] {
        let points = dots.iter().map(|dot| [dot.x, dot.y]).collect();
        let line = Mark::of(variant, Shape::Line { points, stroke });
        let dots = Shape::Dots { dots, along: Along::Y, hollow: false };
        [line, Mark::of(variant, dots)]
    }

    /// A bar of `variant` in a row.
    pub fn bar(variant: &str, row: f64, length: f64, strength: f32, text: String) -> Mark {
        Mark::of(variant, Shape::Bar { row, length, text, strength, named: false })
    }

    /// Two values of `variant` and a line between them: `first` is hollow.
    pub fn pair(variant: &str, first: Dot, second: Dot) -> [Mark; 3] {
        let points = vec![[first.x, first.y], [second.x, second.y]];
        let line = Mark::of(variant, Shape::Line { points, stroke: Stroke::Thin });
        [line, Mark::dot(variant, first, true), Mark::dot(variant, second, false)]
    }

    /// A mark that belongs to no variant.
    pub fn neutral(shape: Shape) -> Mark {
        Mark { variant: None, hidden: false, shape }
    }
}
