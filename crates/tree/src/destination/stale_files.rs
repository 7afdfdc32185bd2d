//! What a killed run left and no copy of `--resume` continues or replaces. A partial file: the
//! source has become a symbolic link or a short file, is linked to, or the destination has another
//! target. A temporary: the destination is complete, or is made from a partial file. They are
//! removed when the entry of that name is complete.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};

use super::partial::{self, Beside, JournalKind};
use super::temporary::{self, LeftOver, is_locked_elsewhere, is_source_name, remove_own};
use crate::entry::Entry;
use crate::fs::{Place, Trust, each_name, file_bytes, is_directory, is_named, is_regular, path_in};
use crate::report::Reporter;
use crate::request::Options;
use crate::security::{Security, resolve_symlink};

/// Whether a pre-existing directory has a name of a partial file, a journal or a temporary. That is
/// rare; otherwise no name has to be looked up.
#[derive(Default)]
pub(crate) struct StaleFiles {
    seen: AtomicBool,
    /// A source has an entry with the name of a temporary. Its copy may be in the same directory as
    /// that of an entry of another source, and is no temporary.
    copies_such_names: AtomicBool,
}

impl StaleFiles {
    /// Looks for such names in the pre-existing directory `dir`, before anything is created there.
    pub(crate) fn scan(&self, dir: BorrowedFd<'_>) {
        let listed = each_name(dir, |name, _kind| {
            if partial::is_own_name(name) || temporary::is_own_name(name) {
                self.seen.store(true, Ordering::Relaxed);
            }
        });
        if listed.is_err() {
            // A directory that cannot be listed may have such names.
            self.seen.store(true, Ordering::Relaxed);
        }
    }

    /// Removes what an earlier run left for the destination of `entry`, which is complete. If that was
    /// written `through_link`, the earlier run has written beside the target of the link.
    pub(crate) fn remove_for(
        &self,
        (options, report): (&Options, &Reporter<'_>),
        security: &Security,
        (entry, through_link): (&Entry<'_>, bool),
    ) {
        if !options.resume || options.dry_run {
            return;
        }
        if temporary::is_own_name(entry.dst.name) {
            self.copies_such_names.store(true, Ordering::Relaxed);
        }
        if self.may_exist_for(entry) {
            let dst = (entry.dst.dir, entry.dst.name);
            self.remove_all((security, report), &entry.src, dst, || entry.dst.path());
        }
        if through_link && !is_directory(&entry.src_stat) {
            let named = entry.dst.trust == Trust::Operand;
            // Nothing was written through a link that is not trusted, or that leads nowhere.
            if let Ok(Some(target)) =
                resolve_symlink(security, entry.dst.dir, entry.dst.name, named)
            {
                let dst = (target.dir.as_fd(), &*target.name);
                self.remove_all((security, report), &entry.src, dst, || path_in(dst));
            }
        }
    }

    /// Removes the temporary, the partial file and the journal of `dst`, which has the given path.
    fn remove_all(
        &self,
        (security, report): (&Security, &Reporter<'_>),
        src: &Place<'_>,
        dst: (BorrowedFd<'_>, &CStr),
        path: impl Fn() -> PathBuf,
    ) {
        let temporary = self.remove_temporary(security, src, dst);
        let partial = remove_partial(&Beside { security, src, dir: dst.0, name: dst.1 });
        for left_over in [temporary, partial].into_iter().filter_map(Result::err) {
            left_over.report(report, &path());
        }
    }

    /// Whether [`remove_for`](Self::remove_for) looks for anything.
    pub(super) fn may_exist_for(&self, entry: &Entry<'_>) -> bool {
        match entry.dst.trust {
            // A directory that this run created was empty.
            Trust::Created => false,
            Trust::Operand | Trust::PreExisting => {
                entry.is_operand || self.seen.load(Ordering::Relaxed)
            }
        }
    }

    /// Removes the temporary that an earlier run left for `dst`, which is complete. `src` is its
    /// source now.
    pub(crate) fn remove_temporary(
        &self,
        security: &Security,
        src: &Place<'_>,
        dst: (BorrowedFd<'_>, &CStr),
    ) -> Result<(), LeftOver> {
        match self.copies_such_names.load(Ordering::Relaxed) {
            true => Ok(()),
            false => temporary::remove_stale(security, src, dst),
        }
    }
}

/// Removes the partial file and the journal of a destination, unless another run uses them.
pub(crate) fn remove_partial(beside: &Beside<'_>) -> Result<(), LeftOver> {
    let &Beside { security, src, dir, name } = beside;
    let Some((partial_name, journal_name)) = partial::names(name) else { return Ok(()) };
    let mut removed = Ok(());
    let mut journal = find(src, dir, &journal_name);
    if let Some((_, stat)) = &journal
        && !beside.is_own(stat)?
    {
        journal = None;
    }
    let journal_kind = journal.as_ref().and_then(|(fd, _)| partial::journal_kind(fd.as_fd()));
    let is_of_file =
        journal_kind.is_some_and(|journal_kind| journal_kind != JournalKind::Directory);
    // A run that was killed shortly before the last rename has given the file its owner and mode. Then the
    // journal shows whose it is. A second name is that of the complete copy: see `AtomicFile::commit`.
    let has_records = journal_kind == Some(JournalKind::PartialFile);
    let is_of_journal = |stat: &Stat| has_records && is_regular(stat) && stat.st_nlink == 1;
    if let Some((fd, stat)) = find(src, dir, &partial_name)
        && (is_of_journal(&stat) || beside.is_own(&stat)?)
    {
        // Without a journal only an empty file is known to be a partial one: a run starts with
        // that.
        if !is_of_file && file_bytes(&stat) > 0 || is_locked_elsewhere(security, &fd, &stat) {
            return Ok(());
        }
        // The last holder of the lock may have renamed the file, and the name may be that of another run's.
        if !is_named(fd.as_fd(), dir, &partial_name) {
            return Ok(());
        }
        removed = remove_own(dir, &partial_name);
    }
    // The marker of a directory is kept as long as the directory exists.
    let exists = || statat(dir, name, AtFlags::empty()).is_ok_and(|stat| is_directory(&stat));
    if is_of_file || journal_kind.is_some() && !exists() {
        // Without its journal a partial file that stays would not be recognised by the next run.
        removed = removed.and_then(|()| remove_own(dir, &journal_name));
    }
    removed
}

/// Opens the file `own`, if it is not copied from the directory of `src`.
fn find(src: &Place<'_>, dir: BorrowedFd<'_>, own: &CStr) -> Option<(OwnedFd, Stat)> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = openat(dir, own, flags, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    (!is_source_name(src, dir, own)).then_some((fd, stat))
}
