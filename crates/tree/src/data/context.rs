//! The state of a run that is needed to copy data.

use super::engine_choice::profiles::EngineContext;
use super::sync::Syncer;
use crate::report::Reporter;
use crate::request::Options;
use crate::shared::RateLimit;

/// Shared by reference among all workers.
pub(crate) struct DataContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(super) engines: EngineContext<'r>,
    pub(crate) syncer: Syncer<'r>,
    pub(super) rate_limit: Option<RateLimit>,
}

impl<'r> DataContext<'r> {
    /// For a run that starts now.
    pub(crate) fn new(options: &'r Options, report: &'r Reporter<'r>) -> DataContext<'r> {
        DataContext {
            options,
            report,
            engines: EngineContext::new(options, report),
            syncer: Syncer::new(options.durable, report),
            rate_limit: options.limit_rate.map(RateLimit::new),
        }
    }
}
