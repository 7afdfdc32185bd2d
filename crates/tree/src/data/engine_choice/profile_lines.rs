//! The lines of the profiles for two file systems, and which of them applies to a file. No file is
//! opened here, so that the same functions predict what a copy will do.

use std::sync::Arc;

use engines::Variant;
use engines::profile::{
    Candidate, FileSystems, InFlight, Line, PairChoices, Residency, SizeClass, Table,
};

use super::rule::{self, RuleVariants, WorkerLoad, is_allowed, may_offload};
use crate::report::ChosenBy;
use crate::request::Options;

/// The lines for two file systems.
#[derive(Debug)]
pub(crate) struct ProfileLines {
    table: Table,
    usable: Vec<UsableLine>,
}

/// A line that this build can use and the options allow.
#[derive(Debug)]
pub(crate) struct UsableLine {
    variant: Variant,
    /// Its name in receipts.
    pub(crate) by: ChosenBy,
    /// It applies to sources of which nothing is in the page cache.
    is_for_absent: bool,
    /// What has changed since it was measured, in words.
    pub(crate) changes: Vec<String>,
}

/// The line that applies to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineChoice {
    index: usize,
    /// Workers that share the file.
    workers: usize,
    /// Workers that share it by the rule, whose variants follow if the line's is refused.
    rule_workers: usize,
}

/// The user's lines come before those that are built in.
const OWN: u8 = 0;
const BUILT_IN: u8 = 1;

/// The pairs of a profile that fit two file systems, each with what has changed since.
pub(crate) type Fitting<'p> = [(&'p PairChoices, Vec<String>)];

impl ProfileLines {
    /// `own` are the pairs of the user's profile, for the file systems `found`; the built-in ones
    /// are for types of file systems.
    pub(crate) fn new(
        options: &Options,
        (own, found): (&Fitting<'_>, &FileSystems),
        (built_in, by_type): (&[PairChoices], &FileSystems),
    ) -> ProfileLines {
        let mut lines: Vec<(u8, &Line)> = Vec::new();
        let mut usable = Vec::new();
        let mut add = |rank: u8, pair, found: &FileSystems, changes: &[String]| {
            let pair: &PairChoices = pair;
            for line in &pair.lines {
                let Some(variant) = usable_variant(options, line) else { continue };
                let words = [found.in_words(), line.in_words()].join(", ");
                let words: Arc<str> = words.trim_end_matches(", ").into();
                let by = match rank {
                    OWN => ChosenBy::Profile(words),
                    _ => ChosenBy::BuiltIn(words),
                };
                let is_for_absent = line.residency == Some(Residency::Absent);
                let changes = changes.to_vec();
                usable.push(UsableLine { variant, by, is_for_absent, changes });
                lines.push((rank, line));
            }
        };
        for (pair, changes) in own {
            add(OWN, pair, found, changes);
        }
        for pair in built_in {
            add(BUILT_IN, pair, by_type, &[]);
        }
        let candidates: Vec<Candidate<'_>> =
            lines.into_iter().map(|(rank, line)| Candidate { line, rank }).collect();
        ProfileLines { table: Table::new(&candidates, options.no_cache), usable }
    }

    /// The line for a file of `bytes`. `look` finds out how much of it is in the page cache; it is
    /// called if that matters and the file is long enough.
    pub(crate) fn choose(
        &self,
        bytes: u64,
        load: WorkerLoad<'_>,
        by_rule: &RuleVariants,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<LineChoice> {
        // One worker alone is never idle.
        let several = load.others_busy && (load.jobs)() > 1;
        let in_flight = if several { InFlight::Several } else { InFlight::One };
        let size = SizeClass::of(bytes);
        let asks = size.asks_for_residency() && self.table.asks(size, in_flight);
        let residency = if asks { look() } else { None };
        let index = self.table.get(size, in_flight, residency)?;
        let line = &self.usable[index];
        // A file that is in memory, or in part, must not be read from the medium.
        let is_absent = residency == Some(Residency::Absent);
        if line.is_for_absent && line.variant.reads_past_cache() && !is_absent {
            return None;
        }
        let workers = match line.variant.workers {
            1 => 1,
            _ if load.others_busy => 1,
            // The line was measured with all processors of another machine.
            _ if matches!(line.by, ChosenBy::BuiltIn(_)) => rule::workers((load.jobs)()),
            workers => workers.min((load.jobs)()),
        };
        let rule_workers = if by_rule.splits(bytes, load) { (load.jobs)() } else { 1 };
        Some(LineChoice { index, workers, rule_workers })
    }

    /// The line of `choice`.
    pub(crate) fn line(&self, choice: LineChoice) -> &UsableLine {
        &self.usable[choice.index]
    }

    /// The variants to try, in order: that of the line, then those of the rule.
    pub(crate) fn variants(&self, choice: LineChoice, by_rule: &RuleVariants) -> Vec<Variant> {
        let first = self.line(choice).variant.shared_by(choice.workers);
        let rest = if choice.rule_workers > 1 {
            by_rule.split(choice.rule_workers)
        } else {
            by_rule.data.clone()
        };
        std::iter::once(first).chain(rest).collect()
    }
}

/// The variant of a line, if this build has it and the options allow it. A profile does not decide
/// about clones, nor about copy_file_range(2) where the user has forbidden it.
fn usable_variant(options: &Options, line: &Line) -> Option<Variant> {
    let variant = line.choice.variant()?;
    let fits = match variant.engine.name {
        "reflink" => false,
        "copy_file_range" => may_offload(options),
        _ => true,
    };
    // With `--verify` the source would be read from the medium twice.
    let fits = fits && !(options.verify && !options.no_cache && variant.reads_past_cache());
    (fits && is_allowed(options, &variant)).then_some(variant)
}
