//! What copying data needs of a run.

use super::engine_choice::context::EngineContext;
use super::sync::Syncer;
use crate::report::Reporter;
use crate::request::Options;
use crate::shared::RateLimit;

/// Shared by reference among all workers.
pub(crate) struct DataContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) engines: EngineContext<'r>,
    pub(crate) sync: Syncer<'r>,
    pub(super) rate_limit: Option<RateLimit>,
}

impl<'r> DataContext<'r> {
    /// That of a run that starts now.
    pub(crate) fn now(options: &'r Options, report: &'r Reporter<'r>) -> DataContext<'r> {
        DataContext {
            options,
            report,
            engines: EngineContext::now(options, report),
            sync: Syncer::new(options.durable, report),
            rate_limit: options.limit_rate.map(RateLimit::new),
        }
    }
}
