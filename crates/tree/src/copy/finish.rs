//! The end of an entry: what is remembered of it, and its receipt.

use rustix::fs::Stat;

use super::context::CopyContext;
use crate::destination::backup;
use crate::entry::Entry;
use crate::fs::{FileId, kind};
use crate::report::{Method, Receipt, Verified};

/// Remembers what was made here, so that nothing else of this run replaces it.
pub(super) fn remember(cx: &CopyContext<'_>, entry: &Entry<'_>, dst: FileId) {
    cx.destination.created.record(cx.options, &entry.dst, dst);
    backup::note_created(cx.destination, &entry.dst);
    if let Some(dry_run) = cx.dry_run().filter(|_| entry.is_operand) {
        dry_run.creates_file(entry.dst.name);
    }
    if entry.is_operand && entry.operand.into_directory {
        cx.destination.operands.record_made(&entry.dst, dst);
    }
}

/// Leaves the destination as it is.
pub(super) fn skipped(cx: &CopyContext<'_>, entry: &Entry<'_>, src_stat: &Stat) {
    skipped_as(cx, entry, src_stat, None);
}

/// The same of what proved to be its source's equal, if it did.
pub(super) fn skipped_as(
    cx: &CopyContext<'_>,
    entry: &Entry<'_>,
    src_stat: &Stat,
    verified: Option<Verified>,
) {
    if cx.report.keeps_receipts() {
        entry.finish(
            cx.report,
            Receipt { verified, ..entry.receipt(kind(src_stat), Method::Skipped) },
        );
    }
}
