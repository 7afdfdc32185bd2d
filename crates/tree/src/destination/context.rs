//! The state of a run, and one entry that it copies.

use std::sync::Arc;

use rustix::fs::Mode;

use super::backup::numbers::{BackupNumbers, CreatedFiles};
use super::dry_run::DryRun;
use super::own_names::StaleFiles;
use super::time_resolution::TimeResolutions;
use crate::data::context::DataContext;
use crate::entry::Entry;
use crate::fs::process::umask;
use crate::metadata::MetadataContext;
use crate::report::Reporter;
use crate::request::Options;
use crate::security::Security;
use crate::shared::{CreationLocks, FileLocks, HardLinks, Operands, PartnerContext};

/// The state of a run that is needed to copy entries. All workers share it by reference.
pub(crate) struct CopyContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) data: &'r DataContext<'r>,
    pub(crate) umask: Mode,
    pub(crate) destination_locks: FileLocks,
    pub(crate) creation_locks: CreationLocks,
    pub(crate) security: Security,
    pub(crate) operands: Operands,
    pub(crate) links: HardLinks,
    pub(crate) created: CreatedFiles,
    pub(crate) numbers: BackupNumbers,
    pub(crate) stale: StaleFiles,
    pub(crate) resolutions: TimeResolutions,
    pub(crate) dry_run: Option<DryRun>,
    /// The other processes that copy the same tree.
    pub(crate) partners: Arc<PartnerContext>,
}

/// One entry that is copied, and the state of the run that copies it.
#[derive(Clone, Copy)]
pub(crate) struct Job<'j> {
    pub(crate) cx: &'j CopyContext<'j>,
    pub(crate) entry: &'j Entry<'j>,
}

impl<'r> CopyContext<'r> {
    /// For a run that starts now.
    pub(crate) fn new(data: &'r DataContext<'r>, partners: Arc<PartnerContext>) -> CopyContext<'r> {
        CopyContext {
            options: data.options,
            report: data.report,
            data,
            umask: umask(),
            destination_locks: FileLocks::default(),
            creation_locks: CreationLocks::default(),
            security: Security::new(),
            operands: Operands::new(data.options.parents),
            links: HardLinks::new(partners.clone()),
            created: CreatedFiles::default(),
            numbers: BackupNumbers::default(),
            stale: StaleFiles::default(),
            resolutions: TimeResolutions::default(),
            dry_run: data.options.dry_run.then(DryRun::default),
            partners,
        }
    }

    pub(crate) fn metadata(&self) -> MetadataContext<'r> {
        let caller = self.security.caller;
        MetadataContext { options: self.options, report: self.report, caller }
    }
}
