//! Axes and their units.

/// An axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The quantity, without the unit.
    pub label: String,
    /// The unit.
    pub unit: Unit,
    /// Whether the scale is logarithmic.
    pub log: bool,
    /// Names in place of numbers, such as those of variants. A value is then an index into these, and may
    /// be a fraction.
    pub categories: Vec<String>,
    /// Whether the values are file sizes, to which the filter of sizes applies.
    pub file_sizes: bool,
    /// A value that the axis has to include, such as 0 for bars.
    pub reach: Option<f64>,
}

/// Units of axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A plain number, or a category.
    #[default]
    Count,
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// One quantity divided by another.
    Ratio,
}

/// The direction of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Horizontal.
    X,
    /// Vertical.
    Y,
}

impl Axis {
    /// Times, on a logarithmic axis.
    pub fn time(label: &str) -> Axis {
        Axis { label: label.to_owned(), unit: Unit::Ns, log: true, ..Axis::default() }
    }

    /// File sizes, on a logarithmic axis.
    pub fn file_sizes() -> Axis {
        let label = "file size".to_owned();
        Axis { label, unit: Unit::Bytes, log: true, file_sizes: true, ..Axis::default() }
    }

    /// Ratios, on a logarithmic axis.
    pub fn ratio(label: &str) -> Axis {
        let label = label.to_owned();
        Axis { label, unit: Unit::Ratio, log: true, reach: Some(1.0), ..Axis::default() }
    }

    /// A quantity from zero on, on a linear axis.
    pub fn amount(label: &str, unit: Unit) -> Axis {
        Axis { label: label.to_owned(), unit, reach: Some(0.0), ..Axis::default() }
    }

    /// Buffer sizes, on a logarithmic axis.
    pub fn buffers() -> Axis {
        let label = "buffer".to_owned();
        Axis { label, unit: Unit::Bytes, log: true, ..Axis::default() }
    }

    /// Names in place of numbers.
    pub fn names(label: &str, names: impl IntoIterator<Item = String>) -> Axis {
        let label = label.to_owned();
        Axis { label, categories: names.into_iter().collect(), ..Axis::default() }
    }

    /// Variants by their names.
    pub fn variants(variants: &[&str]) -> Axis {
        Axis::names("", variants.iter().copied().map(str::to_owned))
    }
}
