//! A published sentence, and the comparison that tests it.

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Measure};
use crate::page_cache::state::State;

/// What somebody published about copying, with the comparison of this experiment that tests it: the time of each of
/// `variants` over the time of `than`, in cells of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What it is called on the command line.
    pub name: String,
    /// The sentence, in other words than those that were published.
    pub says: String,
    /// The published ratio or figures.
    pub published: String,
    /// The part with the cells.
    pub part: String,
    /// The variants whose time is compared.
    pub variants: Vec<String>,
    /// The variant that they are compared with.
    pub than: String,
    /// The sizes of the files, among those of the part.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// The size of the files of `than`, if it is another one.
    pub than_size: Option<String>,
    /// The state of the page cache.
    #[serde(default)]
    pub state: State,
    /// Runs at the same time.
    #[serde(default = "one")]
    pub at_once: u32,
    /// What is compared.
    #[serde(default)]
    pub measure: Measure,
    /// The least ratio with which the claim holds.
    pub at_least: Option<f64>,
    /// The greatest ratio with which the claim holds.
    pub at_most: Option<f64>,
}

impl Claim {
    /// Whether files of this size, as in the part, are compared.
    pub fn has_size(&self, size: &str) -> bool {
        self.sizes.iter().chain(&self.than_size).any(|own| own == size)
    }

    /// Whether the claim is about this cell; `size` is one of its sizes.
    pub(crate) fn is_about(&self, cell: &Cell, size: &str) -> bool {
        let bytes = size.parse::<engines::Bytes>().map_or(0, |bytes| bytes.0);
        (cell.file_bytes, cell.state, cell.at_once) == (bytes, self.state, self.at_once)
    }
}

pub(super) fn one() -> u32 {
    1
}
