//! What is needed to decide whether a file found in the destination is trusted.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::fs::{FileType, MemfdFlags, Mode, Stat, fchmod, fstat, memfd_create};
use rustix::io;
use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

use crate::fs::stat::grain;
use crate::fs::{Caller, FileId, ctime, each_name, is_symlink, lstat};
use crate::hash::{HashMap, HashSet};
use crate::lock::lock;

/// The caller, the start of the run, and the symbolic links that existed before it.
pub(crate) struct Security {
    pub(crate) caller: Caller,
    start: StartTime,
    directories: Mutex<HashMap<FileId, Directory>>,
}

/// What is known of a directory of the destination.
#[derive(Default)]
struct Directory {
    /// It was entered, changed or not.
    entered: bool,
    /// The symbolic links in it, if it had not changed when they were recorded.
    links: Option<HashSet<FileId>>,
}

impl Directory {
    fn add(&mut self, links: Vec<FileId>) {
        self.links.get_or_insert_default().extend(links);
    }
}

impl Security {
    /// For a run that starts now.
    pub(crate) fn new() -> Security {
        let start = StartTime::now();
        Security { caller: Caller::of_process(), start, directories: Mutex::default() }
    }

    /// Whether the inode was created, changed or renamed after the start of the run.
    pub(crate) fn changed_during_run(&self, stat: &Stat) -> bool {
        self.start.is_before(ctime(stat))
    }

    /// Whether a symbolic link belongs to root or to the caller. Others are not followed.
    pub(crate) fn is_owner_trusted(&self, stat: &Stat) -> bool {
        stat.st_uid == 0 || self.caller.owns(stat)
    }

    /// Records the links in the directory `dir`, which was found in `above` unless the user named
    /// it. A directory that was moved there during the run is in a directory that changed. The
    /// links of a directory that cannot be read are not trusted.
    pub(crate) fn record_directory(&self, dir: BorrowedFd<'_>, above: Option<BorrowedFd<'_>>) {
        if let Ok(stat) = fstat(dir) {
            lock(&self.directories).entry(FileId::of(&stat)).or_default().entered = true;
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
        lock(&self.directories).get(&FileId::of(dir)).is_some_and(|known| known.entered)
    }

    /// Whether `link` was in `dir` before the run.
    pub(crate) fn contains(&self, dir: BorrowedFd<'_>, link: FileId) -> bool {
        fstat(dir).is_ok_and(|dir| {
            let directories = lock(&self.directories);
            let links = directories.get(&FileId::of(&dir)).and_then(|known| known.links.as_ref());
            links.is_some_and(|links| links.contains(&link))
        })
    }

    /// The links that were in `dir` before the run; `None` if that is not known.
    pub(crate) fn recorded(&self, dir: FileId) -> Option<Vec<FileId>> {
        let directories = lock(&self.directories);
        let links = directories.get(&dir)?.links.as_ref()?;
        Some(links.iter().copied().collect())
    }

    /// Takes over what a partner recorded of the directory `dir`: as
    /// [`recorded`](Security::recorded).
    pub(crate) fn take_over(&self, dir: FileId, links: Option<Vec<FileId>>) {
        let mut directories = lock(&self.directories);
        let known = directories.entry(dir).or_default();
        known.entered = true;
        links.into_iter().for_each(|links| known.add(links));
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
            lock(&self.directories).entry(id).or_default().add(links);
        }
    }

    fn is_recorded(&self, dir: BorrowedFd<'_>) -> bool {
        let directories = lock(&self.directories);
        FileId::of_open(dir)
            .is_ok_and(|id| directories.get(&id).is_some_and(|known| known.links.is_some()))
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
    let stat = lstat(dir, name).ok()?;
    is_symlink(&stat).then(|| FileId::of(&stat))
}

/// The start of a run. Every later change has this timestamp or a later one.
///
/// Timestamps lag behind the clock by up to a tick of 1 to 10 ms: compared with the time of day, a
/// change by an attacker in that tick would be older than the run. Since Linux 6.13 timestamps are
/// finer, and no later change has an earlier timestamp than one that was read. Older kernels cannot
/// order changes within a tick, and all of them count as later.
///
/// A network file system uses the clock of its server. In seconds and nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartTime((i64, i64));

impl StartTime {
    pub(crate) fn now() -> StartTime {
        let coarse = clock_gettime_dynamic(DynamicClockId::Known(ClockId::RealtimeCoarse))
            .map(|time| (time.tv_sec, time.tv_nsec));
        // Where timestamps are coarse, that of a change is of the same tick as the clock or of the next one.
        let known = [coarse, ctime_of_a_change()].into_iter().filter_map(Result::ok);
        // If none is known, every change counts as later.
        StartTime(known.max().unwrap_or((i64::MIN, 0)))
    }

    /// Whether a change with this timestamp, in seconds and nanoseconds, came later.
    pub(crate) fn is_before(self, (seconds, nanoseconds): (i64, i64)) -> bool {
        // Some file systems store fewer digits.
        let grain = grain(nanoseconds);
        (seconds, nanoseconds) >= (self.0.0, self.0.1 / grain * grain)
    }
}

/// Changes a new file and returns the timestamp. Reading the old timestamp first makes the kernel
/// use a fine one for the change.
fn ctime_of_a_change() -> io::Result<(i64, i64)> {
    let file = memfd_create(c"start", MemfdFlags::CLOEXEC)?;
    fstat(&file)?;
    fchmod(&file, Mode::RUSR)?;
    Ok(ctime(&fstat(&file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_compared_to_the_digits_that_they_have() {
        let start = StartTime((7, 123_456_789));
        for (seconds, nanoseconds, later) in [
            (7, 123_456_789, true),
            (7, 123_456_788, false),
            (7, 123_456_790, true),
            (7, 123_456_780, true),
            (7, 123_456_700, true),
            (7, 123_456_600, false),
            (7, 123_000_000, true),
            (7, 122_000_000, false),
            (7, 0, true),
            (6, 0, false),
            (6, 999_999_999, false),
            (8, 1, true),
        ] {
            let time = (seconds, nanoseconds);
            assert_eq!(start.is_before(time), later, "{seconds}.{nanoseconds:09}");
        }
    }

    #[test]
    fn a_change_right_after_the_start_is_later() {
        let dir = tempfile::tempdir().expect("created");
        for number in 0..1000 {
            let start = StartTime::now();
            let link = dir.path().join(number.to_string());
            rustix::fs::symlink("nowhere", &link).expect("linked");
            let stat = rustix::fs::lstat(&link).expect("looked at");
            assert!(start.is_before(ctime(&stat)), "{number}");
        }
    }
}
