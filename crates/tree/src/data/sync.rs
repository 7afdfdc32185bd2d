//! `--durable`: everything is synced before the run ends with success (docs/design/durable.md).
//!
//! A file is synced through the descriptor that wrote it, which gets every writeback error, so that
//! the error has a file name. Syncing each file at once would commit the file system's journal for
//! each; so writeback is started, and several files are waited for together. A directory is synced
//! after its last entry.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;

use engines::sys::{begin_writing_back, close};
use rustix::fs::{Mode, OFlags, fstat, fsync, openat, syncfs};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec, retry_on_intr};

use crate::fs::{FileId, descriptors, is_regular};
use crate::lock::lock;
use crate::report::{Action, PendingMessages, Receipt, Reporter, Result, failed_at};
use crate::request::Options;

/// Files that a worker syncs together. More were not faster.
const FILES_MAX: usize = 32;

/// With fewer descriptors files are synced one by one.
const DESCRIPTORS_MIN: u64 = 256;

/// How many files a worker keeps open to sync them, if the process may have `descriptors`.
pub(crate) fn files_kept(options: &Options, descriptors: u64) -> usize {
    if options.durable && descriptors >= DESCRIPTORS_MIN { FILES_MAX } else { 0 }
}

/// The files that a worker has written and not yet synced.
#[derive(Default)]
pub(crate) struct PendingSyncs {
    files: Vec<Written>,
    /// How many are kept, once that is known.
    files_max: Option<usize>,
}

struct Written {
    fd: OwnedFd,
    path: PathBuf,
    /// Passed to the observer after the sync.
    receipt: Option<Receipt>,
    /// Holds back messages about later operands until the sync.
    pending: PendingMessages,
}

impl PendingSyncs {
    /// Adds a file that was written. Errors are reported when it is synced.
    pub(crate) fn add(&mut self, report: &Reporter<'_>, fd: OwnedFd, path: PathBuf) {
        // A hint: if it is refused, the sync takes longer.
        let _ = begin_writing_back(fd.as_fd(), 0, 0);
        self.files.push(Written { fd, path, receipt: None, pending: report.order.hold() });
    }

    /// Keeps the receipt of the file that was added last until it is synced. Returns the receipt of
    /// another file.
    pub(crate) fn keep(&mut self, receipt: Receipt) -> Option<Receipt> {
        match self.files.last_mut().filter(|last| last.path == receipt.dst) {
            Some(last) => {
                last.receipt = Some(receipt);
                None
            }
            None => Some(receipt),
        }
    }

    /// Syncs all of them if they are many.
    pub(crate) fn sync_if_many(&mut self, options: &Options, report: &Reporter<'_>) {
        let asked = || files_kept(options, descriptors::available());
        if !self.files.is_empty() && self.files.len() >= *self.files_max.get_or_insert_with(asked) {
            self.sync(report);
        }
    }

    /// Syncs all of them.
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

/// fsync(2).
pub(crate) fn sync_file(fd: BorrowedFd<'_>) -> io::Result<()> {
    match retry_on_intr(|| fsync(fd)) {
        // Pipes and terminals cannot be synced.
        Err(Errno::INVAL) if !is_regular(&fstat(fd)?) => Ok(()),
        result => result,
    }
}

/// Syncs directories and file systems of one run; without `--durable` it does nothing.
pub(crate) struct Syncer<'r> {
    durable: bool,
    report: &'r Reporter<'r>,
    /// File systems to sync as a whole, by device number, because they have changes that cannot be
    /// synced alone: attributes of symbolic links and devices, and names in directories that are
    /// not open.
    file_systems: Mutex<HashMap<u64, (OwnedFd, PathBuf)>>,
}

impl<'r> Syncer<'r> {
    pub(crate) fn new(durable: bool, report: &'r Reporter<'r>) -> Syncer<'r> {
        Syncer { durable, report, file_systems: Mutex::default() }
    }

    /// Syncs the names in a directory and its attributes. An error is reported.
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
    ) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        let synced = match retry_on_intr(|| fsync(dir)) {
            // It is open with O_PATH.
            Err(Errno::BADF) => open_readable(dir).and_then(|dir| retry_on_intr(|| fsync(&dir))),
            result => result,
        };
        match synced {
            // Some FUSE file systems cannot sync directories.
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(failed_at(Action::Sync, &path())(errno)),
        }
    }

    /// Records the file system of `fd` to be synced as a whole.
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

    /// Syncs the recorded file systems.
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
