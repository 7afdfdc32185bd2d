//! What copying an entry needs of a run, and what a worker keeps for it.

use rustix::fs::Mode;

use crate::data::context::DataContext;
use crate::data::worker::DataWorker;
use crate::destination::context::DestinationContext;
use crate::destination::dry_run::DryRun;
use crate::fs::umask::umask;
use crate::metadata::MetadataContext;
use crate::report::Reporter;
use crate::request::Options;
use crate::security::{LastReopened, Security};
use crate::shared::{CreationLocks, DestinationLocks};

/// Shared by reference among all workers.
pub(crate) struct CopyContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) data: &'r DataContext<'r>,
    pub(crate) destination: &'r DestinationContext<'r>,
    /// The permissions that new files do not get.
    pub(crate) umask: Mode,
    pub(crate) destination_locks: DestinationLocks,
    pub(crate) creation_locks: CreationLocks,
}

impl<'r> CopyContext<'r> {
    /// That of a run over the contexts of the layers below.
    pub(crate) fn new(
        data: &'r DataContext<'r>,
        destination: &'r DestinationContext<'r>,
    ) -> CopyContext<'r> {
        CopyContext {
            options: data.options,
            report: data.report,
            data,
            destination,
            umask: umask(),
            destination_locks: DestinationLocks::default(),
            creation_locks: CreationLocks::default(),
        }
    }

    /// What would have been made, in a dry run.
    pub(crate) fn dry_run(&self) -> Option<&DryRun> {
        self.destination.dry_run.as_ref()
    }

    /// Who copies, and what is trusted.
    pub(crate) fn security(&self) -> &Security {
        &self.destination.security
    }

    /// What setting attributes needs.
    pub(crate) fn metadata(&self) -> MetadataContext<'r> {
        let caller = self.destination.security.caller;
        MetadataContext { options: self.options, report: self.report, caller }
    }
}

/// A worker, as far as entries are concerned.
pub(crate) struct CopyWorker {
    pub(crate) data: DataWorker,
    /// The last entry became a link to a copy that was made before.
    pub(crate) last_was_linked: bool,
    /// The directory of that copy.
    pub(crate) last_reopened: LastReopened,
}

impl CopyWorker {
    /// One that has copied nothing.
    pub(crate) fn new(cx: &CopyContext<'_>) -> CopyWorker {
        CopyWorker {
            data: DataWorker::new(cx.data),
            last_was_linked: false,
            last_reopened: LastReopened::default(),
        }
    }
}
