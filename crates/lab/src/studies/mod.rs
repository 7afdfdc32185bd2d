//! The analyses of a part beside its comparisons, one file a study: from samples to a finding, and
//! the finding as a table and sentences. A finding is data for `verdict.json`.

pub mod buffer;
pub mod floor;
pub mod page_boundary;
pub mod per_call;
pub mod published;
pub mod run_order;
pub mod scaling;
pub mod sheet;
pub mod size_fit;
pub mod time_split;

use serde::{Deserialize, Serialize};

use crate::analysis::View;
use crate::definition::Analysis;
use sheet::Sheet;
use size_fit::FittedLine;
use time_split::Parts;

/// One analysis of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "analysis", rename_all = "snake_case")]
pub enum Finding {
    /// Time against file size. States and numbers at once have lines of their own: cold and warm are
    /// never mixed.
    SizeFit {
        /// Each variant in each state.
        lines: Vec<FittedLine>,
    },
    /// Where a larger buffer gains nothing.
    Buffer(buffer::Buffer),
    /// What single calls cost, and the buffer that keeps it small.
    PerCall(per_call::PerCall),
    /// Files around the size of a page.
    Page(page_boundary::Page),
    /// Processor time and waiting.
    Split {
        /// Each variant in each cell: medians of its runs.
        parts: Vec<Parts>,
    },
    /// How the rate grows with the number of workers, or of runs at once.
    Scaling {
        /// Each variant with each number.
        steps: Vec<scaling::Step>,
    },
    /// What the order of runs would have made of it.
    Order(run_order::OrderOfRuns),
    /// Time against a copy in memory.
    Floor(floor::Floor),
    /// Published figures beside these.
    #[serde(rename = "then_and_now")]
    Published(published::Published),
}

/// The analyses of the part with this index in `views`: those that it asks for, as far as the
/// samples allow, and published figures where it names some.
pub fn findings(views: &[View<'_>], index: usize) -> Vec<Finding> {
    let view = &views[index];
    let mut findings = Vec::new();
    for analysis in &view.part.analyses {
        findings.extend(match analysis {
            Analysis::SizeFit => size_fit::of(view).map(|lines| Finding::SizeFit { lines }),
            Analysis::Buffer => buffer::of(view).map(Finding::Buffer),
            Analysis::PerCall => per_call::of(view).map(Finding::PerCall),
            Analysis::Page => page_boundary::of(view).map(Finding::Page),
            Analysis::Split => time_split::of(view).map(|parts| Finding::Split { parts }),
            Analysis::Scaling => scaling::of(view).map(|steps| Finding::Scaling { steps }),
            Analysis::Order => run_order::of(view, views).map(Finding::Order),
            Analysis::Floor => floor::of(view).map(Finding::Floor),
        });
    }
    findings.extend(published::of(view).map(Finding::Published));
    findings
}

impl Finding {
    /// The finding as a table and sentences.
    pub fn sheet(&self) -> Sheet {
        match self {
            Finding::SizeFit { lines } => size_fit::sheet(lines),
            Finding::Buffer(of) => of.sheet(),
            Finding::PerCall(of) => of.sheet(),
            Finding::Page(of) => of.sheet(),
            Finding::Split { parts } => time_split::sheet(parts),
            Finding::Scaling { steps } => scaling::sheet(steps),
            Finding::Order(of) => of.sheet(),
            Finding::Floor(of) => of.sheet(),
            Finding::Published(of) => of.sheet(),
        }
    }

    /// What it found in a clause; none where the table is all that it says.
    pub fn headline(&self) -> Option<String> {
        match self {
            Finding::Buffer(of) => of.headline(),
            Finding::PerCall(of) => of.headline(),
            Finding::Page(of) => of.headline(),
            Finding::Scaling { steps } => scaling::headline(steps),
            Finding::Order(of) => of.headline(),
            _ => None,
        }
    }
}
