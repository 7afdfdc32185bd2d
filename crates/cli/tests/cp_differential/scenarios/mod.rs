//! Trees and command lines, written by hand: each line is run in each tree of its table.

use super::run::Case;

mod attributes;
mod bytes;
mod existing;
mod names;
mod targets;
mod trees;
mod usage;

/// Every line in every tree.
pub(crate) struct Table {
    pub(crate) trees: &'static [&'static str],
    pub(crate) lines: &'static [&'static str],
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    let tables = [
        usage::TABLES,
        targets::TABLES,
        existing::TABLES,
        trees::TABLES,
        attributes::TABLES,
        bytes::TABLES,
        names::TABLES,
    ];
    tables.into_iter().flatten().flat_map(Table::cases).collect()
}

impl Table {
    fn cases(&self) -> impl Iterator<Item = Case> {
        self.trees.iter().flat_map(|tree| {
            self.lines
                .iter()
                .map(|line| Case { tree: (*tree).to_owned(), line: (*line).to_owned() })
        })
    }
}
