//! Axes and their units.

use serde::Serialize;

use super::digits::short;

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

/// An axis, as a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// Horizontal.
    X,
    /// Vertical.
    Y,
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
