//! What copying an entry needs: the shared state of a run, and the state of a worker.

use std::sync::Arc;

use rustix::fs::Mode;

use crate::data::context::DataContext;
use crate::data::worker::DataWorker;
use crate::destination::backup;
use crate::destination::context::DestinationContext;
use crate::destination::dry_run::DryRun;
use crate::entry::Entry;
use crate::fs::process::umask;
use crate::fs::{Buffer, FileId, KeepingBytes, Trust, kind};
use crate::metadata::MetadataContext;
use crate::report::{Method, Receipt, Reporter, Verified};
use crate::request::Options;
use crate::security::{LastReopened, Security};
use crate::shared::{CreationLocks, FileLocks, PartnerContext};

/// Shared by reference among all workers.
pub(crate) struct CopyContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(crate) data: &'r DataContext<'r>,
    pub(crate) destination: &'r DestinationContext<'r>,
    pub(crate) umask: Mode,
    pub(crate) destination_locks: FileLocks,
    pub(crate) creation_locks: CreationLocks,
}

impl<'r> CopyContext<'r> {
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
            destination_locks: FileLocks::default(),
            creation_locks: CreationLocks::default(),
        }
    }

    /// The state of a dry run.
    pub(crate) fn dry_run(&self) -> Option<&DryRun> {
        self.destination.dry_run.as_ref()
    }

    /// The other processes that copy the same tree.
    pub(crate) fn partners(&self) -> &'r Arc<PartnerContext> {
        &self.destination.partners
    }

    pub(crate) fn security(&self) -> &Security {
        &self.destination.security
    }

    pub(crate) fn metadata(&self) -> MetadataContext<'r> {
        let caller = self.destination.security.caller;
        MetadataContext { options: self.options, report: self.report, caller }
    }
}

/// What a worker keeps.
pub(crate) struct CopyWorker {
    pub(crate) data: DataWorker,
    /// For reading directories.
    pub(crate) names: Buffer,
    /// Entries copied so far.
    pub(crate) entries: u64,
    /// The last entry became a hard link to an earlier copy.
    pub(crate) last_was_linked: bool,
    /// The directory of the last such copy.
    pub(crate) last_reopened: LastReopened,
    pub(crate) keeping_bytes: KeepingBytes,
}

impl CopyWorker {
    pub(crate) fn new(cx: &CopyContext<'_>) -> CopyWorker {
        CopyWorker {
            data: DataWorker::new(cx.data),
            names: Buffer::default(),
            entries: 0,
            last_was_linked: false,
            last_reopened: LastReopened::default(),
            keeping_bytes: KeepingBytes::default(),
        }
    }
}

/// Remembers the copy `dst`, so that this run does not replace it.
pub(super) fn remember(cx: &CopyContext<'_>, entry: &Entry<'_>, dst: FileId) {
    cx.destination.created.record(cx.options, &entry.dst, dst);
    backup::note_created(cx.destination, &entry.dst);
    if let Some(dry_run) = cx.dry_run().filter(|_| entry.is_operand) {
        dry_run.record_file(entry.dst.name);
    }
    note_made(cx, entry, dst);
}

/// Notes that this run has made or written to `dst`.
pub(super) fn note_made(cx: &CopyContext<'_>, entry: &Entry<'_>, dst: FileId) {
    if entry.is_operand && !entry.operand.into_directory {
        // It is the only operand, and nothing else gets its name.
        return;
    }
    if entry.dst.trust != Trust::Created {
        cx.destination.operands.note_in_preexisting(&entry.dst, dst);
    }
    if entry.is_operand {
        cx.destination.operands.record_made(&entry.dst, dst);
    }
}

/// Writes the receipt of an entry whose destination stays as it is, with the result of comparing
/// them if they were compared.
pub(super) fn skipped(cx: &CopyContext<'_>, entry: &Entry<'_>, verified: Option<Verified>) {
    if cx.report.keeps_receipts() {
        let receipt = entry.receipt(kind(&entry.src_stat), Method::Skipped);
        entry.finish(cx.report, Receipt { verified, ..receipt });
    }
}
