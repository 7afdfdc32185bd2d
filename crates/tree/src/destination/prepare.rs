//! Does what a [`Decision`] asks for before the copy: the source is opened where the destination changes,
//! backups are made, files removed.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Stat, StatxFlags, statx};
use rustix::io::Errno;

use super::alias::refuse_to_remove_source;
use super::backup::{self, BackedUp, BackupMethod};
use super::context::Job;
use super::decide::Decision;
use super::dry_run::may_remove;
use super::found::Found;
use crate::entry::{copies_data, open_source};
use crate::fs::{FileId, OpenFile, Place, is_directory, is_regular, is_symlink, try_odd_name};
use crate::metadata::NewMode;
use crate::report::{Action, Announcement, Diagnostic, Result, failed};
use crate::request::{Make, Options};

/// The destination when the copy starts, after backups were made and files removed.
#[derive(Default)]
pub(crate) struct DestinationState {
    /// The existing file, if it is still there.
    pub(crate) found: Option<Box<Found>>,
    /// The existing file is replaced in one step and not written into (`--atomic`).
    pub(crate) replace: bool,
    /// A dangling symbolic link exists.
    pub(crate) dangling: bool,
    pub(crate) backup: Option<BackedUp>,
    /// The source, if it had to be opened before the destination was changed.
    pub(crate) source: Option<Box<OpenFile>>,
    /// The target of the source, if that is a symbolic link which had to be read before the destination was
    /// changed.
    pub(crate) link_text: Option<CString>,
    /// The new file, if a batch has created it.
    pub(crate) created: Option<OwnedFd>,
}

impl DestinationState {
    /// The file `found` is replaced in one step. Of a symbolic link that is the link itself, not its target.
    fn keep_until_replaced(&mut self, mut found: Box<Found>) {
        found.through_link = false;
        (self.found, self.replace) = (Some(found), true);
    }
}

/// The new file of a copy.
#[derive(Clone, Copy)]
pub(crate) struct NewFile<'s> {
    /// The source.
    pub(crate) src: &'s Stat,
    pub(crate) mode: NewMode,
    /// Partners open it by its name.
    pub(crate) is_named: bool,
    /// The type of the file system of its directory, as far as it matters.
    pub(crate) fs_type: Option<u64>,
}

/// Carries out the part of `decision` that comes before the copy. `None` if there is no copy.
///
/// # Errors
/// The source cannot be read, or the destination not be changed; then it is as it was.
pub(crate) fn prepare(job: Job<'_>, decision: Decision) -> Result<Option<DestinationState>> {
    let Job { cx, entry } = job;
    let mut state = DestinationState::default();
    match decision {
        Decision::Skip | Decision::UpToDate { .. } => return Ok(None),
        Decision::Create => {
            let Options { atomic, resume, dry_run, .. } = cx.options;
            if (*atomic || *resume) && !dry_run {
                try_odd_name(&entry.dst).map_err(failed(Action::CreateRegular, &entry.dst))?;
            }
        }
        Decision::CreateAtTarget => state.dangling = true,
        Decision::Enter(found) | Decision::Overwrite(found) => state.found = Some(found),
        Decision::Replace(found) => {
            state = read_source_first(job)?;
            refuse_to_remove_source(job, &found)?;
            // A partner may have made it, as the copy of this source: then its name has to stay.
            let may_be_copy =
                cx.partners.exist && entry.may_have_links(cx.options, &entry.src_stat);
            // A directory is not renamed over a file.
            if (cx.options.atomic || may_be_copy) && !is_directory(&entry.src_stat) {
                state.keep_until_replaced(found);
            } else {
                remove(job)?;
            }
        }
        Decision::BackUp(found) => state = back_up(job, found)?,
    }
    Ok(Some(state))
}

/// Makes a backup of the existing file `found`.
fn back_up(job: Job<'_>, found: Box<Found>) -> Result<DestinationState> {
    let Job { cx, entry } = job;
    let mut state = read_source_first(job)?;
    let Some(options) = &cx.options.backup else { return Ok(state) };
    let id = FileId::of(&found.link);
    // A directory has no hard links.
    let keeps_name = cx.options.atomic && !is_directory(&entry.src_stat);
    let method = match (cx.dry_run.is_some(), keeps_name) {
        (true, _) => BackupMethod::DryRun,
        (false, true) => BackupMethod::Link,
        (false, false) => BackupMethod::Rename,
    };
    state.backup = match backup::back_up(job, id, options, method) {
        Ok(backup) => Some(backup),
        // Another process has removed the file. The error may be of the directory's listing as well.
        Err(Diagnostic::Failed { errno: Errno::NOENT, .. }) if is_gone(&entry.dst) => None,
        Err(diagnostic) => return Err(diagnostic),
    };
    if keeps_name && state.backup.as_ref().is_some_and(BackedUp::keeps_name) {
        state.keep_until_replaced(found);
    }
    Ok(state)
}

/// Whether the destination has no file any more. A server is asked again, whatever is known from before.
pub(super) fn is_gone(dst: &Place<'_>) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
    let is_absent = |errno| errno == Errno::NOENT;
    statx(dst.dir, dst.name, flags, StatxFlags::MODE).is_err_and(is_absent)
        // Some sandboxes forbid statx(2).
        || dst.stat(false).is_err_and(is_absent)
}

/// Opens or reads the source before the destination is changed: if the source cannot be read, the destination must
/// stay, and the path of a symbolic link may lead through one at the destination. The state has nothing but that.
fn read_source_first(Job { cx, entry }: Job<'_>) -> Result<DestinationState> {
    let mut state = DestinationState::default();
    if !matches!(cx.options.make, Make::Copy | Make::AttributesOnly) {
        return Ok(state);
    }
    let is_dry_run = cx.dry_run.is_some();
    if copies_data(cx.options, &entry.src_stat) {
        // Opening a device or a fifo has effects.
        if !is_dry_run || is_regular(&entry.src_stat) {
            let opened = open_source(None, entry).inspect_err(|_| {
                // GNU cp announces the copy of every file before its error.
                entry.announce_copy(cx.report, None);
            })?;
            state.source = Some(Box::new(opened));
        }
    } else if is_symlink(&entry.src_stat) && !is_dry_run {
        // Reading a link sets its access time.
        let text = entry.src.read_link().map_err(failed(Action::ReadLink, &entry.src));
        state.link_text = Some(text?);
    }
    Ok(state)
}

/// Removes the destination's name.
pub(crate) fn remove(Job { cx, entry }: Job<'_>) -> Result<()> {
    let removed = match cx.dry_run {
        Some(_) => may_remove(cx.security.caller, &entry.dst),
        None => entry.dst.unlink(),
    };
    match removed {
        Ok(()) => {
            cx.report.announce(|| Announcement::Removed { dst: entry.dst.path() });
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed(Action::Remove, &entry.dst)(errno)),
    }
}

/// Whether `--force` removes a destination that could not be opened. Without descriptors or memory,
/// or on a broken disk, the new file could not be created either.
pub(crate) fn may_be_removed(errno: Errno) -> bool {
    !matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO)
}
