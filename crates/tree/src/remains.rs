//! What a killed run with `--resume` has left beside names that mean something else by now: its source
//! is a symbolic link or a short file meanwhile, or is to be linked to, or its destination leads elsewhere.
//! No copy goes on with such a part, so whoever is done with the name removes it.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};

use crate::beside::{is_among_sources, is_held};
use crate::entry::Job;
use crate::identity::{file_bytes, is_directory};
use crate::journal::{self, Noted};
use crate::place::{Place, Trust};
use crate::run::Run;
use crate::standing::each_name;

/// Whether a directory that stood before the run holds names that parts and journals have. Hardly ever
/// does one, and then no name in any of them needs to be looked up.
#[derive(Default)]
pub(crate) struct Remains {
    seen: AtomicBool,
}

impl Remains {
    /// Looks through `dir`, which stood before the run, before anything is put there.
    pub(crate) fn enter(&self, dir: BorrowedFd<'_>) {
        let listed = each_name(dir, |name, _kind| {
            if journal::is_own_name(name) {
                self.seen.store(true, Ordering::Relaxed);
            }
        });
        if listed.is_err() {
            // What cannot be listed may hold anything.
            self.seen.store(true, Ordering::Relaxed);
        }
    }
}

/// Removes what was left beside the destination of `job`, which is done.
pub(crate) fn clear_beside(run: &Run<'_>, job: &Job<'_>) {
    let may_be_there = match job.dst.trust {
        // What this run made was empty.
        Trust::Made => false,
        Trust::Operand | Trust::Entered => job.is_top || run.remains.seen.load(Ordering::Relaxed),
    };
    if run.options.resume && may_be_there {
        clear(run, &job.src, job.dst.dir, job.dst.name);
    }
}

/// Removes what was left beside `name` in `dir`, of which `src` is the source now, if nobody is at it.
pub(crate) fn clear(run: &Run<'_>, src: &Place<'_>, dir: BorrowedFd<'_>, name: &CStr) {
    let Some((part_name, journal_name)) = journal::names(name).filter(|_| run.rehearsal.is_none())
    else {
        return;
    };
    let part = find(run, src, dir, &part_name);
    let journal = find(run, src, dir, &journal_name);
    let noted = journal.as_ref().and_then(|(fd, _)| journal::noted(fd.as_fd()));
    let of_part = noted.is_some_and(|noted| noted != Noted::Directory);
    if let Some((fd, stat)) = part {
        // Without a journal only what is empty is known for a part: a run begins with that.
        if !of_part && file_bytes(&stat) > 0 || is_held(run, &fd, &stat) {
            return;
        }
        let _ = unlinkat(dir, &*part_name, AtFlags::empty());
    }
    // What is noted of a directory holds for as long as there is one.
    let stands = || statat(dir, name, AtFlags::empty()).is_ok_and(|stat| is_directory(&stat));
    if of_part || noted.is_some() && !stands() {
        let _ = unlinkat(dir, &*journal_name, AtFlags::empty());
    }
}

/// The file at `own`, if it may be ours.
fn find(
    run: &Run<'_>,
    src: &Place<'_>,
    dir: BorrowedFd<'_>,
    own: &CStr,
) -> Option<(OwnedFd, Stat)> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = openat(dir, own, flags, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    let ours = journal::is_private(&stat, run.euid) && !is_among_sources(src, dir, own);
    ours.then_some((fd, stat))
}
