//! The contexts of a run: for each layer what it needs.

use std::sync::Arc;

use crate::copy::context::{CopyContext, CopyWorker};
use crate::data::context::DataContext;
use crate::destination::context::DestinationContext;
use crate::fs::Buffer;
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
    let report = Reporter::new(observer, options.verbose, options.debug);
    run(&DataContext::new(options, &report))
}

/// Makes the contexts of all layers for one run.
pub(super) fn with_context(
    options: &Options,
    observer: &dyn Observer,
    partners: &Arc<PartnerContext>,
    run: impl FnOnce(&CopyContext<'_>),
) -> Outcome {
    let report = Reporter::new(observer, options.verbose, options.debug);
    let report = report.with_cancelled(&partners.inbox.cancelled);
    let data = DataContext::new(options, &report);
    let destination = DestinationContext::new(options, &report, &data.syncer, partners.clone());
    run(&CopyContext::new(&data, &destination));
    Outcome { failures: report.failures() }
}

/// One worker of a run.
pub(crate) struct Worker {
    pub(crate) copy: CopyWorker,
    /// For reading directories.
    pub(super) buffer: Buffer,
    /// Entries copied so far.
    pub(super) entries: u64,
}

impl Worker {
    pub(crate) fn new(cx: &CopyContext<'_>) -> Worker {
        Worker { copy: CopyWorker::new(cx), buffer: Buffer::default(), entries: 0 }
    }
}
