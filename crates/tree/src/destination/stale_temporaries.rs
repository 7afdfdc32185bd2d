//! What a killed run with `--resume` has left beside names that mean something else by now: its source
//! is a symbolic link or a short file meanwhile, or is to be linked to, or its destination leads elsewhere.
//! No copy goes on with such a part, so whoever is done with the name removes it.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};

use super::partial::{self, JournalKind};
use super::temp_name::{is_locked_elsewhere, is_source_name};
use crate::entry::Entry;
use crate::fs::{Place, Trust, each_name, file_bytes, is_directory};
use crate::request::Options;
use crate::security::Security;

/// Whether a directory that stood before the run holds names that parts and journals have. Hardly ever
/// does one, and then no name in any of them needs to be looked up.
#[derive(Default)]
pub(crate) struct StaleTemporaries {
    seen: AtomicBool,
}

impl StaleTemporaries {
    /// Looks through `dir`, which stood before the run, before anything is put there.
    pub(crate) fn enter(&self, dir: BorrowedFd<'_>) {
        let listed = each_name(dir, |name, _kind| {
            if partial::is_own_name(name) {
                self.seen.store(true, Ordering::Relaxed);
            }
        });
        if listed.is_err() {
            // What cannot be listed may hold anything.
            self.seen.store(true, Ordering::Relaxed);
        }
    }

    /// Removes what an earlier run left beside the destination of `entry`, whose copy is complete.
    pub(crate) fn remove_for(&self, options: &Options, security: &Security, entry: &Entry<'_>) {
        let may_exist = match entry.dst.trust {
            // A directory of this run was empty.
            Trust::Created => false,
            Trust::Operand | Trust::PreExisting => {
                entry.is_operand || self.seen.load(Ordering::Relaxed)
            }
        };
        if options.resume && !options.dry_run && may_exist {
            remove_beside(security, &entry.src, entry.dst.dir, entry.dst.name);
        }
    }
}

/// Removes what was left beside `name` in `dir`, of which `src` is the source now, if nobody is at it.
pub(crate) fn remove_beside(
    security: &Security,
    src: &Place<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
) {
    let Some((part_name, journal_name)) = partial::names(name) else { return };
    let part = find(security, src, dir, &part_name);
    let journal = find(security, src, dir, &journal_name);
    let journal_kind = journal.as_ref().and_then(|(fd, _)| partial::journal_kind(fd.as_fd()));
    let of_part = journal_kind.is_some_and(|journal_kind| journal_kind != JournalKind::Directory);
    if let Some((fd, stat)) = part {
        // Without a journal only what is empty is known for a part: a run begins with that.
        if !of_part && file_bytes(&stat) > 0 || is_locked_elsewhere(security, &fd, &stat) {
            return;
        }
        let _ = unlinkat(dir, &*part_name, AtFlags::empty());
    }
    // What is noted of a directory holds for as long as there is one.
    let stands = || statat(dir, name, AtFlags::empty()).is_ok_and(|stat| is_directory(&stat));
    if of_part || journal_kind.is_some() && !stands() {
        let _ = unlinkat(dir, &*journal_name, AtFlags::empty());
    }
}

/// The file at `own`, if it may be ours.
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
