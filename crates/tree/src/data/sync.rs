//! `--durable`: everything is synced before the run ends with success (docs/design/durable.md).
//!
//! What a worker writes is kept open and synced many files and directories at a time. Where they are
//! on a local file system, one syncfs(2) writes all of them and commits the journal once. Each file
//! is then asked for its writeback errors through the descriptor that wrote it, so that an error has
//! a file name. Elsewhere, and for few files, each is synced alone.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;

use engines::sys::{close, wait_for_writeback, write_back};
use rustix::fs::{Mode, OFlags, Stat, fstat, fsync, openat, syncfs};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec, retry_on_intr};

use super::writeback::start_writeback;
use crate::fs::{BTRFS, EXT4, FileId, Handle, TMPFS, VFAT, XFS, is_regular, process};
use crate::hash::HashMap;
use crate::lock::lock;
use crate::metadata::set_times;
use crate::report::{Action, PendingMessages, Receipt, Reporter, Result, failed_at};
use crate::request::Options;

/// Files and directories that a worker syncs together, if the process may have enough descriptors.
const FILES_MAX: usize = 1024;

/// The least, where they are few.
const FILES_MIN: usize = 32;

/// One of so many descriptors may be kept by each worker, of which there are sixteen or more.
const DESCRIPTORS_A_FILE: u64 = 32;

/// With fewer descriptors files are synced one by one.
const DESCRIPTORS_MIN: u64 = 256;

/// Fewer files are synced one by one: syncfs(2) also waits for what other processes have written.
const SYNCFS_FILES_MIN: usize = 16;

/// The writeback of a file of as many bytes starts when it is complete, that of shorter files when all
/// are synced: one by one at once took longer (docs/design/durable.md).
const EARLY_WRITEBACK_BYTES_MIN: u64 = 1 << 20;

/// File systems that keep an error of the allocation of blocks for later calls. ext4 returns it to the
/// call that starts the writeback, and to none after it.
const KEEPS_ALLOCATION_ERRORS: [u64; 3] = [XFS, BTRFS, TMPFS];

/// How many files a worker keeps open to sync them, if the process may have `descriptors`.
pub(crate) fn files_kept(options: &Options, descriptors: u64) -> usize {
    if !options.durable || descriptors < DESCRIPTORS_MIN {
        return 0;
    }
    let share = usize::try_from(descriptors / DESCRIPTORS_A_FILE).unwrap_or(FILES_MAX);
    share.clamp(FILES_MIN, FILES_MAX)
}

/// The files and directories that a worker has written and not yet synced.
#[derive(Default)]
pub(crate) struct PendingSyncs {
    files: Vec<Pending>,
    /// How many are kept, once that is known.
    files_max: Option<usize>,
}

/// A file or directory that was written.
pub(crate) struct Written {
    pub(crate) fd: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) is_directory: bool,
    /// Bytes of a file.
    pub(crate) bytes: u64,
    /// Why its writeback could not start.
    pub(crate) early_error: Option<Errno>,
    /// The file system of the file, if that is one on which syncfs(2) can be relied.
    pub(crate) local: Option<LocalFs>,
    /// The file whose times are set once more after the sync.
    pub(crate) times_of: Option<Stat>,
    /// Passed to the observer after the sync.
    pub(crate) receipt: Option<Receipt>,
}

/// A local file system.
#[derive(Clone, Copy)]
pub(crate) struct LocalFs {
    pub(crate) dev: u64,
    /// The number of the file system in statfs(2).
    pub(crate) fs_type: u64,
}

struct Pending {
    written: Written,
    /// Holds back messages about later operands until the sync.
    messages: PendingMessages,
}

impl PendingSyncs {
    /// Adds a file or directory. Errors are reported when it is synced.
    pub(crate) fn add(&mut self, report: &Reporter<'_>, mut written: Written) {
        if written.bytes >= EARLY_WRITEBACK_BYTES_MIN {
            written.start_writeback();
        }
        self.files.push(Pending { written, messages: report.order.hold() });
    }

    /// Keeps the receipt of the file that was added last until it is synced. Returns the receipt of
    /// another file.
    pub(crate) fn keep(&mut self, receipt: Receipt) -> Option<Receipt> {
        match self.files.last_mut().filter(|last| last.written.path == receipt.dst) {
            Some(last) => {
                last.written.receipt = Some(receipt);
                None
            }
            None => Some(receipt),
        }
    }

