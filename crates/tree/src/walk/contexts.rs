//! The contexts of a run: for each layer what it needs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::data::context::DataContext;
use crate::destination::context::CopyContext;
use crate::report::{Observer, Reporter};
use crate::request::Options;
use crate::shared::PartnerContext;

/// How a run ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Failures that the observer was told of, and questions that it answered with no. Every entry
    /// was copied if there are none.
    pub failures: u64,
}

/// Makes the context of a run that looks up no name.
pub(super) fn with_data_context<T>(
    options: &Options,
    observer: &dyn Observer,
    run: impl FnOnce(&DataContext<'_>) -> T,
) -> T {
    let never = AtomicBool::new(false);
    let report = Reporter::new(observer, options, &never);
    run(&DataContext::new(options, &report))
}

/// Makes the contexts of all layers for one run.
pub(super) fn with_context(
    options: &Options,
    observer: &dyn Observer,
    partners: &Arc<PartnerContext>,
    run: impl FnOnce(&CopyContext<'_>),
) -> Outcome {
    let report = Reporter::new(observer, options, &partners.inbox.cancelled);
    let data = DataContext::new(options, &report);
    run(&CopyContext::new(&data, partners.clone()));
    Outcome { failures: report.failures() }
}
