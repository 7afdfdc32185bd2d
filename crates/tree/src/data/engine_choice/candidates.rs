//! Whether the copy of a file measures its engines, and among which candidates.

use std::ops::Range;

use engines::{CandidateSet, Variant};

use super::profiles::processors;
use super::rule::{RuleVariants, WorkerLoad, may_offload, workers};
use crate::request::Options;

/// A file with less data is copied by one variant: it takes a fast processor less time than a trial pays for
/// (docs/design/engine-selection.md).
const MEASURED_BYTES_MIN: u64 = 64 << 20;

/// Files of this length are compared across files. The data of a shorter one takes less time than its system calls,
/// and workers may share a longer one.
const ACROSS_FILES_BYTES: Range<u64> = 64 << 10..16 << 20;

/// What the candidates of a file depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    /// The variant of the user's profile, which copies the first piece.
    pub(crate) first: Option<Variant>,
    pub(crate) set: CandidateSet,
}

impl Candidates {
    /// The candidates for `bytes` of a file; `None` if it is copied by one variant. `is_cold` says whether the
    /// source has to be read from storage.
    pub(crate) fn of(
        options: &Options,
        rule: &RuleVariants,
        (bytes, load): (u64, WorkerLoad<'_>),
        first: Option<Variant>,
        is_cold: impl FnOnce() -> bool,
    ) -> Option<Candidates> {
        if !are_measured(options, rule, bytes) {
            return None;
        }
        // With --verify the source is read twice: past the page cache it would come from storage twice.
        let is_cold = is_cold() && !options.verify;
        let may_share_file = rule.may_split && !load.others_busy;
        // More workers than processors gain nothing on one file.
        let most = || workers((load.jobs)()).min(processors().get());
        let workers = if may_share_file { most() } else { 1 };
        let set = CandidateSet { workers, is_cold, may_share: may_offload(options) };
        Some(Candidates { first, set })
    }

    /// The variants, each once. The first copies the first piece.
    pub(crate) fn variants(&self) -> Vec<Variant> {
        let mut variants: Vec<Variant> = self.first.iter().cloned().collect();
        let others = self.set.variants().into_iter();
        variants.extend(others.filter(|variant| Some(variant) != self.first.as_ref()));
        variants
    }

    /// The variant that the lab measures for these candidates.
    pub(crate) fn as_variant(&self) -> Variant {
        let CandidateSet { workers, is_cold, may_share } = self.set;
        let flags = [(is_cold, "cold"), (!may_share, "unshared")];
        let flags: Vec<&str> = flags.iter().filter(|(is_set, _)| *is_set).map(|it| it.1).collect();
        let colon = if flags.is_empty() { "" } else { ":" };
        let text = format!("adaptive{colon}{}", flags.join(","));
        text.parse::<Variant>().expect("the engine is in the table").shared_by(workers)
    }
}

/// Whether `bytes` of a file are enough to measure its engine, and the options leave the choice.
pub(crate) fn are_measured(options: &Options, rule: &RuleVariants, bytes: u64) -> bool {
    bytes >= MEASURED_BYTES_MIN && may_measure(options, rule)
}

/// Whether engines are compared across files of `bytes`, and the options leave the choice.
pub(crate) fn are_compared_across_files(
    options: &Options,
    rule: &RuleVariants,
    bytes: u64,
) -> bool {
    ACROSS_FILES_BYTES.contains(&bytes) && may_measure(options, rule)
}

/// Engines are measured on local file systems only: the rate at which a server takes data into a cache is not the
/// rate of a copy.
fn may_measure(options: &Options, rule: &RuleVariants) -> bool {
    rule.is_local && options.engine.is_none() && !options.no_cache && options.limit_rate.is_none()
}