    /// Whether they are as many as may be kept.
    pub(crate) fn are_many(&mut self, options: &Options) -> bool {
        let asked = || files_kept(options, process::available_descriptors());
        !self.files.is_empty() && self.files.len() >= *self.files_max.get_or_insert_with(asked)
    }

    /// Syncs all of them.
    pub(crate) fn sync(&mut self, report: &Reporter<'_>) {
        let results = self.results();
        for (Pending { written, messages }, result) in self.files.drain(..).zip(results) {
            let Written { fd, path, times_of, receipt, .. } = written;
            // A server of SMB takes the time of the sync for that of the last modification.
            let timed = times_of.map_or(Ok(()), |src| set_times(Handle::Open(fd.as_fd()), &src));
            let results =
                [(Action::Sync, result), (Action::Times, timed), (Action::Close, close(fd))];
            let failed = results.map(|(action, result)| result.err().map(failed_at(action, &path)));
            let failures: Vec<_> = failed.into_iter().flatten().collect();
            report.report_pending(messages, failures.clone());
            if let Some(receipt) = receipt {
                report.observer.finished(receipt.failed_by(failures));
            }
        }
    }

    /// Syncs all of them, and returns the result of each.
    fn results(&mut self) -> Vec<io::Result<()>> {
        let mut is_fs_synced = vec![false; self.files.len()];
        // Files, and an error that may be that of any of them.
        let mut fs_errors: Vec<(Vec<usize>, Errno)> = Vec::new();
        for members in self.groups() {
            for &index in &members {
                self.files[index].written.start_writeback_in_group();
            }
            // A directory may be open for search only, and then names no file system.
            let is_file = |&&index: &&usize| !self.files[index].written.is_directory;
            let first = *members.iter().find(is_file).unwrap_or(&members[0]);
            match self.files[first].written.sync_file_system() {
                Synced::Yes => members.into_iter().for_each(|index| is_fs_synced[index] = true),
                Synced::No => (),
                Synced::FirstFailed(errno) => fs_errors.push((vec![first], errno)),
                Synced::Failed(errno) => fs_errors.push((members, errno)),
            }
        }
        let mut results: Vec<io::Result<()>> = self
            .files
            .iter()
            .zip(is_fs_synced)
            .map(|(Pending { written, .. }, is_fs_synced)| {
                written.early_error.map_or_else(|| written.sync(is_fs_synced), Err)
            })
            .collect();
        for (members, errno) in fs_errors {
            // The kernel may report an error of the file system once, and then it was to syncfs(2).
            // If no file has one of its own, it may be that of any of them.
            if members.iter().all(|&index| results[index].is_ok()) {
                members.into_iter().for_each(|index| results[index] = Err(errno));
            }
        }
        results
    }

    /// The indices of the files on each file system that many of them are on.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<(u64, Vec<usize>)> = Vec::new();
        for (index, Pending { written, .. }) in self.files.iter().enumerate() {
            let Some(LocalFs { dev, .. }) = written.local else { continue };
            match groups.iter_mut().find(|(known, _)| *known == dev) {
                Some((_, members)) => members.push(index),
                None => groups.push((dev, vec![index])),
            }
        }
        let groups = groups.into_iter().map(|(_, members)| members);
        groups.filter(|members| members.len() >= SYNCFS_FILES_MIN).collect()
    }
}

/// Whether a file system was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Synced {
    Yes,
    /// The sync could not be tried.
    No,
    /// Why the file could not be synced after it.
    FirstFailed(Errno),
    /// Why not.
    Failed(Errno),
}

impl Written {
    /// Starts the writeback of a file. Its error is kept: no later call returns it.
    fn start_writeback(&mut self) {
        let started = start_writeback(self.fd.as_fd(), 0..0);
        self.early_error = self.early_error.or(started.err());
    }

    /// Starts the writeback of a file, if no later call returns an error of the allocation of its blocks.
    fn start_writeback_in_group(&mut self) {
        let keeps = |local: LocalFs| KEEPS_ALLOCATION_ERRORS.contains(&local.fs_type);
        if !self.is_directory && !self.local.is_some_and(keeps) {
            self.start_writeback();
        }
    }

