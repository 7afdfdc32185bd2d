//! Findings as text: for each analysis a table with sentences, and a headline.

mod buffer;
mod floor;
mod page_boundary;
mod per_call;
mod published;
mod run_order;
mod scaling;
pub mod sheet;
mod size_fit;
mod time_split;

use sheet::Sheet;

use crate::analysis::Finding;

impl Finding {
    /// The finding as a table and sentences.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        match self {
            Finding::SizeFit(of) => of.sheet(),
            Finding::Buffer(of) => of.sheet(),
            Finding::PerCall(of) => of.sheet(),
            Finding::Page(of) => of.sheet(),
            Finding::Split(of) => of.sheet(),
            Finding::Scaling(of) => of.sheet(),
            Finding::Order(of) => of.sheet(),
            Finding::Floor(of) => of.sheet(),
            Finding::Published(of) => of.sheet(),
        }
    }

    /// What it found in a clause; none where the table is all that it says.
    #[must_use]
    pub fn headline(&self) -> Option<String> {
        match self {
            Finding::Buffer(of) => of.headline(),
            Finding::PerCall(of) => of.headline(),
            Finding::Page(of) => of.headline(),
            Finding::Scaling(of) => of.headline(),
            Finding::Order(of) => of.headline(),
            Finding::SizeFit(_) | Finding::Split(_) | Finding::Floor(_) | Finding::Published(_) => {
                None
            }
        }
    }
}
