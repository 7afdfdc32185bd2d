//! What a worker keeps, what it makes for an entry, and what is noted of it.

use std::os::fd::AsFd;

use rustix::fs::Stat;

use crate::data::worker::DataWorker;
use crate::destination::backup;
use crate::destination::context::{CopyContext, Job};
use crate::entry::open_regular;
use crate::fs::{
    Buffer, FileId, Handle, KeptNames, Place, Trust, file_bytes, hold, is_regular, kind,
    may_have_any, may_have_spellings, mtime,
};
use crate::metadata::{Source, Target, apply, has_xattrs_of, kept, reads_xattrs};
use crate::report::{Action, DataReport, Loss, Method, Receipt, Result, Verified, failed};
use crate::request::{Existing, ModeRule, Options};
use crate::security::LastReopened;

/// What a worker keeps.
#[derive(Default)]
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
    pub(crate) kept_names: KeptNames,
}

impl CopyWorker {
    pub(crate) fn new(cx: &CopyContext<'_>) -> CopyWorker {
        CopyWorker { data: DataWorker::new(cx.data), ..CopyWorker::default() }
    }
}

/// What was made for an entry.
#[derive(Default)]
pub(super) struct Made {
    /// The new file, where it matters.
    pub(super) dst: Option<FileId>,
    /// What was copied to it, if that was data.
    pub(super) data: Option<DataReport>,
    /// The attributes that it does not have.
    pub(super) lost: Vec<Loss>,
}

impl Made {
    /// The file `dst` with all its attributes.
    pub(super) fn file(dst: FileId) -> Made {
        Made { dst: Some(dst), ..Made::default() }
    }

    pub(super) fn add_to(self, receipt: &mut Receipt, options: &Options) {
        receipt.kept = kept(options, receipt.kind, &self.lost);
        receipt.lost = self.lost;
        self.data.into_iter().for_each(|data| receipt.add_data(data));
    }
}

/// Remembers the copy `dst`, so that this run does not replace it.
pub(super) fn remember(job: Job<'_>, dst: FileId) {
    let Job { cx, entry } = job;
    cx.created.record(cx.options, &entry.dst, dst);
    backup::note_created(cx, &entry.dst);
    if let Some(dry_run) = cx.dry_run.as_ref().filter(|_| entry.is_operand) {
        dry_run.record_copy(entry, dst);
    }
    note_made(job, dst);
}

/// Notes that this run has made or written to `dst`.
pub(super) fn note_made(Job { cx, entry }: Job<'_>, dst: FileId) {
    if entry.is_operand && !entry.operand.into_directory {
        // It is the only operand, and nothing else gets its name.
        return;
    }
    if entry.dst.trust != Trust::Created {
        cx.operands.note_in_preexisting(&entry.dst, dst);
    }
    if entry.is_operand {
        cx.operands.record_made(&entry.dst, dst);
    }
}

/// Notes that `dst` is up to date, so that no source whose name is the same there replaces it.
pub(super) fn note_kept(job: Job<'_>, dst: FileId) {
    let Job { cx, entry } = job;
    // Of operands with one name `-u` copies each that is newer, as in GNU cp.
    let is_free = entry.is_operand && !cx.options.resume;
    if !is_free || may_have_spellings(entry.dst.dir, entry.dst.name) {
        note_made(job, dst);
    }
}

/// Writes the receipt of an entry whose destination stays as it is.
pub(super) fn skipped(Job { cx, entry }: Job<'_>) {
    if cx.report.keeps_receipts() {
        cx.report.observer.finished(entry.receipt(kind(&entry.src_stat), Method::Skipped));
    }
}

/// With `--resume` sets attributes that the complete copy of an earlier run does not have: perhaps they could not be set
/// then. A file of another length or time is not that copy.
pub(super) fn restore_attributes(Job { cx, entry }: Job<'_>) -> Result<()> {
    let (Options { preserve, resume, existing, .. }, src) = (cx.options, &entry.src_stat);
    let may_change = *resume
        && preserve.timestamps
        && !cx.options.dry_run
        && !matches!(existing, Existing::Skip | Existing::Fail);
    let is_copy = |dst: &Stat| {
        [src, dst].into_iter().all(is_regular)
            && file_bytes(src) == file_bytes(dst)
            && mtime(src) == mtime(dst)
    };
    let found = may_change.then(|| entry.dst.stat(false).ok());
    let Some(dst) = found.flatten().filter(is_copy) else { return Ok(()) };
    let has_owner = (src.st_uid, src.st_gid) == (dst.st_uid, dst.st_gid);
    let is_same = (preserve.mode != ModeRule::Preserve || src.st_mode == dst.st_mode)
        && (!preserve.ownership || has_owner || !cx.security.caller.is_root());
    let has_xattrs =
        || reads_xattrs(cx.options, kind(src)) && may_have_any(entry.src.dir, entry.src.name);
    if is_same && !has_xattrs() {
        return Ok(());
    }
    let held = |place: &Place<'_>, follow| {
        hold(place.dir, place.name, follow).map_err(failed(Action::Stat, place))
    };
    let (src_fd, dst_fd) = (held(&entry.src, entry.src_through_link)?, held(&entry.dst, false)?);
    let are_these = FileId::of_open(&src_fd) == Ok(FileId::of(src))
        && FileId::of_open(&dst_fd) == Ok(FileId::of(&dst));
    let (src_handle, dst_handle) = (Handle::Path(src_fd.as_fd()), Handle::Path(dst_fd.as_fd()));
    let differs = || !is_same || !has_xattrs_of(cx.options, src_handle, dst_handle);
    if are_these && differs() {
        let source = Source { handle: Some(src_handle), stat: src };
        let target = Target::existing(dst_handle, &entry.dst, &dst);
        let target = Target { inherits_acl: entry.inherits_acl, ..target };
        apply(cx.metadata(), source, target);
    }
    Ok(())
}

/// With `--durable` syncs a destination that stays as it is: the run that wrote it may have ended before it did. Then
/// writes the receipt, with the result of comparing the destination with the source if they were compared.
pub(super) fn keep(
    job: Job<'_>,
    worker: &mut DataWorker,
    (through_link, verified): (bool, Option<Verified>),
) -> Result<()> {
    let Job { cx, entry } = job;
    if cx.options.durable && !cx.options.dry_run {
        let file = entry.dst.stat(through_link).ok().filter(is_regular);
        match file.and_then(|_| open_regular(&mut worker.fs_types, &entry.dst, through_link)) {
            Some(opened) => worker.close(cx.data, (opened.fd, &entry.dst), None)?,
            // A symbolic link, a device, or a file that may not be read.
            None => cx.data.syncer.note_file_system(entry.dst.dir, || entry.dst.path()),
        }
    }
    if cx.report.keeps_receipts() {
        let receipt = entry.receipt(kind(&entry.src_stat), Method::Skipped);
        worker.finish(cx.data, Receipt { verified, ..receipt });
    }
    worker.sync_if_many(cx.data);
    Ok(())
}
