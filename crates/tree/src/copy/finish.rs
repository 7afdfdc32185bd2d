//! The end of an entry: what the run remembers of the copy, and the receipts of skipped entries.

use super::context::CopyContext;
use crate::destination::backup;
use crate::entry::Entry;
use crate::fs::{FileId, Trust, kind};
use crate::report::{Method, Receipt, Verified};

/// Remembers the copy `dst`, so that this run does not replace it.
pub(super) fn remember(cx: &CopyContext<'_>, entry: &Entry<'_>, dst: FileId) {
    cx.destination.created.record(cx.options, &entry.dst, dst);
    backup::note_created(cx.destination, &entry.dst);
    if let Some(dry_run) = cx.dry_run().filter(|_| entry.is_operand) {
        dry_run.record_file(entry.dst.name);
    }
    if entry.dst.trust != Trust::Created {
        cx.destination.operands.note_in_preexisting(dst);
    }
    if entry.is_operand && entry.operand.into_directory {
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
