//! What the samples of a part come to besides comparisons, without I/O: one file an analysis. Each
//! is data for `verdict.json`, and a [`Sheet`] for whoever reads.

pub mod buffer;
pub mod floor;
pub mod order;
pub mod page;
pub mod per_call;
pub mod scaling;
mod sheet;
pub mod size_fit;
pub mod split;
#[cfg(test)]
pub(super) mod synthetic;
pub mod then_and_now;
pub mod view;

use serde::{Deserialize, Serialize};

pub use sheet::Sheet;
use view::View;

use super::definition::Analysis;
use crate::stats::{Ratio, models};

/// One analysis of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "analysis", rename_all = "snake_case")]
pub enum Finding {
    /// Time against file size.
    SizeFit(size_fit::SizeFit),
    /// Where a larger buffer gains nothing.
    Buffer(buffer::Buffer),
    /// What single calls cost, and the buffer that keeps it small.
    PerCall(per_call::PerCall),
    /// Files around the size of a page.
    Page(page::Page),
    /// Processor time and waiting.
    Split(split::Split),
    /// Time against workers and runs at once.
    Scaling(scaling::Scaling),
    /// What the order of runs would have made of it.
    Order(order::OrderOfRuns),
    /// Time against a copy in memory.
    Floor(floor::Floor),
    /// Published figures beside these.
    ThenAndNow(then_and_now::ThenAndNow),
}

/// A value with its 95 % interval, where that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// The value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// The analyses of the part with this index in `views`: those that it asks for, as far as the samples
/// allow, and published figures where it names some.
#[must_use]
pub fn findings(views: &[View<'_>], index: usize) -> Vec<Finding> {
    let view = &views[index];
    let mut findings = Vec::new();
    for analysis in &view.part.analyses {
        findings.extend(match analysis {
            Analysis::SizeFit => size_fit::of(view).map(Finding::SizeFit),
            Analysis::Buffer => buffer::of(view).map(Finding::Buffer),
            Analysis::PerCall => per_call::of(view).map(Finding::PerCall),
            Analysis::Page => page::of(view).map(Finding::Page),
            Analysis::Split => split::of(view).map(Finding::Split),
            Analysis::Scaling => scaling::of(view).map(Finding::Scaling),
            Analysis::Order => {
                let others: Vec<&View<'_>> =
                    views.iter().filter(|other| other.part.name != view.part.name).collect();
                order::of(view, &others).map(Finding::Order)
            }
            Analysis::Floor => floor::of(view).map(Finding::Floor),
        });
    }
    findings.extend(then_and_now::of(view).map(Finding::ThenAndNow));
    findings
}

impl Finding {
    /// It as a table and sentences.
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
            Finding::ThenAndNow(of) => of.sheet(),
        }
    }
}

impl Finding {
    /// What it found in a clause; none where the table is all that it says.
    #[must_use]
    pub fn headline(&self) -> Option<String> {
        match self {
            Finding::Buffer(of) => of.headline(),
            Finding::PerCall(of) => of.headline(),
            Finding::Page(of) => of.headline(),
            Finding::Scaling(of) => of.headline(),
            Finding::Order(of) => of.headline(),
            Finding::SizeFit(_)
            | Finding::Split(_)
            | Finding::Floor(_)
            | Finding::ThenAndNow(_) => None,
        }
    }
}

impl Estimated {
    /// In words that `word` finds for a value: `1.2 (1.1 to 1.3)`.
    pub(crate) fn in_words(&self, word: impl Fn(f64) -> String) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!("{} ({} to {})", word(self.value), word(low), word(high))
            }
            _ => word(self.value),
        }
    }
}

impl From<models::Estimate> for Estimated {
    fn from(of: models::Estimate) -> Estimated {
        let interval = of.interval;
        Estimated { value: of.value, low: interval.map(|i| i.low), high: interval.map(|i| i.high) }
    }
}

impl From<Ratio> for Estimated {
    fn from(of: Ratio) -> Estimated {
        let interval = of.interval;
        Estimated { value: of.estimate, low: Some(interval.low), high: Some(interval.high) }
    }
}
