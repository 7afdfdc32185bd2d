//! What deciding about a destination needs of a run.

use super::backup::created::CreatedFiles;
use super::backup::numbers::BackupNumbers;
use super::dry_run::DryRun;
use super::stale_temporaries::StaleTemporaries;
use crate::data::sync::Syncer;
use crate::report::Reporter;
use crate::request::Options;
use crate::security::Security;
use crate::shared::{HardLinks, Operands};

/// Shared by reference among all workers.
pub(crate) struct DestinationContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) sync: &'r Syncer<'r>,
    pub(crate) security: Security,
    pub(crate) operands: Operands,
    pub(crate) links: HardLinks,
    pub(crate) created: CreatedFiles,
    pub(crate) numbers: BackupNumbers,
    pub(crate) stale: StaleTemporaries,
    /// What a dry run would have made.
    pub(crate) dry_run: Option<DryRun>,
}

impl<'r> DestinationContext<'r> {
    /// That of a run that starts now.
    pub(crate) fn now(
        options: &'r Options,
        report: &'r Reporter<'r>,
        sync: &'r Syncer<'r>,
    ) -> DestinationContext<'r> {
        DestinationContext {
            options,
            report,
            sync,
            security: Security::now(),
            operands: Operands::new(options.parents),
            links: HardLinks::default(),
            created: CreatedFiles::default(),
            numbers: BackupNumbers::default(),
            stale: StaleTemporaries::default(),
            dry_run: options.dry_run.then(DryRun::default),
        }
    }
}
