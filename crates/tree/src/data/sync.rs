//! `--durable`: what was copied is on the medium before the run ends well.
//!
//! A file is synced through the descriptor that wrote it, which hears of every error of its pages, so
//! that the error has the file's name. To sync each at once would have the file system write its
//! journal for each; so their pages are sent on their way, and several are waited for together. One
//! syncfs(2) at the end would be faster still, but it names no file, and waits for whatever anybody
//! else has written there. A directory is synced when its last entry is there.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;

use engines::sys::{begin_writing_back, close};
use rustix::fs::{Mode, OFlags, fstat, fsync, openat, syncfs};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec, retry_on_intr};

use crate::fs::{FileId, descriptors, is_regular};
use crate::lock::lock;
use crate::report::{Action, Diagnostic, PendingMessages, Receipt, Reporter, failed_at};
use crate::request::Options;

/// The most files that one worker keeps open to sync them together. More did not make it faster.
const FILES_MAX: usize = 32;

/// With fewer descriptors than this a process has none to spare.
const DESCRIPTORS_MIN: u64 = 256;

/// How many files a worker keeps open, where the process may have so many descriptors.
pub(crate) fn files_kept(options: &Options, descriptors: u64) -> usize {
    if options.durable && descriptors >= DESCRIPTORS_MIN { FILES_MAX } else { 0 }
}

/// Files of one worker that are written and not yet synced.
#[derive(Default)]
pub(crate) struct PendingSyncs {
    files: Vec<Written>,
    /// How many are kept, once that has been asked.
    files_max: Option<usize>,
}

struct Written {
    fd: OwnedFd,
    path: PathBuf,
    /// What will be told of it once it is on the medium.
    receipt: Option<Receipt>,
    /// By then other operands may be copied, of which less is to be said before it.
    pending: PendingMessages,
}

impl PendingSyncs {
    /// Takes over a file that is done with. Errors are told when it is synced.
    pub(crate) fn add(&mut self, report: &Reporter<'_>, fd: OwnedFd, path: PathBuf) {
        // Only a hint: where it is refused, the wait is longer.
        let _ = begin_writing_back(fd.as_fd(), 0, 0);
        self.files.push(Written { fd, path, receipt: None, pending: report.order.hold() });
    }

    /// Keeps the receipt of the file that was added last until that is synced; gives it back if it is
    /// another's.
    pub(crate) fn keep(&mut self, receipt: Receipt) -> Option<Receipt> {
        match self.files.last_mut().filter(|last| last.path == receipt.dst) {
            Some(last) => {
                last.receipt = Some(receipt);
                None
            }
            None => Some(receipt),
        }
    }

    /// Waits for all of them when they have become many.
    pub(crate) fn sync_if_many(&mut self, options: &Options, report: &Reporter<'_>) {
        let asked = || files_kept(options, descriptors::available());
        if !self.files.is_empty() && self.files.len() >= *self.files_max.get_or_insert_with(asked) {
            self.sync(report);
        }
    }

    /// Waits until all of them are on the medium.
    pub(crate) fn sync(&mut self, report: &Reporter<'_>) {
        for Written { fd, path, receipt, pending } in self.files.drain(..) {
            let synced = sync_file(fd.as_fd());
            let results = [(Action::Sync, synced), (Action::Close, close(fd))];
            let failed = results.map(|(action, result)| result.err().map(failed_at(action, &path)));
            let failures: Vec<_> = failed.into_iter().flatten().collect();
            report.report_pending(pending, failures.clone());
            if let Some(receipt) = receipt {
                report.observer.finished(receipt.failed_by(failures));
            }
        }
    }
}

/// Waits until the file is on the medium with all that is known of it.
pub(crate) fn sync_file(fd: BorrowedFd<'_>) -> io::Result<()> {
    match retry_on_intr(|| fsync(fd)) {
        // A pipe or a terminal keeps nothing.
        Err(Errno::INVAL) if !is_regular(&fstat(fd)?) => Ok(()),
        result => result,
    }
}

/// Syncs directories and whole file systems of one run; without `--durable` it does nothing.
pub(crate) struct Syncer<'r> {
    durable: bool,
    report: &'r Reporter<'r>,
    /// File systems with something that cannot be synced by itself, by device number: attributes of
    /// symbolic links and devices, and names in directories that no worker has open.
    file_systems: Mutex<HashMap<u64, (OwnedFd, PathBuf)>>,
}

impl<'r> Syncer<'r> {
    pub(crate) fn new(durable: bool, report: &'r Reporter<'r>) -> Syncer<'r> {
        Syncer { durable, report, file_systems: Mutex::default() }
    }

    /// Waits until the names in a directory and its attributes are on the medium. An error is
    /// reported.
    pub(crate) fn sync_directory(&self, dir: BorrowedFd<'_>, path: impl FnOnce() -> PathBuf) {
        if let Err(diagnostic) = self.try_sync_directory(dir, path) {
            self.report.report(diagnostic);
        }
    }

    /// The same, with the error returned.
    pub(crate) fn try_sync_directory(
        &self,
        dir: BorrowedFd<'_>,
        path: impl FnOnce() -> PathBuf,
    ) -> Result<(), Diagnostic> {
        if !self.durable {
            return Ok(());
        }
        let synced = match retry_on_intr(|| fsync(dir)) {
            // It is open for search only.
            Err(Errno::BADF) => open_readable(dir).and_then(|dir| retry_on_intr(|| fsync(&dir))),
            result => result,
        };
        match synced {
            // Some FUSE file systems cannot sync directories.
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(failed_at(Action::Sync, &path())(errno)),
        }
    }

    /// Remembers the file system of `fd`, a file or a directory, to be synced as a whole.
    pub(crate) fn note_file_system(&self, fd: BorrowedFd<'_>, path: impl FnOnce() -> PathBuf) {
        if !self.durable {
            return;
        }
        let Ok(stat) = fstat(fd) else { return };
        let mut noted = lock(&self.file_systems);
        let dev = FileId::of(&stat).dev;
        if noted.contains_key(&dev) {
            return;
        }
        let kept = if is_regular(&stat) { fcntl_dupfd_cloexec(fd, 0) } else { open_readable(fd) };
        match kept {
            Ok(kept) => drop(noted.insert(dev, (kept, path()))),
            Err(errno) => self.report.report(failed_at(Action::Sync, &path())(errno)),
        }
    }

    /// Waits until all of them are on the medium.
    pub(crate) fn sync_file_systems(&self) {
        let mut noted = lock(&self.file_systems);
        for (fd, path) in noted.drain().map(|(_, kept)| kept) {
            if let Err(errno) = retry_on_intr(|| syncfs(&fd)) {
                self.report.report(failed_at(Action::Sync, &path)(errno));
            }
        }
    }
}

fn open_readable(dir: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, c".", flags, Mode::empty())
}
