//! The lines of profiles that copies between two file systems may go by, and which of them a file does.
//! No file is opened here, so that what a copy will do can be told before it is made.

use std::sync::Arc;

use engines::Variant;
use engines::profile::{
    Candidate, FileSystems, InFlight, Line, PairChoices, Residency, SizeClass, Table,
};

use crate::choice::{self, Hands, Ways, may_offload};
use crate::options::Options;
use crate::receipt::ChosenBy;

/// The lines that fit two file systems.
#[derive(Debug)]
pub(crate) struct Lines {
    table: Table,
    usable: Vec<UsableLine>,
}

/// One that this build can use, and the options allow.
#[derive(Debug)]
pub(crate) struct UsableLine {
    variant: Variant,
    /// Why a copy goes by it.
    pub(crate) by: ChosenBy,
    /// It says that it holds for sources of which nothing is in the page cache.
    is_for_absent: bool,
    /// What is no longer as it was when it was measured, in words.
    pub(crate) changes: Vec<String>,
}

/// The line that a file goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    index: usize,
    /// Workers that share the file.
    workers: usize,
    /// Workers that share it by the rule, whose ways follow where the line's is refused.
    by_rule: usize,
}

/// The user's lines come before those that are built in.
const OWN: u8 = 0;
const BUILT_IN: u8 = 1;

/// What a profile says of two file systems: pairs that fit, each with what has changed since.
pub(crate) type Fitting<'p> = [(&'p PairChoices, Vec<String>)];

impl Lines {
    /// Those of the user's `own` profile, which tells file systems apart as well as can be, and those
    /// that are built in, which tell them apart by type.
    pub(crate) fn new(
        options: &Options,
        (own, found): (&Fitting<'_>, &FileSystems),
        (built_in, by_type): (&[PairChoices], &FileSystems),
    ) -> Lines {
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
        Lines { table: Table::new(&candidates, options.no_cache), usable }
    }

    /// The line for a file of `bytes`; `look` finds out how much of it is in the page cache, where that
    /// matters and the file is long enough for the question.
    pub(crate) fn pick(
        &self,
        bytes: u64,
        hands: Hands<'_>,
        rule: &Ways,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<Pick> {
        // One worker alone is never idle.
        let several = hands.others_busy && (hands.jobs)() > 1;
        let in_flight = if several { InFlight::Several } else { InFlight::One };
        let size = SizeClass::of(bytes);
        let asks = size.asks_for_residency() && self.table.asks(size, in_flight);
        let residency = if asks { look() } else { None };
        let index = self.table.get(size, in_flight, residency)?;
        let line = &self.usable[index];
        // What is read past the page cache for being absent would be read from the medium although it
        // is in memory, or much of it.
        let is_absent = residency == Some(Residency::Absent);
        if line.is_for_absent && line.variant.reads_past_cache() && !is_absent {
            return None;
        }
        let workers = match line.variant.workers {
            1 => 1,
            _ if hands.others_busy => 1,
            // Those were all the processors of another machine.
            _ if matches!(line.by, ChosenBy::BuiltIn(_)) => choice::workers((hands.jobs)()),
            workers => workers.min((hands.jobs)()),
        };
        let by_rule = if rule.are_shared(bytes, hands) { (hands.jobs)() } else { 1 };
        Some(Pick { index, workers, by_rule })
    }

    /// The line of `pick`.
    pub(crate) fn line(&self, pick: Pick) -> &UsableLine {
        &self.usable[pick.index]
    }

    /// What is tried by it, one after another: behind it come the ways of the rule.
    pub(crate) fn ways(&self, pick: Pick, rule: &Ways) -> Vec<Variant> {
        let first = self.line(pick).variant.shared_by(pick.workers);
        let rest = if pick.by_rule > 1 { rule.shared(pick.by_rule) } else { rule.data.clone() };
        std::iter::once(first).chain(rest).collect()
    }
}

/// The variant of a line, if this build has it and the options leave it to be chosen: whether blocks
/// are shared is not up to a profile, nor is the kernel to copy where the user has said that it is not.
fn usable_variant(options: &Options, line: &Line) -> Option<Variant> {
    let variant = line.choice.variant()?;
    let fits = match variant.engine.name {
        "reflink" => false,
        "copy_file_range" => may_offload(options),
        _ => true,
    };
    // Whoever compares the copy with its source would have that read from the medium twice.
    let fits = fits && !(options.verify && !options.no_cache && variant.reads_past_cache());
    fits.then_some(variant)
}
