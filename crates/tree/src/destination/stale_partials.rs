//! Partial files of a killed run with `--resume` that no copy continues: the source has become a
//! symbolic link or a short file, is linked to, or the destination has another target. They are
//! removed when the entry of that name is complete.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};

use super::partial::{self, JournalKind};
use super::temporary::{is_locked_elsewhere, is_source_name};
use crate::entry::Entry;
use crate::fs::{Place, Trust, each_name, file_bytes, is_directory};
use crate::request::Options;
use crate::security::Security;

/// Whether a pre-existing directory has a name of a partial file or a journal. That is rare;
/// otherwise no name has to be looked up.
#[derive(Default)]
pub(crate) struct StalePartials {
    seen: AtomicBool,
}

impl StalePartials {
    /// Looks for such names in the pre-existing directory `dir`, before anything is created there.
    pub(crate) fn scan(&self, dir: BorrowedFd<'_>) {
        let listed = each_name(dir, |name, _kind| {
            if partial::is_own_name(name) {
                self.seen.store(true, Ordering::Relaxed);
            }
        });
        if listed.is_err() {
            // A directory that cannot be listed may have such names.
            self.seen.store(true, Ordering::Relaxed);
        }
    }

    /// Removes the partial file that an earlier run left for the destination of `entry`, which is
    /// complete.
    pub(crate) fn remove_for(&self, options: &Options, security: &Security, entry: &Entry<'_>) {
        let may_exist = match entry.dst.trust {
            // A directory that this run created was empty.
            Trust::Created => false,
            Trust::Operand | Trust::PreExisting => {
                entry.is_operand || self.seen.load(Ordering::Relaxed)
            }
        };
        if options.resume && !options.dry_run && may_exist {
            remove_partial(security, &entry.src, entry.dst.dir, entry.dst.name);
        }
    }
}

/// Removes the partial file and the journal of `name` in `dir`, unless another run uses them. `src`
/// is the source of `name` now.
pub(crate) fn remove_partial(
    security: &Security,
    src: &Place<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
) {
    let Some((partial_name, journal_name)) = partial::names(name) else { return };
    let partial_file = find(security, src, dir, &partial_name);
    let journal = find(security, src, dir, &journal_name);
    let journal_kind = journal.as_ref().and_then(|(fd, _)| partial::journal_kind(fd.as_fd()));
    let is_of_file =
        journal_kind.is_some_and(|journal_kind| journal_kind != JournalKind::Directory);
    if let Some((fd, stat)) = partial_file {
        // Without a journal only an empty file is known to be a partial one: a run starts with
        // that.
        if !is_of_file && file_bytes(&stat) > 0 || is_locked_elsewhere(security, &fd, &stat) {
            return;
        }
        let _ = unlinkat(dir, &*partial_name, AtFlags::empty());
    }
    // The marker of a directory is kept as long as the directory exists.
    let exists = || statat(dir, name, AtFlags::empty()).is_ok_and(|stat| is_directory(&stat));
    if is_of_file || journal_kind.is_some() && !exists() {
        let _ = unlinkat(dir, &*journal_name, AtFlags::empty());
    }
}

/// Opens the file `own`, if a run of this user may have created it.
fn find(
    security: &Security,
    src: &Place<'_>,
    dir: BorrowedFd<'_>,
    own: &CStr,
) -> Option<(OwnedFd, Stat)> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = openat(dir, own, flags, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    let ours = partial::is_private(&stat, security.caller.euid) && !is_source_name(src, dir, own);
    ours.then_some((fd, stat))
}
