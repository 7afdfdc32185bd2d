//! The state of a run that is needed for a destination.

use std::sync::Arc;

use super::backup::numbers::{BackupNumbers, CreatedFiles};
use super::dry_run::DryRun;
use super::partial::StaleFiles;
use super::time_resolution::TimeResolutions;
use crate::data::sync::Syncer;
use crate::entry::Entry;
use crate::report::Reporter;
use crate::request::Options;
use crate::security::Security;
use crate::shared::{HardLinks, Operands, PartnerContext};

/// Shared by reference among all workers.
pub(crate) struct DestinationContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) syncer: &'r Syncer<'r>,
    pub(crate) security: Security,
    pub(crate) operands: Operands,
    pub(crate) links: HardLinks,
    pub(crate) created: CreatedFiles,
    pub(crate) numbers: BackupNumbers,
    pub(crate) stale: StaleFiles,
    pub(crate) resolutions: TimeResolutions,
    pub(crate) dry_run: Option<DryRun>,
    pub(crate) partners: Arc<PartnerContext>,
}

/// The destination of one entry, with what is needed to decide about it and to change it.
#[derive(Clone, Copy)]
pub(crate) struct Dst<'d> {
    pub(crate) cx: &'d DestinationContext<'d>,
    pub(crate) entry: &'d Entry<'d>,
}

impl<'r> DestinationContext<'r> {
    /// For a run that starts now.
    pub(crate) fn new(
        options: &'r Options,
        report: &'r Reporter<'r>,
        syncer: &'r Syncer<'r>,
        partners: Arc<PartnerContext>,
    ) -> DestinationContext<'r> {
        DestinationContext {
            options,
            report,
            syncer,
            security: Security::new(),
            operands: Operands::new(options.parents),
            links: HardLinks::new(partners.clone()),
            created: CreatedFiles::default(),
            numbers: BackupNumbers::default(),
            stale: StaleFiles::default(),
            resolutions: TimeResolutions::default(),
            dry_run: options.dry_run.then(DryRun::default),
            partners,
        }
    }
}
