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

/// The head of a column, and what the column has of an item.
pub type Column<'c, T> = (&'c str, &'c dyn Fn(&T) -> Entry);

impl Table {
    /// A table with a row for each of `items`.
    pub fn of<T>(
        title: &str,
        items: impl IntoIterator<Item = T>,
        columns: &[Column<'_, T>],
    ) -> Table {
        let row = |item: T| columns.iter().map(|(_, cell)| cell(&item)).collect();
        Table {
            title: title.to_owned(),
            columns: columns.iter().map(|(head, _)| (*head).to_owned()).collect(),
            rows: items.into_iter().map(row).collect(),
        }
    }
}

impl Entry {
    /// Words.
    pub fn words(text: &str) -> Entry {
        Entry::Words(text.to_owned())
    }

    /// A time in nanoseconds.
    pub fn ns(value: impl Into<Option<f64>>) -> Entry {
        Entry::number(value, lab::words::nanoseconds)
    }

    /// A number of bytes.
    pub fn bytes(value: impl Into<Option<f64>>) -> Entry {
        Entry::number(value, lab::words::about_bytes)
    }

    /// A number without a unit.
    pub fn count(value: impl Into<Option<f64>>) -> Entry {
        Entry::number(value, |value| lab::words::grouped(&format!("{value:.0}")))
    }

    /// A number with three significant digits, such as a ratio.
    pub fn digits(value: impl Into<Option<f64>>) -> Entry {
        Entry::number(value, lab::words::three_digits)
    }

    /// A number that is shown as `show` writes it.
    pub fn number(value: impl Into<Option<f64>>, show: impl Fn(f64) -> String) -> Entry {
        match value.into() {
            Some(value) => Entry::Number { value, shown: show(value) },
            None => Entry::Nothing,
        }
    }

    /// The text that is shown.
    pub fn shown(&self) -> &str {
        match self {
            Entry::Words(text) => text,
            Entry::Number { shown, .. } => shown,
            Entry::Nothing => "",
        }
    }
}
