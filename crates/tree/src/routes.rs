//! The ways between one pair of file systems as one worker goes them.

use std::sync::Arc;

use engines::profile::{InFlight, Residency};
use engines::{Chain, Variant};

use crate::choice::{self, Ways};
use crate::measured::{End, Measured, MeasuredPair};
use crate::options::Options;
use crate::receipt::{Chosen, ChosenBy};
use crate::run::Run;

/// The routes between one pair of file systems; they remember what was refused there.
pub(crate) struct Routes {
    /// Sharing blocks; `None` once the file systems have said that they cannot, or when it is
    /// not wanted.
    pub(crate) clone: Option<Chain>,
    /// For data that is worth telling apart from holes only by the file system.
    data: Route,
    /// The same for a large file, with workers that have nothing else to do.
    shared: Option<Route>,
    /// What that is made of, until there is such a file.
    sharable: Option<Vec<Variant>>,
    /// Through user memory.
    plain: Route,
    /// Those of the rule, as far as they are left to follow a measured one.
    ways: Vec<Variant>,
    /// What was measured here, once that is known.
    measured: Option<Arc<MeasuredPair>>,
    /// The measured ones that were gone, each with its index there and its workers.
    gone: Vec<(usize, usize, Route)>,
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
    /// Its file system may keep the copy waiting.
    pub(crate) may_wait: bool,
    /// All other workers have something to do.
    pub(crate) others_busy: bool,
}

/// A file that is worth several workers, as long as nobody has measured.
pub(crate) const SHARED_BYTES_MIN: u64 = 16 << 20;

impl Routes {
    pub(crate) fn new(options: &Options, ways: Ways) -> Routes {
        let by = match options.engine {
            Some(_) => ChosenBy::Forced,
            None => ChosenBy::Rule,
        };
        Routes {
            clone: ways.clone.map(|way| Chain::exactly([way])),
            sharable: ways.may_share.then(|| ways.data.clone()),
            data: Route::new(ways.data.clone(), by),
            shared: None,
            plain: Route::new(vec![choice::plain()], ChosenBy::Rule),
            ways: ways.data,
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
        File { bytes, may_wait, others_busy }: File,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<Way> {
        if self.measured.is_none() && Measured::is_worth_asking(run, bytes, may_wait) {
            self.measured = Some(run.measured.between(run, src, dst));
        }
        let measured = self.measured.as_ref()?;
        // One worker alone is never idle.
        let several = others_busy && run.jobs() > 1;
        let in_flight = if several { InFlight::Several } else { InFlight::One };
        let index = measured.way(bytes, in_flight, look)?;
        let way = &measured.ways[index];
        run.measured.notice(run, way);
        let workers = match way.variant.workers {
            1 => 1,
            _ if others_busy => 1,
            // Those were all the processors of another machine.
            _ if matches!(way.by, ChosenBy::BuiltIn(_)) => choice::workers(run.jobs()),
            workers => workers.min(run.jobs()),
        };
        let known = self.gone.iter().position(|(of, by, _)| (*of, *by) == (index, workers));
        Some(Way::Measured(known.unwrap_or_else(|| {
            let first = way.variant.shared_by(workers);
            let ways = std::iter::once(first).chain(self.ways.iter().cloned()).collect();
            self.gone.push((index, workers, Route::new(ways, way.by.clone())));
            self.gone.len() - 1
        })))
    }

    /// The way of `bytes` of data where nothing was measured.
    pub(crate) fn by_rule(&mut self, run: &Run<'_>, bytes: u64, others_busy: bool) -> Way {
        let shares = !others_busy && bytes >= SHARED_BYTES_MIN && self.is_shared(run);
        if shares { Way::Shared } else { Way::Data }
    }

    /// The route of `way`.
    pub(crate) fn route(&mut self, way: Way) -> &mut Route {
        match way {
            Way::Data => &mut self.data,
            Way::Shared => self.shared.as_mut().expect("it is chosen only where it is"),
            Way::Plain => &mut self.plain,
            Way::Measured(at) => &mut self.gone[at].2,
        }
    }

    /// Whether workers that have nothing else to do may share a large file: not where they would only
    /// wait for one another.
    fn is_shared(&mut self, run: &Run<'_>) -> bool {
        if let Some(ways) = self.sharable.take() {
            let ways = choice::shared(&ways, run.jobs());
            self.shared = ways.map(|ways| Route::new(ways, ChosenBy::Rule));
        }
        self.shared.is_some()
    }
}

impl Route {
    fn new(ways: Vec<Variant>, by: ChosenBy) -> Route {
        let offloads = ways.iter().any(|way| way.engine.name == "copy_file_range");
        let variant = ways.first().expect("there is always a way").clone();
        Route { chain: Chain::exactly(ways), chosen: Chosen { variant, by }, offloads }
    }
}