    /// Syncs its file system. An open file is told of the errors of its file system since it was
    /// opened, so the first of a group is asked. The fsync(2) after that finds nothing to write; it
    /// fails where the file system has become read-only because of an error, of which syncfs(2) says
    /// nothing.
    fn sync_file_system(&self) -> Synced {
        let readable;
        let fd = if self.is_directory {
            // It may be open with O_PATH.
            match open_readable(self.fd.as_fd()) {
                Ok(opened) => readable = opened,
                Err(_) => return Synced::No,
            }
            readable.as_fd()
        } else {
            self.fd.as_fd()
        };
        if let Err(errno) = retry_on_intr(|| syncfs(fd)) {
            return Synced::Failed(errno);
        }
        let synced = if self.is_directory { sync_directory(fd) } else { sync_file(fd) };
        synced.map_or_else(Synced::FirstFailed, |()| Synced::Yes)
    }

    /// Syncs it; if its file system was synced, only asks for its errors.
    fn sync(&self, is_fs_synced: bool) -> io::Result<()> {
        let fd = self.fd.as_fd();
        match (self.is_directory, is_fs_synced) {
            (true, true) => Ok(()),
            (true, false) => sync_directory(fd),
            (false, false) => sync_file(fd),
            (false, true) => match wait_for_writeback(fd) {
                // The call is not available, and has consumed no error.
                Err(Errno::NOSYS | Errno::INVAL | Errno::PERM) => sync_file(fd),
                result => result,
            },
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

/// Whether the data of a file that has no name yet can be written so that a name which it gets later stands for
/// that data after a loss of power.
///
/// btrfs records nothing of such a file in its log. If the directory is synced before the next commit, the log
/// has the new name with an empty file. Of other file systems that is not known. All of them keep the data of a
/// file that is synced under one name and then renamed.
pub(crate) fn is_written_without_name(fs_type: Option<u64>) -> bool {
    matches!(fs_type, Some(TMPFS | EXT4 | XFS))
}

/// Makes sure that a name which the file gets now survives a loss of power only with the data. Other than
/// after [`sync_file`], neither may survive.
///
/// On ext4 and xfs the length of a file and its block map are changed before the writeback of its data ends,
/// and the commit of a journal begins with a flush of the disk. So the commit of the name, which comes later,
/// commits all of them. That saves the wait for the commit.
///
/// # Errors
/// Errors of the writeback.
pub(crate) fn write_before_name(fd: BorrowedFd<'_>, fs_type: Option<u64>) -> io::Result<()> {
    match fs_type {
        // No file survives.
        Some(TMPFS) => Ok(()),
        Some(EXT4 | XFS) => match retry_on_intr(|| write_back(fd, 0, 0)) {
            // The call is not available, and has consumed no error.
            Err(Errno::NOSYS | Errno::INVAL | Errno::PERM) => sync_file(fd),
            result => result,
        },
        _ => sync_file(fd),
    }
}

/// Writes what a file system keeps with a name, after the file has got it. FAT has the length of a file and its
/// first block there. A rename writes them as those of an empty file, until the file is written again.
///
/// # Errors
/// Errors of the writeback.
pub(crate) fn write_after_name(fd: BorrowedFd<'_>, fs_type: Option<u64>) -> io::Result<()> {
    if fs_type == Some(VFAT) { sync_file(fd) } else { Ok(()) }
}

/// Syncs the names in a directory and its attributes.
fn sync_directory(dir: BorrowedFd<'_>) -> io::Result<()> {
    let synced = match retry_on_intr(|| fsync(dir)) {
        // It is open with O_PATH.
        Err(Errno::BADF) => open_readable(dir).and_then(|dir| retry_on_intr(|| fsync(&dir))),
        result => result,
    };
    match synced {
        // Some FUSE file systems cannot sync directories.
        Err(Errno::INVAL | Errno::NOSYS) => Ok(()),
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

    /// Syncs the names in a directory and its attributes, and returns the error.
    pub(crate) fn try_sync_directory(
        &self,
        dir: BorrowedFd<'_>,
        path: impl FnOnce() -> PathBuf,
    ) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        sync_directory(dir).map_err(|errno| failed_at(Action::Sync, &path())(errno))
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
