//! The lines of the user's profile for two file systems, and which of them applies to a file. No file
//! is opened here, so that the same functions predict what a copy will do.

use std::sync::Arc;

use engines::Variant;
use engines::profile::{FileSystems, InFlight, Line, PairChoices, Residency, SizeClass, Table};

use super::rule::{Between, RowChoice, WorkerLoad, is_allowed, may_offload};
use crate::request::Options;

/// The lines for two file systems.
#[derive(Debug, Default)]
pub(crate) struct ProfileLines {
    table: Table,
    usable: Vec<UsableLine>,
}

/// A line that this build can use and the options allow.
#[derive(Debug)]
pub(crate) struct UsableLine {
    variant: Variant,
    /// The file systems and what it is for, in words.
    pub(crate) words: Arc<str>,
    /// The line applies to sources of which nothing is in the page cache.
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
    /// The row of the rule whose variants follow if the line's is refused.
    row: RowChoice,
}

/// The pairs of a profile that fit two file systems, each with what has changed since.
pub(crate) type Fitting<'p> = [(&'p PairChoices, Vec<String>)];

impl ProfileLines {
    /// `pairs` are those of the user's profile for the file systems `found`.
    pub(crate) fn new(options: &Options, pairs: &Fitting<'_>, found: &FileSystems) -> ProfileLines {
        let mut lines: Vec<&Line> = Vec::new();
        let mut usable = Vec::new();
        for (pair, changes) in pairs {
            for line in &pair.lines {
                let Some(variant) = usable_variant(options, line) else { continue };
                let words = [found.in_words(), line.in_words()].join(", ");
                let words = words.trim_end_matches(", ").into();
                let is_for_absent = line.residency == Some(Residency::Absent);
                usable.push(UsableLine { variant, words, is_for_absent, changes: changes.clone() });
                lines.push(line);
            }
        }
        ProfileLines { table: Table::new(&lines, options.no_cache), usable }
    }

    /// The line for a file of `bytes`. `look` finds out how much of it is in the page cache; it is
    /// called if that matters and the file is long enough.
    pub(crate) fn choose(
        &self,
        bytes: u64,
        load: WorkerLoad<'_>,
        between: &Between,
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
            workers => workers.min((load.jobs)()),
        };
        // What was measured is not to be read past the page cache by the rule.
        let row = between.row(bytes, load, &|| false);
        Some(LineChoice { index, workers, row })
    }

    /// The line of `choice`.
    pub(crate) fn line(&self, choice: LineChoice) -> &UsableLine {
        &self.usable[choice.index]
    }

    /// The variants to try, in order: that of the line, then those of the rule.
    pub(crate) fn variants(&self, choice: LineChoice, between: &Between) -> Vec<Variant> {
        let first = self.line(choice).variant.shared_by(choice.workers);
        std::iter::once(first).chain(between.variants(choice.row)).collect()
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
