//! The variants that one worker has started between one pair of file systems.

use std::sync::Arc;

use engines::profile::Residency;
use engines::{Chain, Variant};

use super::profile_lines::{LineChoice, ProfileLines};
use super::profiles::EngineContext;
use super::rule::{EARLY_VARIANTS, RuleVariants, WorkerLoad, read_write};
use crate::fs::Endpoint;
use crate::report::{Chosen, ChosenBy};
use crate::request::Options;

/// The chains of variants between one pair of file systems. Each skips variants that were refused
/// there.
pub(crate) struct VariantChains {
    /// For clones; `None` if they are not wanted.
    pub(crate) clone: Option<Chain>,
    /// For data.
    data: VariantChain,
    /// For the first data of a process, by index in [`EARLY_VARIANTS`].
    early: [Option<VariantChain>; EARLY_VARIANTS.len()],
    /// For a large file that idle workers share.
    split: Option<VariantChain>,
    /// By read(2) and write(2).
    read_write: VariantChain,
    /// The variants of the rule, which also follow a measured one.
    rule: RuleVariants,
    /// The lines of the profiles, once they were read.
    lines: Option<Arc<ProfileLines>>,
    /// For lines that were used.
    measured: Vec<(LineChoice, VariantChain)>,
}

/// A chain, and why it was chosen.
pub(crate) struct VariantChain {
    pub(crate) chain: Chain,
    pub(crate) chosen: Chosen,
    /// It contains `copy_file_range`.
    pub(crate) offloads: bool,
}

/// One of the chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainId {
    Data,
    /// By its index in [`EARLY_VARIANTS`].
    Early(usize),
    Split,
    ReadWrite,
    /// By its index among the lines that were used.
    Measured(usize),
}

/// The properties of a file by which its variant is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Its length.
    pub(crate) bytes: u64,
    /// Its length without holes.
    pub(crate) bytes_to_move: u64,
    /// Its file system may block.
    pub(crate) may_block: bool,
    /// No worker is idle.
    pub(crate) others_busy: bool,
}

impl VariantChains {
    pub(crate) fn new(options: &Options, rule: RuleVariants) -> VariantChains {
        let by = match options.engine {
            Some(_) => ChosenBy::Forced,
            None => ChosenBy::Rule,
        };
        VariantChains {
            clone: rule.clone.clone().map(|variant| Chain::exactly([variant])),
            data: VariantChain::new(rule.data.clone(), by),
            early: [const { None }; EARLY_VARIANTS.len()],
            split: None,
            read_write: VariantChain::new(vec![read_write()], ChosenBy::Rule),
            rule,
            lines: None,
            measured: Vec::new(),
        }
    }

    /// The chain of the profile line for a file; `None` if nothing was measured. `look` finds out
    /// how much of the file is in the page cache.
    pub(crate) fn measured(
        &mut self,
        cx: &EngineContext<'_>,
        (src, dst): (Endpoint<'_>, Endpoint<'_>),
        File { bytes, bytes_to_move, may_block, others_busy }: File,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<ChainId> {
        if self.lines.is_none() && cx.is_worth_reading(bytes_to_move, may_block) {
            self.lines = Some(cx.lines_between(src, dst));
        }
        let lines = self.lines.as_ref()?;
        let load = WorkerLoad { others_busy, jobs: &|| cx.jobs() };
        let choice = lines.choose(bytes, load, &self.rule, look)?;
        let line = lines.line(choice);
        cx.report_stale(line);
        let known = self.measured.iter().position(|(known, _)| *known == choice);
        Some(ChainId::Measured(known.unwrap_or_else(|| {
            let variants = lines.variants(choice, &self.rule);
            self.measured.push((choice, VariantChain::new(variants, line.by.clone())));
            self.measured.len() - 1
        })))
    }

    /// The chain for `bytes` of data if nothing was measured or no profile was read.
    pub(crate) fn by_rule(
        &mut self,
        cx: &EngineContext<'_>,
        bytes: u64,
        others_busy: bool,
    ) -> ChainId {
        let load = WorkerLoad { others_busy, jobs: &|| cx.jobs() };
        if self.lines.is_none()
            && let Some(at) = self.rule.early(bytes)
        {
            let early = || VariantChain::new(self.rule.with_early(at), ChosenBy::Rule);
            self.early[at].get_or_insert_with(early);
            return ChainId::Early(at);
        }
        if !self.rule.splits(bytes, load) {
            return ChainId::Data;
        }
        if self.split.is_none() {
            self.split = Some(VariantChain::new(self.rule.split(cx.jobs()), ChosenBy::Rule));
        }
        ChainId::Split
    }

    /// # Panics
    /// When `id` was not returned by one of the functions above.
    pub(crate) fn get(&mut self, id: ChainId) -> &mut VariantChain {
        match id {
            ChainId::Data => &mut self.data,
            ChainId::Early(at) => self.early[at].as_mut().expect("it was made when it was chosen"),
            ChainId::Split => self.split.as_mut().expect("it was made when it was chosen"),
            ChainId::ReadWrite => &mut self.read_write,
            ChainId::Measured(at) => &mut self.measured[at].1,
        }
    }
}

impl VariantChain {
    fn new(variants: Vec<Variant>, by: ChosenBy) -> VariantChain {
        let offloads = variants.iter().any(|variant| variant.engine.name == "copy_file_range");
        let variant = variants.first().expect("there is always a variant").clone();
        VariantChain { chain: Chain::exactly(variants), chosen: Chosen { variant, by }, offloads }
    }
}
