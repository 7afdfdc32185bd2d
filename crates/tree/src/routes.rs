//! The ways between one pair of file systems as one worker goes them.

use std::sync::Arc;

use engines::profile::Residency;
use engines::{Chain, Variant};

use crate::choice::{self, AT_FIRST, Hands, Ways};
use crate::contents::CloningOver;
use crate::lines::{Lines, Pick};
use crate::measured::{End, Measured};
use crate::options::Options;
use crate::receipt::{Chosen, ChosenBy};
use crate::run::Run;

/// The routes between one pair of file systems; they remember what was refused there.
pub(crate) struct Routes {
    /// Sharing blocks; `None` when it is not wanted.
    pub(crate) clone: Option<Chain>,
    /// Whether that is quick where old contents stand.
    pub(crate) cloning_over: CloningOver,
    /// For data that is worth telling apart from holes only by the file system.
    data: Route,
    /// The same as long as nothing measured is known, by the way that goes first.
    at_first: [Option<Route>; AT_FIRST.len()],
    /// The same for a large file, with workers that have nothing else to do.
    shared: Option<Route>,
    /// Through user memory.
    plain: Route,
    /// Those of the rule, which follow a measured one too.
    rule: Ways,
    /// What was measured here, once that is known.
    measured: Option<Arc<Lines>>,
    /// The measured ones that were gone.
    gone: Vec<(Pick, Route)>,
}

/// A chain, and why it is gone.
pub(crate) struct Route {
    pub(crate) chain: Chain,
    pub(crate) chosen: Chosen,
    /// It may leave the copying to the kernel.
    pub(crate) offloads: bool,
}

/// Which of the routes takes a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Data,
    /// By its place in [`AT_FIRST`].
    AtFirst(usize),
    Shared,
    Plain,
    /// By its place among those that were gone.
    Measured(usize),
}

/// What is to be known of a file before its way is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Its length.
    pub(crate) bytes: u64,
    /// The same but for holes.
    pub(crate) bytes_to_move: u64,
    /// Its file system may keep the copy waiting.
    pub(crate) may_wait: bool,
    /// All other workers have something to do.
    pub(crate) others_busy: bool,
}

impl Routes {
    pub(crate) fn new(options: &Options, ways: Ways) -> Routes {
        let by = match options.engine {
            Some(_) => ChosenBy::Forced,
            None => ChosenBy::Rule,
        };
        Routes {
            clone: ways.clone.clone().map(|way| Chain::exactly([way])),
            cloning_over: CloningOver::default(),
            data: Route::new(ways.data.clone(), by),
            at_first: [const { None }; AT_FIRST.len()],
            shared: None,
            plain: Route::new(vec![choice::plain()], ChosenBy::Rule),
            rule: ways,
            measured: None,
            gone: Vec::new(),
        }
    }

    /// The way that was measured to be the fastest for a file, by both ends of its copy; `None` where
    /// nothing was. `look` finds out how much of it is in the page cache.
    pub(crate) fn measured(
        &mut self,
        run: &Run<'_>,
        (src, dst): (End<'_>, End<'_>),
        File { bytes, bytes_to_move, may_wait, others_busy }: File,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<Way> {
        if self.measured.is_none() && Measured::is_worth_asking(run, bytes_to_move, may_wait) {
            self.measured = Some(run.measured.between(run, src, dst));
        }
        let measured = self.measured.as_ref()?;
        let hands = Hands { others_busy, jobs: &|| run.jobs() };
        let pick = measured.pick(bytes, hands, &self.rule, look)?;
        let line = measured.line(pick);
        run.measured.notice(run, line);
        let known = self.gone.iter().position(|(gone, _)| *gone == pick);
        Some(Way::Measured(known.unwrap_or_else(|| {
            let ways = measured.ways(pick, &self.rule);
            self.gone.push((pick, Route::new(ways, line.by.clone())));
            self.gone.len() - 1
        })))
    }

    /// The way of `bytes` of data where nothing was measured, or it is not known yet.
    pub(crate) fn by_rule(&mut self, run: &Run<'_>, bytes: u64, others_busy: bool) -> Way {
        let hands = Hands { others_busy, jobs: &|| run.jobs() };
        if self.measured.is_none()
            && let Some(at) = self.rule.at_first(bytes)
        {
            self.at_first[at]
                .get_or_insert_with(|| Route::new(self.rule.beginning_with(at), ChosenBy::Rule));
            return Way::AtFirst(at);
        }
        if !self.rule.are_shared(bytes, hands) {
            return Way::Data;
        }
        if self.shared.is_none() {
            self.shared = Some(Route::new(self.rule.shared(run.jobs()), ChosenBy::Rule));
        }
        Way::Shared
    }

    /// The route of `way`.
    pub(crate) fn route(&mut self, way: Way) -> &mut Route {
        match way {
            Way::Data => &mut self.data,
            Way::AtFirst(at) => self.at_first[at].as_mut().expect("it is chosen only where it is"),
            Way::Shared => self.shared.as_mut().expect("it is chosen only where it is"),
            Way::Plain => &mut self.plain,
            Way::Measured(at) => &mut self.gone[at].1,
        }
    }
}

impl Route {
    fn new(ways: Vec<Variant>, by: ChosenBy) -> Route {
        let offloads = ways.iter().any(|way| way.engine.name == "copy_file_range");
        let variant = ways.first().expect("there is always a way").clone();
        Route { chain: Chain::exactly(ways), chosen: Chosen { variant, by }, offloads }
    }
}
