//! A table with a title and sentences, and the units of its cells.

use crate::definition::cell::Destination;
use crate::definition::deltas::Deltas;
use crate::page_cache::state::State;

/// Rows below the heads of their columns. `C` is a cell of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table<C> {
    /// What it shows.
    pub title: String,
    /// The heads of the columns, with units.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<C>>,
}

/// The head of a column, and what the column has of an item.
pub type Column<'c, T, C> = (&'c str, &'c dyn Fn(&T) -> C);

impl<C> Table<C> {
    /// A table with a row for each of `items`.
    pub fn of<T>(
        title: &str,
        items: impl IntoIterator<Item = T>,
        columns: &[Column<'_, T, C>],
    ) -> Table<C> {
        let row = |item: T| columns.iter().map(|(_, cell)| cell(&item)).collect();
        Table {
            title: title.to_owned(),
            columns: columns.iter().map(|&(head, _)| head.to_owned()).collect(),
            rows: items.into_iter().map(row).collect(),
        }
    }
}

/// A table with sentences below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    /// The table.
    pub table: Table<String>,
    /// So many of the first columns identify a row.
    pub key_columns: usize,
    /// What it means.
    pub sentences: Vec<String>,
}

impl Sheet {
    /// A table with a row for each of `items`, which the first `key_columns` columns identify.
    pub(crate) fn of<T>(
        title: &str,
        key_columns: usize,
        items: impl IntoIterator<Item = T>,
        columns: &[Column<'_, T, String>],
    ) -> Sheet {
        Sheet { table: Table::of(title, items, columns), key_columns, sentences: Vec::new() }
    }

    /// Takes the column called `name` away when it says the same in every row.
    pub(crate) fn drop_if_uniform(&mut self, name: &str) {
        let Some(at) = self.table.columns.iter().position(|column| column == name) else { return };
        let mut pairs = self.table.rows.windows(2);
        self.drop_if(pairs.all(|pair| pair[0][at] == pair[1][at]), name);
    }

    /// Takes the column called `name` away if it `is_idle`.
    pub(crate) fn drop_if(&mut self, is_idle: bool, name: &str) {
        let Table { columns, rows, .. } = &mut self.table;
        if let Some(at) = columns.iter().position(|column| column == name).filter(|_| is_idle) {
            columns.remove(at);
            self.key_columns -= usize::from(at < self.key_columns);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }

    /// Adds a sentence.
    pub(crate) fn say(&mut self, sentence: impl Into<String>) {
        self.sentences.push(sentence.into());
    }
}

/// The longest number of bytes that is read at a glance.
const DIGITS_MAX: usize = 6;

/// Bytes in the shortest exact form, as in an experiment: `64K`; where that is long, about as many.
pub(crate) fn size(bytes: u64) -> String {
    let exact = engines::Bytes(bytes).to_string();
    if exact.len() > DIGITS_MAX { crate::words::bytes(bytes) } else { exact }
}

/// A time that may be a fraction of a nanosecond, or less than nothing when it is too small to see.
pub(crate) fn cost(ns: f64) -> String {
    match ns.abs() {
        abs if abs < 0.0005 => "0 ns".to_owned(),
        abs if abs < 9.995 => format!("{ns:.3} ns"),
        abs if abs < 999.5 => format!("{ns:.0} ns"),
        _ if ns < 0.0 => format!("-{}", crate::words::nanoseconds(-ns)),
        _ => crate::words::nanoseconds(ns),
    }
}

/// Nanoseconds a byte as the rate that they are: `3.2 GB/s`.
pub(crate) fn rate(ns_per_byte: f64) -> String {
    if ns_per_byte <= 0.0 {
        return "too fast to tell".to_owned();
    }
    match 1.0 / ns_per_byte {
        rate if rate >= 0.9995 => format!("{} GB/s", crate::words::three_digits(rate)),
        rate => format!("{} MB/s", crate::words::three_digits(rate * 1e3)),
    }
}

/// A share in percent: `+3.4 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// A share in percent without more digits than it has: `2`, `0.5`.
pub(crate) fn plain_percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// δ in percent, or one for each state.
pub fn in_both_states(deltas: Deltas) -> String {
    let [warm, cold] = [deltas.warm, deltas.cold].map(plain_percent);
    match warm == cold {
        true => format!("{warm} %"),
        false => format!("{warm} % warm and {cold} % cold"),
    }
}

/// What tells a group of cells from others: the state, and how many at once where that is several.
pub fn circumstances(state: State, at_once: u32) -> String {
    match at_once {
        1 => state.name().to_owned(),
        many => format!("{}, {many} at once", state.name()),
    }
}

/// The circumstances of cells that differ in what stood at the destination.
pub(crate) fn written_to(destination: Destination, state: State, at_once: u32) -> String {
    let state = circumstances(state, at_once);
    match destination {
        Destination::Fresh => state,
        Destination::Overwritten => format!("{state}, overwritten"),
    }
}
