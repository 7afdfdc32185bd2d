//! Rows under a figure, sortable by what the cells are worth and readable by what they say.

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it holds.
    pub title: String,
    /// The heads of its columns, with units.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<Entry>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Words.
    Words(String),
    /// A number, and how it is shown.
    Number {
        /// By which it sorts, and as which it is copied.
        value: f64,
        /// As it is shown.
        shown: String,
    },
    /// Nothing known.
    Nothing,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(title: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Table { title: title.to_owned(), columns, rows: Vec::new() }
    }
}

impl Entry {
    /// Words.
    #[must_use]
    pub fn words(text: &str) -> Entry {
        Entry::Words(text.to_owned())
    }

    /// A time in nanoseconds.
    #[must_use]
    pub fn ns(value: Option<f64>) -> Entry {
        Entry::number(value, lab::words::nanoseconds)
    }

    /// A number of bytes.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Bytes are not negative.
    pub fn bytes(value: Option<f64>) -> Entry {
        Entry::number(value, |value| lab::words::bytes(value.round() as u64))
    }

    /// A number of no unit.
    #[must_use]
    pub fn count(value: Option<f64>) -> Entry {
        Entry::number(value, |value| lab::words::grouped(&format!("{value:.0}")))
    }

    /// A ratio or another number that has three digits.
    #[must_use]
    pub fn digits(value: Option<f64>) -> Entry {
        Entry::number(value, lab::words::three_digits)
    }

    fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Entry {
        match value {
            Some(value) => Entry::Number { value, shown: show(value) },
            None => Entry::Nothing,
        }
    }

    /// As people read it.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Entry::Words(text) => text,
            Entry::Number { shown, .. } => shown,
            Entry::Nothing => "",
        }
    }
}
