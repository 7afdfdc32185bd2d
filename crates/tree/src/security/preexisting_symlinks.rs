//! Which symbolic links stood in the destination before the run.
//!
//! The stamp of a link does not tell: XFS exchanges two names without a new stamp for what they
//! name. What every change of names stamps is the directory. So the links of a directory are noted
//! before the run changes anything in it, and only if nobody else has since the run began.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io;

use super::start_time::StartTime;
use crate::fs::{FileId, ctime, each_name, is_symlink};
use crate::lock::lock;

/// Directories of the destination that were found as they had been, and their links.
pub(crate) struct PreexistingSymlinks {
    start: StartTime,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    /// All that were entered, as they had been or not.
    entered: HashSet<FileId>,
    directories: HashSet<FileId>,
    /// Each with the directory that it stood in.
    links: HashSet<(FileId, FileId)>,
}

impl PreexistingSymlinks {
    pub(crate) fn new(start: StartTime) -> PreexistingSymlinks {
        PreexistingSymlinks { start, recorded: Mutex::default() }
    }

    /// Notes the links in the directory `dir`, which was found in `above` unless the user named it.
    /// One that was moved there during the run is in a directory that has changed. A directory that
    /// cannot be read has no links that stood.
    pub(crate) fn enter(&self, dir: BorrowedFd<'_>, above: Option<BorrowedFd<'_>>) {
        if let Ok(stat) = fstat(dir) {
            self.recorded().entered.insert(FileId::of(&stat));
        }
        let found = above.is_none_or(|above| self.is_recorded(above));
        if found && !self.is_recorded(dir) {
            self.record(dir, || links_in(dir));
        }
    }

    /// The same for a directory in which only `names` are going to be looked up: there may be
    /// millions of others.
    pub(crate) fn enter_for(&self, dir: BorrowedFd<'_>, names: &[&CStr]) {
        self.record(dir, || Ok(names.iter().filter_map(|name| link_at(dir, name)).collect()));
    }

    /// Whether `dir` is one of those in which only links that stood are followed.
    pub(crate) fn is_entered(&self, dir: &Stat) -> bool {
        self.recorded().entered.contains(&FileId::of(dir))
    }

    /// Whether `link` stood in `dir`.
    pub(crate) fn contains(&self, dir: BorrowedFd<'_>, link: FileId) -> bool {
        fstat(dir).is_ok_and(|dir| self.recorded().links.contains(&(FileId::of(&dir), link)))
    }

    fn record(&self, dir: BorrowedFd<'_>, links: impl FnOnce() -> io::Result<Vec<FileId>>) {
        let unchanged = || {
            let stat = fstat(dir).ok()?;
            (!self.start.is_before(ctime(&stat))).then(|| FileId::of(&stat))
        };
        if unchanged().is_none() {
            return;
        }
        let Ok(links) = links() else { return };
        // What was seen has stood only if it could not have come while it was looked at.
        if let Some(id) = unchanged() {
            let mut recorded = self.recorded();
            recorded.directories.insert(id);
            recorded.links.extend(links.into_iter().map(|link| (id, link)));
        }
    }

    fn is_recorded(&self, dir: BorrowedFd<'_>) -> bool {
        fstat(dir).is_ok_and(|dir| self.recorded().directories.contains(&FileId::of(&dir)))
    }

    fn recorded(&self) -> std::sync::MutexGuard<'_, Recorded> {
        lock(&self.recorded)
    }
}

fn links_in(dir: BorrowedFd<'_>) -> io::Result<Vec<FileId>> {
    let mut links = Vec::new();
    each_name(dir, |name, kind| {
        if matches!(kind, FileType::Symlink | FileType::Unknown) {
            links.extend(link_at(dir, name));
        }
    })?;
    Ok(links)
}

fn link_at(dir: BorrowedFd<'_>, name: &CStr) -> Option<FileId> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    is_symlink(&stat).then(|| FileId::of(&stat))
}
