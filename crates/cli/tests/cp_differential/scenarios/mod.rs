//! Trees and command lines, written by hand: each line is run in each tree of its table.

use super::run::{Case, Persona};

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

/// Those that `persona` runs.
pub(crate) fn of(persona: Persona) -> Vec<Case> {
    let tables =
        [targets::TABLES, existing::TABLES, trees::TABLES, attributes::TABLES, bytes::TABLES];
    // How words are read and names are written does not depend on the user.
    let words = [usage::TABLES, names::TABLES];
    let words = words.into_iter().filter(|_| persona == Persona::Oneself);
    tables.into_iter().chain(words).flatten().flat_map(Table::cases).collect()
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
