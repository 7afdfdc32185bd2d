//! The variants that one worker has started between one pair of file systems.

use std::sync::Arc;

use engines::profile::{Residency, SizeClass};
use engines::{AcrossFiles, Adaptive, CandidateSet, Chain, Moved, Observer, Pair, Span, Variant};

use super::candidates::{Candidates, are_compared_across_files, are_measured};
use super::profile_lines::{LineChoice, ProfileLines};
use super::profiles::EngineContext;
use super::rule::{EARLY_VARIANTS, RuleVariants, WorkerLoad, may_offload, read_write};
use crate::fs::Endpoint;
use crate::report::{Chosen, ChosenBy, MeasuredRate};
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
    /// For a large file that some workers share, and their number.
    split: Option<(usize, VariantChain)>,
    /// By read(2) and write(2).
    read_write: VariantChain,
    /// The variants of the rule, which also follow a measured one.
    rule: RuleVariants,
    /// The lines of the profiles, once they were read.
    lines: Option<Arc<ProfileLines>>,
    /// For lines that were used.
    by_line: Vec<(LineChoice, VariantChain)>,
    /// Candidates that are measured during the copy.
    adaptive: Vec<(Candidates, VariantChain)>,
    /// Candidates that are compared across files, by the chain that was chosen otherwise and the class of the
    /// files.
    across_files: Vec<((ChainId, SizeClass), VariantChain)>,
}

/// What copies data, and why it was chosen.
pub(crate) struct VariantChain {
    mover: Mover,
    pub(crate) chosen: Chosen,
    /// It contains `copy_file_range`.
    pub(crate) offloads: bool,
}

