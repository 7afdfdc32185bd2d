//! Figures as plain data, made once and drawn three times: on the page, as SVG, and in a terminal.
//!
//! A figure is groups of panels; a panel is two axes and marks. Whoever draws knows these shapes and
//! nothing of experiments, so that all drawings of a figure agree.

use serde::Serialize;

use content::Content;
pub use digits::shortened;
use digits::{short, short_list, short_one, short_pairs, short_rows};

use crate::summary::Summary;
use crate::table::Table;

pub mod buffer;
pub mod cache;
pub mod change;
pub mod concurrency;
mod content;
mod digits;
pub mod drift;
pub mod order;
pub mod page_boundary;
pub mod per_call;
pub mod ratio;
pub mod size;
pub mod split;
pub mod then_and_now;
pub mod tuning;

/// Makes a figure; `None` when the runs have no data for it.
pub type Make = fn(&[Summary<'_>]) -> Option<Figure>;

/// Every figure, in the order in which they stand on the page.
pub const ALL: &[Make] = &[
    size::figure,
    ratio::figure,
    buffer::figure,
    page_boundary::figure,
    per_call::figure,
    split::figure,
    cache::figure,
    concurrency::figure,
    order::figure,
    drift::figure,
    then_and_now::figure,
];

/// The share ε that calls may add to what their bytes cost, unless a reader wants another.
pub const EPSILON: f64 = 0.01;

/// A picture with what a reader needs in order to read it.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// A short name: part of file names and of links.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// How to read it: what marks and intervals mean.
    pub reading: String,
    /// What marks mean whatever they are of.
    pub keys: Vec<Key>,
    /// Panels that belong together, each group with a title of its own.
    pub groups: Vec<Group>,
    /// What is left out or to be kept in mind, in sentences.
    pub notes: Vec<String>,
    /// The figures as rows.
    #[serde(skip)]
    pub tables: Vec<Table>,
}

/// A look and what it means.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    /// The look.
    pub look: Look,
    /// What it means.
    pub text: String,
}

/// Looks that mean the same in whatever colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// A full symbol.
    Full,
    /// A hollow one.
    Hollow,
    /// A bar in full colour.
    Strong,
    /// A bar in weaker colour.
    Medium,
    /// A bar in the weakest colour.
    Pale,
    /// A shaded range.
    Band,
    /// A range in the colour of warnings.
    Warning,
    /// A line across.
    Rule,
    /// A line along.
    Line,
    /// A dotted line.
    Fit,
    /// Tiles, from pale to strong.
    Tiles,
}

impl Key {
    fn new(look: Look, text: &str) -> Key {
        Key { look, text: text.to_owned() }
    }
}

/// Panels side by side. Those of a group have one vertical axis in common.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What the panels have in common.
    pub title: String,
    /// The panels.
    pub panels: Vec<Panel>,
    /// How high a panel is, which its content knows best.
    pub height: Height,
}

/// The height of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Height {
    /// A line of text for each category of the vertical axis.
    Rows,
    /// That of a plot of two quantities.
    Plot,
    /// About half of it.
    Strip,
}

/// Two axes and what is drawn between them.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    /// What tells it from the other panels of its group; empty when it is alone.
    pub title: String,
    /// What it shows in a sentence, for those who do not see it.
    pub alt: String,
    /// What filters look at.
    pub facets: Facets,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, from back to front.
    pub marks: Vec<Mark>,
}

/// What a panel is about, as far as all of it is about the same. A filter leaves out panels about
/// something else, and none where this is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facets {
    /// Bytes of one file.
    pub file_bytes: Option<u64>,
    /// The state of the page cache.
    pub state: Option<&'static str>,
    /// The file system.
    pub file_system: Option<String>,
}

/// An axis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Axis {
    /// What is measured along it, without the unit.
    pub label: String,
    /// In what.
    pub unit: Unit,
    /// Whether equal factors are equally far apart.
    pub log: bool,
    /// Names in place of numbers: a value is then an index, and may lie between two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Category>,
    /// Whether values are lengths of files, which the filter of sizes looks at.
    pub file_sizes: bool,
    /// A value that the axis has to reach, 0 for bars; no number for none.
    #[serde(serialize_with = "short")]
    pub reach: Option<f64>,
}

/// A name on an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Category {
    /// As shown.
    pub label: String,
    /// The variant that it stands for, where it is one.
    pub variant: Option<String>,
}

/// Units of axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A number of something, or a category.
    #[default]
    Count,
    /// Nanoseconds.
    Ns,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// One quantity over another.
    Ratio,
}

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

/// An axis, as a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// Horizontal.
    X,
    /// Vertical.
    Y,
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

impl Axis {
    /// Times, on a logarithmic axis.
    #[must_use]
    pub fn time(label: &str) -> Axis {
        Axis { label: label.to_owned(), unit: Unit::Ns, log: true, ..Axis::default() }
    }

    /// Lengths of files, on a logarithmic axis.
    #[must_use]
    pub fn file_sizes() -> Axis {
        let label = "file size".to_owned();
        Axis { label, unit: Unit::Bytes, log: true, file_sizes: true, ..Axis::default() }
    }

    /// Ratios, on a logarithmic axis.
    #[must_use]
    pub fn ratio(label: &str) -> Axis {
        let label = label.to_owned();
        Axis { label, unit: Unit::Ratio, log: true, reach: Some(1.0), ..Axis::default() }
    }

    /// Lengths of buffers, on a logarithmic axis.
    #[must_use]
    pub fn buffers() -> Axis {
        let label = "buffer".to_owned();
        Axis { label, unit: Unit::Bytes, log: true, ..Axis::default() }
    }

    /// Names that stand for no variant.
    #[must_use]
    pub fn names(label: &str, names: impl IntoIterator<Item = String>) -> Axis {
        let categories = names.into_iter().map(|label| Category { label, variant: None });
        let label = label.to_owned();
        Axis { label, categories: categories.collect(), ..Axis::default() }
    }

    /// Variants by their names.
    #[must_use]
    pub fn variants<'v>(variants: impl IntoIterator<Item = &'v str>) -> Axis {
        let category =
            |name: &str| Category { label: name.to_owned(), variant: Some(name.to_owned()) };
        Axis { categories: variants.into_iter().map(category).collect(), ..Axis::default() }
    }
}
