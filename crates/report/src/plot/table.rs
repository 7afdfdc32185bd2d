//! The rows under a figure. Each cell has a text, and a value by which it sorts.

/// A table.
pub type Table = lab::studies::sheet::Table<Entry>;

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
}

impl AsRef<str> for Entry {
    /// The text that is shown.
    fn as_ref(&self) -> &str {
        match self {
            Entry::Words(text) => text,
            Entry::Number { shown, .. } => shown,
            Entry::Nothing => "",
        }
    }
}
