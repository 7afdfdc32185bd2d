//! Figures as plain data: groups of panels, axes and marks.
//!
//! A figure is made once and drawn twice: as SVG, and in a terminal. The code that draws knows these
//! types and nothing of experiments, so all drawings of a figure agree.

mod axis;
mod mark;
mod table;

pub use axis::{Along, Axis, Unit};
pub use mark::{Dot, Mark, Shape, Stroke, Violin};
pub use table::{Entry, Table};

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The texts that are the same for all runs.
    pub about: &'static About,
    /// Panels that belong together, each group with a title of its own.
    pub groups: Vec<Group>,
    /// What is left out, and other warnings, in sentences without the full stop.
    pub notes: Vec<String>,
    /// The same values as rows.
    pub tables: Vec<Table>,
}

/// The texts that explain a figure.
#[derive(Debug)]
pub struct About {
    /// A short name, part of file names and links.
    pub id: &'static str,
    /// What the figure shows.
    pub title: &'static str,
    /// How to read the figure: what the marks and intervals mean.
    pub reading: &'static str,
    /// What looks mean, whichever variant a mark belongs to.
    pub keys: &'static [(Look, &'static str)],
}

/// How a mark looks, apart from its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A filled symbol.
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

/// Panels side by side. Those of a group have one vertical axis in common.
#[derive(Clone, Debug)]
pub struct Group {
    /// What the panels have in common.
    pub title: String,
    /// The panels.
    pub panels: Vec<Panel>,
    /// The height of a panel.
    pub height: Height,
}

impl Group {
    /// Panels with rows. `None` without panels.
    pub fn of_rows(title: String, panels: Vec<Panel>) -> Option<Group> {
        (!panels.is_empty()).then_some(Group { title, panels, height: Height::Rows })
    }
}

/// The height of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Height {
    /// A line of text for each category of the vertical axis.
    Rows,
    /// The height of a plot of two quantities.
    Plot,
    /// About half of that.
    Strip,
}

/// Two axes and what is drawn between them.
#[derive(Clone, Debug)]
pub struct Panel {
    /// How it differs from the other panels of its group. Empty if it is the only one.
    pub title: String,
    /// What it shows, in a sentence, for screen readers.
    pub alt: String,
    /// What the filters of the page compare.
    pub facets: Facets,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, from back to front.
    pub marks: Vec<Mark>,
}

/// The values that all data of a panel has in common. A filter hides panels with another value. It
/// hides no panel whose value is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// The size of one file in bytes.
    pub file_bytes: Option<u64>,
    /// The state of the page cache.
    pub state: Option<&'static str>,
    /// The file system.
    pub file_system: Option<String>,
}
