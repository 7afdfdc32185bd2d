//! Which symbolic links stood in the destination before the run.
//!
//! The stamp of a link does not tell: XFS exchanges two names without a new stamp for what they
//! name. What every change of names stamps is the directory. So the links of a directory are noted
//! before the run changes anything in it, and only if nobody else has since the run began.

use std::collections::HashSet;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use rustix::io::{self, Errno};

use crate::began::Began;
use crate::identity::{FileId, ctime, is_symlink};
use crate::lock::lock;

/// Directories of the destination that were found as they had been, and their links.
pub(crate) struct Standing {
    began: Began,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    /// All that were entered, as they had been or not.
    entered: HashSet<FileId>,
    directories: HashSet<FileId>,
    /// Each with the directory that it stood in.
    links: HashSet<(FileId, FileId)>,
}

impl Standing {
    pub(crate) fn new(began: Began) -> Standing {
        Standing { began, noted: Mutex::default() }
    }

    /// Notes the links in the directory `dir`, which was found in `above` unless the user named it.
    /// One that was moved there during the run is in a directory that has changed. A directory that
    /// cannot be read has no links that stood.
    pub(crate) fn enter(&self, dir: BorrowedFd<'_>, above: Option<BorrowedFd<'_>>) {
        if let Ok(stat) = fstat(dir) {
            self.noted().entered.insert(FileId::of(&stat));
        }
        let found = above.is_none_or(|above| self.is_noted(above));
        if found && !self.is_noted(dir) {
            self.note(dir, || links_in(dir));
        }
    }

    /// The same for a directory in which only `names` are going to be looked up: there may be
    /// millions of others.
    pub(crate) fn enter_for(&self, dir: BorrowedFd<'_>, names: &[&CStr]) {
        self.note(dir, || Ok(names.iter().filter_map(|name| link_at(dir, name)).collect()));
    }

    /// Whether `dir` is one of those in which only links that stood are followed.
    pub(crate) fn is_entered(&self, dir: &Stat) -> bool {
        self.noted().entered.contains(&FileId::of(dir))
    }

    /// Whether `link` stood in `dir`.
    pub(crate) fn stood(&self, dir: BorrowedFd<'_>, link: FileId) -> bool {
        fstat(dir).is_ok_and(|dir| self.noted().links.contains(&(FileId::of(&dir), link)))
    }

    fn note(&self, dir: BorrowedFd<'_>, links: impl FnOnce() -> io::Result<Vec<FileId>>) {
        let unchanged = || {
            let stat = fstat(dir).ok()?;
            (!self.began.is_before(ctime(&stat))).then(|| FileId::of(&stat))
        };
        if unchanged().is_none() {
            return;
        }
        let Ok(links) = links() else { return };
        // What was seen has stood only if it could not have come while it was looked at.
        if let Some(id) = unchanged() {
            let mut noted = self.noted();
            noted.directories.insert(id);
            noted.links.extend(links.into_iter().map(|link| (id, link)));
        }
    }

    fn is_noted(&self, dir: BorrowedFd<'_>) -> bool {
        fstat(dir).is_ok_and(|dir| self.noted().directories.contains(&FileId::of(&dir)))
    }

    fn noted(&self) -> std::sync::MutexGuard<'_, Noted> {
        lock(&self.noted)
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

/// Shows `look` each name in `dir`, and what the directory says it is.
pub(crate) fn each_name(
    dir: BorrowedFd<'_>,
    mut look: impl FnMut(&CStr, FileType),
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // To look leaves no trace where that is allowed: to the owner, and to root.
    let listed = match openat(dir, c".", flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(dir, c".", flags, Mode::empty()),
        result => result,
    }?;
    let mut buffer = [MaybeUninit::uninit(); 8 << 10];
    let mut entries = RawDir::new(listed.as_fd(), &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        look(entry.file_name(), entry.file_type());
    }
    Ok(())
}

fn link_at(dir: BorrowedFd<'_>, name: &CStr) -> Option<FileId> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    is_symlink(&stat).then(|| FileId::of(&stat))
}
