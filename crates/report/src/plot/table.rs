//! The rows under a figure. Each cell has a text, and a value by which it sorts.

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The headings of its columns, with units.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<Entry>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Words.
    Words(String),
    /// A number and its text.
    Number {
        /// By which it sorts, and which CSV has.
        value: f64,
        /// Its text.
        shown: String,
    },
    /// No value.
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

    /// A number without a unit.
    #[must_use]
    pub fn count(value: Option<f64>) -> Entry {
        Entry::number(value, |value| lab::words::grouped(&format!("{value:.0}")))
    }

    /// A number with three significant digits, such as a ratio.
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

    /// The text that is shown.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Entry::Words(text) => text,
            Entry::Number { shown, .. } => shown,
            Entry::Nothing => "",
        }
    }
}
