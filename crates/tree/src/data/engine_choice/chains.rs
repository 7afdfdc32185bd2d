//! The variants that one worker has started between one pair of file systems.

use std::sync::Arc;

use engines::profile::Residency;
use engines::{Chain, Variant};

use super::profile::{EngineContext, LineChoice, ProfileLines};
use super::rule::{Between, OTHERS, RULE, RowChoice, WorkerLoad, read_write};
use crate::fs::Endpoints;
use crate::report::{Chosen, ChosenBy};

/// The chains of variants between one pair of file systems. Each skips variants that were refused
/// there.
pub(crate) struct VariantChains {
    /// For clones; `None` if they are not wanted.
    pub(crate) clone: Option<Chain>,
    pub(crate) between: Between,
    /// The lines of the user's profile, once they were read.
    lines: Option<Arc<ProfileLines>>,
    /// Those that were used. The first is [`READ_WRITE`].
    used: Vec<(Choice, VariantChain)>,
}

/// Why a chain was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    ReadWrite,
    Line(LineChoice),
    Row(RowChoice),
}

/// What copies data, and why it was chosen.
pub(crate) struct VariantChain {
    pub(crate) chain: Chain,
    pub(crate) chosen: Chosen,
    /// The chain contains `copy_file_range`.
    pub(crate) offloads: bool,
}

/// One of the chains, by its index among those that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainId(usize);

/// The chain of read(2) and write(2).
pub(crate) const READ_WRITE: ChainId = ChainId(0);

impl VariantChains {
    pub(crate) fn new(between: Between) -> VariantChains {
        let read_write = VariantChain::new(vec![read_write()], ChosenBy::Rule(OTHERS));
        VariantChains {
            clone: between.clone.clone().map(|variant| Chain::exactly([variant])),
            between,
            lines: None,
            used: vec![(Choice::ReadWrite, read_write)],
        }
    }

    /// The chain of the profile line for a file of `bytes`; `None` if nothing was measured, or the profile was not read
    /// and is not worth reading. `look` finds out how much of the file is in the page cache.
    pub(crate) fn by_line(
        &mut self,
        cx: &EngineContext<'_>,
        (ends, bytes, is_worth_reading): (Endpoints<'_>, u64, bool),
        load: WorkerLoad<'_>,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<ChainId> {
        if self.lines.is_none() && is_worth_reading {
            self.lines = Some(Arc::new(cx.lines_between(ends)));
        }
        let lines = self.lines.clone()?;
        let choice = lines.choose(bytes, load, &self.between, look)?;
        let line = lines.line(choice);
        cx.report_stale(line);
        Some(self.chain(Choice::Line(choice), |between| {
            (lines.variants(choice, between), ChosenBy::Profile(line.words.clone()))
        }))
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
        self.chain(Choice::Row(choice), |between| {
            let by = match between.forced {
                Some(_) => ChosenBy::Forced,
                None => ChosenBy::Rule(RULE[choice.index].condition),
            };
            (between.variants(choice), by)
        })
    }

    fn chain(
        &mut self,
        choice: Choice,
        make: impl FnOnce(&Between) -> (Vec<Variant>, ChosenBy),
    ) -> ChainId {
        let known = self.used.iter().position(|(known, _)| *known == choice);
        ChainId(known.unwrap_or_else(|| {
            let (variants, by) = make(&self.between);
            self.used.push((choice, VariantChain::new(variants, by)));
            self.used.len() - 1
        }))
    }

    /// # Panics
    /// When `id` is that of other file systems.
    pub(crate) fn get(&mut self, ChainId(at): ChainId) -> &mut VariantChain {
        &mut self.used[at].1
    }
}

impl VariantChain {
    fn new(variants: Vec<Variant>, by: ChosenBy) -> VariantChain {
        let offloads = variants.iter().any(|variant| variant.engine.name == "copy_file_range");
        let variant = variants.first().expect("there is always a variant").clone();
        let chain = Chain::exactly(variants);
        VariantChain { chain, chosen: Chosen { variant, by }, offloads }
    }
}
