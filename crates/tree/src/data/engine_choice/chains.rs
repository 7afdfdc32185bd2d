//! The variants that one worker has started between one pair of file systems.

use std::sync::Arc;

use engines::profile::Residency;
use engines::{Chain, Moved, Observer, Pair, Span, Variant};

use super::profiles::{EngineContext, LineChoice, ProfileLines};
use super::rule::{Between, OTHERS, RULE, RowChoice, WorkerLoad, read_write};
use crate::fs::Endpoints;
use crate::report::{Chosen, ChosenBy};

/// The chains of variants between one pair of file systems. Each skips variants that were refused
/// there.
pub(crate) struct VariantChains {
    /// For clones; `None` if they are not wanted.
    pub(crate) clone: Option<Chain>,
    /// By read(2) and write(2).
    read_write: VariantChain,
    between: Between,
    /// The lines of the user's profile, once they were read.
    lines: Option<Arc<ProfileLines>>,
    /// For lines that were used.
    by_line: Vec<(LineChoice, VariantChain)>,
    /// For rows that were used.
    by_row: Vec<(RowChoice, VariantChain)>,
}

/// What copies data, and why it was chosen.
pub(crate) struct VariantChain {
    chain: Chain,
    pub(crate) chosen: Chosen,
    /// The chain contains `copy_file_range`.
    pub(crate) offloads: bool,
}

/// One of the chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainId {
    ReadWrite,
    /// By its index among the lines that were used.
    Line(usize),
    /// By its index among the rows that were used.
    Row(usize),
}

/// The properties of a file by which its variant is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'f> {
    pub(crate) ends: Endpoints<'f>,
    /// The length of the file.
    pub(crate) bytes: u64,
    /// The length of the file without holes.
    pub(crate) bytes_to_move: u64,
    /// One of the file systems may block.
    pub(crate) may_block: bool,
}

impl VariantChains {
    pub(crate) fn new(between: Between) -> VariantChains {
        VariantChains {
            clone: between.clone.clone().map(|variant| Chain::exactly([variant])),
            read_write: VariantChain::new(vec![read_write()], ChosenBy::Rule(OTHERS)),
            between,
            lines: None,
            by_line: Vec::new(),
            by_row: Vec::new(),
        }
    }

    /// The chain of the profile line for a file; `None` if nothing was measured. `look` finds out
    /// how much of the file is in the page cache.
    pub(crate) fn by_line(
        &mut self,
        cx: &EngineContext<'_>,
        File { ends, bytes, bytes_to_move, may_block }: File<'_>,
        load: WorkerLoad<'_>,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<ChainId> {
        if self.lines.is_none() && cx.is_worth_reading(bytes_to_move, may_block) {
            self.lines = Some(cx.lines_between(ends));
        }
        let lines = self.lines.as_ref()?;
        let choice = lines.choose(bytes, load, &self.between, look)?;
        let line = lines.line(choice);
        cx.report_stale(line);
        let known = self.by_line.iter().position(|(known, _)| *known == choice);
        Some(ChainId::Line(known.unwrap_or_else(|| {
            let variants = lines.variants(choice, &self.between);
            let by = ChosenBy::Profile(line.words.clone());
            self.by_line.push((choice, VariantChain::new(variants, by)));
            self.by_line.len() - 1
        })))
    }

    /// Whether `bytes` of data may be shared among workers.
    pub(crate) fn may_share(&self, bytes: u64) -> bool {
        self.between.may_share(bytes)
    }

    /// The chain of the row of the rule for `bytes` of data. `is_absent` finds out whether nothing of the source
    /// is in the page cache; it is called if that matters.
    pub(crate) fn by_rule(
        &mut self,
        bytes: u64,
        load: WorkerLoad<'_>,
        is_absent: &dyn Fn() -> bool,
    ) -> ChainId {
        let choice = self.between.row(bytes, load, is_absent);
        let known = self.by_row.iter().position(|(known, _)| *known == choice);
        ChainId::Row(known.unwrap_or_else(|| {
            let by = match self.between.forced {
                Some(_) => ChosenBy::Forced,
                None => ChosenBy::Rule(RULE[choice.index].condition),
            };
            let variants = self.between.variants(choice);
            self.by_row.push((choice, VariantChain::new(variants, by)));
            self.by_row.len() - 1
        }))
    }

    /// # Panics
    /// When `id` was not returned by one of the functions above.
    pub(crate) fn get(&mut self, id: ChainId) -> &mut VariantChain {
        match id {
            ChainId::ReadWrite => &mut self.read_write,
            ChainId::Line(at) => &mut self.by_line[at].1,
            ChainId::Row(at) => &mut self.by_row[at].1,
        }
    }
}

impl VariantChain {
    fn new(variants: Vec<Variant>, by: ChosenBy) -> VariantChain {
        let offloads = variants.iter().any(|variant| variant.engine.name == "copy_file_range");
        let variant = variants.first().expect("there is always a variant").clone();
        let chain = Chain::exactly(variants);
        VariantChain { chain, chosen: Chosen { variant, by }, offloads }
    }

    /// Copies `span` of a file of which `bytes_before` bytes were copied before.
    pub(crate) fn copy(
        &mut self,
        pair: Pair<'_>,
        (bytes_before, span): (u64, Span),
        observe: &mut Observer<'_>,
    ) -> Moved {
        self.chain.file_after(pair, bytes_before).copy(span, observe)
    }
}