enum Mover {
    /// Variants of which the next continues where one is refused.
    Chain(Chain),
    /// Variants of which the fastest is measured.
    Adaptive(Box<Adaptive>),
    /// Variants of which the fastest is measured with whole files.
    AcrossFiles(Box<AcrossFiles>),
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
    Line(usize),
    /// By its index among the candidates that are measured.
    Adaptive(usize),
    /// By its index among the candidates that are compared across files.
    AcrossFiles(usize),
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
            by_line: Vec::new(),
            adaptive: Vec::new(),
            across_files: Vec::new(),
        }
    }

    /// The chain of the profile line for a file; `None` if nothing was measured. `look` finds out
    /// how much of the file is in the page cache.
    pub(crate) fn by_line(
        &mut self,
        cx: &EngineContext<'_>,
        (src, dst): (Endpoint<'_>, Endpoint<'_>),
        File { bytes, bytes_to_move, may_block }: File,
        load: WorkerLoad<'_>,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<ChainId> {
        if self.lines.is_none() && cx.is_worth_reading(bytes_to_move, may_block) {
            self.lines = Some(cx.lines_between(src, dst));
        }
        let lines = self.lines.as_ref()?;
        let choice = lines.choose(bytes, load, &self.rule, look)?;
        let line = lines.line(choice);
        cx.report_stale(line);
        let known = self.by_line.iter().position(|(known, _)| *known == choice);
        Some(ChainId::Line(known.unwrap_or_else(|| {
            let variants = lines.variants(choice, &self.rule);
            self.by_line.push((choice, VariantChain::new(variants, line.by.clone())));
            self.by_line.len() - 1
        })))
    }

    /// Whether `bytes` of data may be split among workers.
    pub(crate) fn may_split(&self, bytes: u64) -> bool {
        self.rule.may_split(bytes)
    }

    /// Whether `bytes` of data are enough to measure their engine.
    pub(crate) fn measures(&self, options: &Options, bytes: u64) -> bool {
        are_measured(options, &self.rule, bytes)
    }

    /// The candidates that are measured with `bytes` of data; `None` if one chain copies them. `line` is
    /// the chain of the profile line for the file, and `look` finds out how much of it is in the page cache.
    pub(crate) fn adaptive(
        &mut self,
        cx: &EngineContext<'_>,
        (bytes, load): (u64, WorkerLoad<'_>),
        line: Option<ChainId>,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<ChainId> {
        // The built-in profile was measured on other machines.
        let is_own = |chosen: &&Chosen| matches!(chosen.by, ChosenBy::Profile(_));
        let own = line.map(|line| &self.get(line).chosen).filter(is_own);
        let own = own.map(|chosen| chosen.variant.clone());
        // That a measurement was the best says nothing about the first candidate.
        let first = own.filter(|variant| variant.engine.name != "adaptive");
        // A source that is in the page cache in part, or of which that is unknown, is read through it.
        let is_cold = || look() == Some(Residency::Absent);
        let candidates = Candidates::of(cx.options, &self.rule, (bytes, load), first, is_cold)?;
        let known = self.adaptive.iter().position(|(known, _)| *known == candidates);
        let at = known.unwrap_or_else(|| {
            let chain = VariantChain::adaptive(&candidates);
            self.adaptive.push((candidates, chain));
            self.adaptive.len() - 1
        });
        if let Mover::Adaptive(adaptive) = &mut self.adaptive[at].1.mover {
            adaptive.start_file();
        }
        Some(ChainId::Adaptive(at))
    }

    /// The candidates that are compared across files for `bytes` of data, of which `chain`, the chain that was
    /// chosen otherwise, is the first; else `chain`. Before profiles are read there are no trials.
    pub(crate) fn across_files(
        &mut self,
        options: &Options,
        chain: ChainId,
        bytes: u64,
    ) -> ChainId {
        if self.lines.is_none() || !are_compared_across_files(options, &self.rule, bytes) {
            return chain;
        }
        let key = (chain, SizeClass::of(bytes));
        if let Some(at) = self.across_files.iter().position(|(known, _)| *known == key) {
            return ChainId::AcrossFiles(at);
        }
        let chosen = self.get(chain).chosen.clone();
        // One worker copies each file. What reads past the page cache was chosen for files that are not in it.
        if chosen.variant.workers > 1 || chosen.variant.reads_past_cache() {
            return chain;
        }
        let variants = CandidateSet::across_files(chosen.variant.clone(), may_offload(options));
        let mover = Mover::AcrossFiles(Box::new(AcrossFiles::new(variants, seed())));
        self.across_files.push((key, VariantChain { mover, chosen, offloads: false }));
        ChainId::AcrossFiles(self.across_files.len() - 1)
    }

    /// The chain for `bytes` of data if nothing was measured or no profile was read.
    pub(crate) fn by_rule(&mut self, bytes: u64, load: WorkerLoad<'_>) -> ChainId {
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
        let jobs = (load.jobs)();
        if self.split.as_ref().is_none_or(|(known, _)| *known != jobs) {
            self.split = Some((jobs, VariantChain::new(self.rule.split(jobs), ChosenBy::Rule)));
        }
        ChainId::Split
    }

    /// # Panics
    /// When `id` was not returned by one of the functions above.
    pub(crate) fn get(&mut self, id: ChainId) -> &mut VariantChain {
        match id {
            ChainId::Data => &mut self.data,
            ChainId::Early(at) => self.early[at].as_mut().expect("it was made when it was chosen"),
            ChainId::Split => &mut self.split.as_mut().expect("it was made when it was chosen").1,
            ChainId::ReadWrite => &mut self.read_write,
            ChainId::Line(at) => &mut self.by_line[at].1,
            ChainId::Adaptive(at) => &mut self.adaptive[at].1,
            ChainId::AcrossFiles(at) => &mut self.across_files[at].1,
        }
    }
}

impl VariantChain {
    fn new(variants: Vec<Variant>, by: ChosenBy) -> VariantChain {
        let offloads = variants.iter().any(|variant| variant.engine.name == "copy_file_range");
        let variant = variants.first().expect("there is always a variant").clone();
        let mover = Mover::Chain(Chain::exactly(variants));
        VariantChain { mover, chosen: Chosen { variant, by }, offloads }
    }

    fn adaptive(candidates: &Candidates) -> VariantChain {
        let variants = candidates.variants();
        let variant = variants.first().expect("there is always a candidate").clone();
        let adaptive = Adaptive::new(variants, candidates.set.is_cold, seed());
        let mover = Mover::Adaptive(Box::new(adaptive));
        let chosen = Chosen { variant, by: ChosenBy::Trial(Arc::new([])) };
        VariantChain { mover, chosen, offloads: false }
    }

    /// Copies `span` of a file of which `bytes_before` bytes were copied before.
    pub(crate) fn copy(
        &mut self,
        pair: Pair<'_>,
        (bytes_before, span): (u64, Span),
        observe: &mut Observer<'_>,
    ) -> Moved {
        match &mut self.mover {
            Mover::Chain(chain) => chain.file_after(pair, bytes_before).copy(span, observe),
            Mover::Adaptive(adaptive) => adaptive.copy(pair, span, observe),
            Mover::AcrossFiles(files) => files.copy(pair, (bytes_before, span), observe),
        }
    }

    /// The variant that was chosen, and why; with the rates so far, if it is measured.
    pub(crate) fn chosen(&self) -> Chosen {
        let rate = |(variant, bytes_per_second)| MeasuredRate { variant, bytes_per_second };
        match &self.mover {
            Mover::Chain(_) => self.chosen.clone(),
            Mover::Adaptive(adaptive) => {
                let rates = adaptive.rates().map(rate).collect();
                Chosen { variant: adaptive.best().clone(), by: ChosenBy::Trial(rates) }
            }
            Mover::AcrossFiles(files) if !files.has_compared() => self.chosen.clone(),
            Mover::AcrossFiles(files) => {
                let rates = files.rates().map(rate).collect();
                Chosen { variant: files.last().clone(), by: ChosenBy::Trial(rates) }
            }
        }
    }

    /// Whether the choice changes while it copies.
    pub(crate) fn is_adaptive(&self) -> bool {
        !matches!(self.mover, Mover::Chain(_))
    }
}

/// The order of the candidates differs from run to run.
fn seed() -> u64 {
    u64::from(std::process::id())
}
