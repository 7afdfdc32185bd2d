//! Which symbolic links existed in the destination before the run.
//!
//! The ctime of a link does not tell: XFS exchanges two names without changing it. Every change of
//! names changes the ctime of the directory. So the links of a directory are recorded before the
//! run changes anything in it, and only if the directory has not changed since the start of the
//! run.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io;

use super::start_time::StartTime;
use crate::fs::{FileId, ctime, each_name, is_symlink};
use crate::hash::{HashMap, HashSet};
use crate::lock::lock;

/// The links of the directories that had not changed when they were entered.
pub(crate) struct PreexistingSymlinks {
    start: StartTime,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    /// Every directory that was entered, changed or not.
    entered: HashSet<FileId>,
    directories: HashSet<FileId>,
    /// Of each directory that has some.
    links: HashMap<FileId, HashSet<FileId>>,
}

impl PreexistingSymlinks {
    pub(crate) fn new(start: StartTime) -> PreexistingSymlinks {
        PreexistingSymlinks { start, recorded: Mutex::default() }
    }

    /// Records the links in the directory `dir`, which was found in `above` unless the user named
    /// it. A directory that was moved there during the run is in a directory that changed. The
    /// links of a directory that cannot be read are not trusted.
    pub(crate) fn record_directory(&self, dir: BorrowedFd<'_>, above: Option<BorrowedFd<'_>>) {
        if let Ok(stat) = fstat(dir) {
            lock(&self.recorded).entered.insert(FileId::of(&stat));
        }
        let found = above.is_none_or(|above| self.is_recorded(above));
        if found && !self.is_recorded(dir) {
            self.record(dir, || links_in(dir));
        }
    }

    /// Records only `names` in `dir`, which may contain millions of others.
    pub(crate) fn record_names(&self, dir: BorrowedFd<'_>, names: &[&CStr]) {
        self.record(dir, || Ok(names.iter().filter_map(|name| link_at(dir, name)).collect()));
    }

    /// Whether `dir` was entered, so that only recorded links in it are followed.
    pub(crate) fn is_entered(&self, dir: &Stat) -> bool {
        lock(&self.recorded).entered.contains(&FileId::of(dir))
    }

    /// Whether `link` was in `dir` before the run.
    pub(crate) fn contains(&self, dir: BorrowedFd<'_>, link: FileId) -> bool {
        fstat(dir).is_ok_and(|dir| {
            let recorded = lock(&self.recorded);
            recorded.links.get(&FileId::of(&dir)).is_some_and(|links| links.contains(&link))
        })
    }

    /// The links that were in `dir` before the run; `None` if that is not known.
    pub(crate) fn recorded(&self, dir: FileId) -> Option<Vec<FileId>> {
        let recorded = lock(&self.recorded);
        recorded
            .directories
            .contains(&dir)
            .then(|| recorded.links.get(&dir).into_iter().flatten().copied().collect())
    }

    /// Takes over what a partner recorded of the directory `dir`: as
    /// [`recorded`](PreexistingSymlinks::recorded).
    pub(crate) fn take_over(&self, dir: FileId, links: Option<Vec<FileId>>) {
        let mut recorded = lock(&self.recorded);
        recorded.entered.insert(dir);
        if let Some(links) = links {
            recorded.directories.insert(dir);
            if !links.is_empty() {
                recorded.links.entry(dir).or_default().extend(links);
            }
        }
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
        // Links may have been added while the directory was read.
        if let Some(id) = unchanged() {
            let mut recorded = lock(&self.recorded);
            recorded.directories.insert(id);
            if !links.is_empty() {
                recorded.links.entry(id).or_default().extend(links);
            }
        }
    }

    fn is_recorded(&self, dir: BorrowedFd<'_>) -> bool {
        fstat(dir).is_ok_and(|dir| lock(&self.recorded).directories.contains(&FileId::of(&dir)))
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
