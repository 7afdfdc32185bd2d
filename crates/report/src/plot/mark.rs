//! Marks: what a panel draws between its axes.

use serde::Serialize;

use super::axis::Along;
use super::digits::{short, short_list, short_one, short_pairs, short_rows};

/// Something drawn.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// As the legend names it.
    pub name: String,
    /// The variant that it is of: its colour, and what the filter of engines looks at. Marks of none
    /// are drawn in the colour of text.
    pub variant: Option<String>,
    /// Whether it stands in the legend.
    pub legend: bool,
    /// Whether it has to be asked for: a click on the legend shows it.
    pub hidden: bool,
    /// What it looks like.
    #[serde(flatten)]
    pub shape: Shape,
}

/// The shapes of marks.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Shape {
    /// A distribution: outline and median. Those of one place stand side by side, and whoever draws
    /// divides the room among those that are shown.
    Violin {
        /// The middle of the room on x.
        #[serde(serialize_with = "short_one")]
        at: f64,
        /// The room: a factor on a logarithmic axis, from its beginning to its end, and a number of
        /// categories on one of these.
        #[serde(serialize_with = "short_one")]
        room: f64,
        /// Values with the share of the half width there, ascending.
        #[serde(serialize_with = "short_pairs")]
        outline: Vec<[f64; 2]>,
        /// The runs themselves where they are too few for a shape; there is no outline then.
        #[serde(serialize_with = "short_list")]
        runs: Vec<f64>,
        /// The median.
        #[serde(serialize_with = "short_one")]
        median: f64,
        /// What to say of it.
        text: String,
    },
    /// Points joined by straight lines.
    Line {
        /// The points.
        #[serde(serialize_with = "short_pairs")]
        points: Vec<[f64; 2]>,
        /// How the line is drawn.
        stroke: Stroke,
    },
    /// Values with intervals.
    Dots {
        /// The dots.
        dots: Vec<Dot>,
        /// Along which axis their intervals lie.
        along: Along,
        /// Hollow ones stand for what is not resolved, or for the second of two kinds.
        hollow: bool,
    },
    /// Many single values, without intervals.
    Cloud {
        /// The points.
        #[serde(serialize_with = "short_pairs")]
        points: Vec<[f64; 2]>,
    },
    /// Horizontal bars, one on the end of the other in the order of the marks.
    Bars {
        /// Category and length.
        #[serde(serialize_with = "short_pairs")]
        bars: Vec<[f64; 2]>,
        /// What to say of each.
        texts: Vec<String>,
        /// How strong their colour is, 0 to 1.
        strength: f32,
        /// Whether the name of the mark stands at each.
        named: bool,
    },
    /// Tiles whose colour stands for a value.
    Heat {
        /// Along x.
        #[serde(serialize_with = "short_list")]
        xs: Vec<f64>,
        /// Along y.
        #[serde(serialize_with = "short_list")]
        ys: Vec<f64>,
        /// A row for each y; no number where nothing was measured.
        #[serde(serialize_with = "short_rows")]
        rows: Vec<Vec<Option<f64>>>,
        /// What the colour stands for.
        label: String,
        /// How colours follow from values.
        scale: Scale,
    },
    /// A line across the panel.
    Rule {
        /// The axis that it cuts.
        cuts: Along,
        /// Where.
        #[serde(serialize_with = "short_one")]
        at: f64,
        /// What it stands for; empty for what the reading tells.
        text: String,
        /// How it is drawn.
        stroke: Stroke,
    },
    /// The buffer from which on calls cost no more than a share ε of what their bytes cost, which is
    /// for the reader to choose: `call_ns` / (ε · `byte_ns`).
    Recommended {
        /// ε before a reader of the page has said another.
        #[serde(serialize_with = "short_one")]
        epsilon: f64,
        /// What a read and a write cost whatever they move.
        #[serde(serialize_with = "short_one")]
        call_ns: f64,
        /// What a byte costs to read and to write.
        #[serde(serialize_with = "short_one")]
        byte_ns: f64,
        /// The lower end of the interval over the value, the same for every ε.
        #[serde(serialize_with = "short")]
        low_share: Option<f64>,
        /// The upper end over the value.
        #[serde(serialize_with = "short")]
        high_share: Option<f64>,
    },
    /// A shaded range across the panel.
    Band {
        /// The axis on which it is a range.
        cuts: Along,
        /// From here.
        #[serde(serialize_with = "short_one")]
        from: f64,
        /// To here.
        #[serde(serialize_with = "short_one")]
        to: f64,
        /// What it stands for.
        text: String,
        /// Whether it tells of something wrong.
        warning: bool,
    },
}

/// How the colour of a tile follows from its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// From 0, pale, to 1, strong.
    Share,
    /// From 1, pale, to four times as much and beyond, strong; by the logarithm.
    FromOne,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stroke {
    /// In the variant's own pattern. On an axis with violins it goes through the middles of theirs.
    Own,
    /// Thin and dotted: a model, not a measurement.
    Fit,
    /// Thin.
    Thin,
}

/// A value with its interval.
#[derive(Clone, Debug, Serialize)]
pub struct Dot {
    /// On x.
    #[serde(serialize_with = "short_one")]
    pub x: f64,
    /// On y.
    #[serde(serialize_with = "short_one")]
    pub y: f64,
    /// The lower end of the interval.
    #[serde(serialize_with = "short")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(serialize_with = "short")]
    pub high: Option<f64>,
    /// What to say of it.
    pub text: String,
}

impl Shape {
    /// A thin vertical line at the ratio 1.
    #[must_use]
    pub fn ratio_one() -> Shape {
        Shape::Rule { cuts: Along::X, at: 1.0, text: String::new(), stroke: Stroke::Thin }
    }

    /// The vertical band of ratios that differ from 1 by at most the share `delta`.
    #[must_use]
    pub fn delta_band(delta: f64) -> Shape {
        let (from, to) = (1.0 / (1.0 + delta), 1.0 + delta);
        Shape::Band { cuts: Along::X, from, to, text: String::new(), warning: false }
    }
}

impl Mark {
    /// A mark of `variant`, in the legend under that name.
    #[must_use]
    pub fn of(variant: &str, shape: Shape) -> Mark {
        Mark {
            name: variant.to_owned(),
            variant: Some(variant.to_owned()),
            legend: true,
            hidden: false,
            shape,
        }
    }

    /// A value of `variant` with a horizontal interval, not in the legend.
    #[must_use]
    pub fn dot(variant: &str, dot: Dot, hollow: bool) -> Mark {
        Mark::of(variant, Shape::Dots { dots: vec![dot], along: Along::X, hollow }).unlisted()
    }

    /// Two values of `variant` and a line between them, not in the legend: `first` is hollow.
    #[must_use]
    pub fn pair(variant: &str, first: Dot, second: Dot) -> [Mark; 3] {
        let points = vec![[first.x, first.y], [second.x, second.y]];
        let line = Shape::Line { points, stroke: Stroke::Thin };
        let line = Mark::of(variant, line).unlisted();
        [line, Mark::dot(variant, first, true), Mark::dot(variant, second, false)]
    }

    /// A mark that belongs to no variant.
    #[must_use]
    pub fn neutral(name: &str, shape: Shape) -> Mark {
        Mark { name: name.to_owned(), variant: None, legend: false, hidden: false, shape }
    }

    /// The same, not in the legend.
    #[must_use]
    pub fn unlisted(self) -> Mark {
        Mark { legend: false, ..self }
    }
}
