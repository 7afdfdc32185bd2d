//! What the choice of an engine needs of a run.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::profiles::Profiles;
use crate::report::Reporter;
use crate::request::Options;

/// The options, the profiles, and how long the run has lasted.
pub(crate) struct EngineContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) profiles: Profiles,
    start: Instant,
    jobs: OnceLock<usize>,
}

impl<'r> EngineContext<'r> {
    /// That of a run that starts now.
    pub(crate) fn now(options: &'r Options, report: &'r Reporter<'r>) -> EngineContext<'r> {
        EngineContext {
            options,
            report,
            profiles: Profiles::default(),
            start: Instant::now(),
            jobs: OnceLock::new(),
        }
    }

    /// How long the run has lasted.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How many workers may share a file. Counting processors takes as long as copying some small
    /// files, so they are counted when there is work for several.
    pub(crate) fn jobs(&self) -> usize {
        *self.jobs.get_or_init(|| self.options.jobs.unwrap_or_else(processors).get())
    }
}

/// How many processors this process may use.
pub(crate) fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
