//! `--durable`: everything is synced before the run ends with success (docs/design/durable.md).
//!
//! What a worker writes is kept open and synced many files and directories at a time. Where they are
//! on a local file system, one syncfs(2) writes all of them and commits the journal once. Each file
//! is then asked for its writeback errors through the descriptor that wrote it, so that an error has
//! a file name. Elsewhere, and for few files, each is synced alone.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, fsync, openat, syncfs};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec, retry_on_intr};
use sys::{begin_writing_back, close, wait_for_writeback, write_back};

use crate::fs::{BTRFS, EXT4, FileId, Handle, TMPFS, VFAT, XFS, is_regular, open_operand, process};
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
    files: Vec<Written>,
    /// How many are kept, once that is known.
    files_max: Option<usize>,
}

/// A file or directory that was written.
pub(crate) struct Written {
    pub(crate) fd: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) is_directory: bool,
    /// Why its writeback could not start.
    pub(crate) early_error: Option<Errno>,
    /// The file system of the file, if that is one on which syncfs(2) can be relied.
    pub(crate) local: Option<LocalFs>,
    /// The file whose times are set once more after the close.
    pub(crate) times_of: Option<Stat>,
    /// Passed to the observer after the sync.
    pub(crate) receipt: Option<Receipt>,
    /// Holds back messages about later operands until the sync.
    pub(crate) messages: PendingMessages,
}

/// A local file system.
#[derive(Clone, Copy)]
pub(crate) struct LocalFs {
    pub(crate) dev: u64,
    /// The number of the file system in statfs(2).
    pub(crate) fs_type: u64,
}

impl PendingSyncs {
    /// Adds a file or directory. Errors are reported when it is synced.
    pub(crate) fn add(&mut self, report: &Reporter<'_>, mut written: Written) {
        written.messages = report.order.hold();
        self.files.push(written);
    }

    /// Keeps the receipt of the file that was added last until it is synced. That of another file goes to the
    /// observer.
    pub(crate) fn finish(&mut self, report: &Reporter<'_>, receipt: Receipt) {
        let is_its = |last: &&mut Written| last.path == receipt.dst && last.receipt.is_none();
        match self.files.last_mut().filter(is_its) {
            Some(last) => last.receipt = Some(receipt),
            None => report.observer.finished(receipt),
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
        for (written, result) in self.files.drain(..).zip(results) {
            let Written { fd, path, times_of, receipt, messages, .. } = written;
            let [closed, timed] = close_with_times(fd, times_of.as_ref());
            let results = [(Action::Sync, result), (Action::Close, closed), (Action::Times, timed)];
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
                self.files[index].start_writeback();
            }
            // A directory may be open for search only, and then names no file system.
            let is_file = |&&index: &&usize| !self.files[index].is_directory;
            let first = *members.iter().find(is_file).unwrap_or(&members[0]);
            let first_file = &self.files[first];
            match first_file.sync_file_system() {
                // An open file is told of the errors of its file system since it was opened. The fsync(2)
                // finds nothing to write; it fails where the file system has become read-only because of an
                // error, of which syncfs(2) says nothing.
                Ok(true) => match first_file.sync(false) {
                    Ok(()) => members.into_iter().for_each(|index| is_fs_synced[index] = true),
                    Err(errno) => fs_errors.push((vec![first], errno)),
                },
                Ok(false) => {}
                Err(errno) => fs_errors.push((members, errno)),
            }
        }
        let mut results: Vec<io::Result<()>> = self
            .files
            .iter()
            .zip(is_fs_synced)
            .map(|(written, is_fs_synced)| {
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
        let mut groups: HashMap<u64, Vec<usize>> = HashMap::default();
        for (index, written) in self.files.iter().enumerate() {
            written.local.iter().for_each(|fs| groups.entry(fs.dev).or_default().push(index));
        }
        groups.into_values().filter(|members| members.len() >= SYNCFS_FILES_MIN).collect()
    }
}

impl Written {
    /// An empty file.
    pub(super) fn new(fd: OwnedFd, path: PathBuf, local: Option<LocalFs>) -> Written {
        let (is_directory, early_error, times_of, receipt) = (false, None, None, None);
        let messages = PendingMessages::default();
        Written { fd, path, is_directory, early_error, local, times_of, receipt, messages }
    }

    /// Starts the writeback of a file, if no later call returns an error of the allocation of its blocks.
    fn start_writeback(&mut self) {
        let keeps = |local: LocalFs| KEEPS_ALLOCATION_ERRORS.contains(&local.fs_type);
        if !self.is_directory && !self.local.is_some_and(keeps) {
            self.early_error = start_writeback(self.fd.as_fd(), 0..0).err();
        }
    }

    /// Syncs its file system. Returns whether that could be tried.
    fn sync_file_system(&self) -> io::Result<bool> {
        // A directory may be open with O_PATH.
        let opened = self.is_directory.then(|| open_operand(self.fd.as_fd(), c".")).transpose();
        let Ok(opened) = opened else { return Ok(false) };
        let fd = opened.as_ref().unwrap_or(&self.fd).as_fd();
        retry_on_intr(|| syncfs(fd)).map(|()| true)
    }

    /// Syncs it; if its file system was synced, only asks for its errors.
    fn sync(&self, is_fs_synced: bool) -> io::Result<()> {
        let fd = self.fd.as_fd();
        match (self.is_directory, is_fs_synced) {
            (true, true) => Ok(()),
            (true, false) => sync_directory(fd),
            (false, false) => sync_file(fd),
            (false, true) => or_sync_file(fd, wait_for_writeback(fd)),
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

/// `written`, or the result of fsync(2) if the call is not available, which has consumed no error then.
fn or_sync_file(fd: BorrowedFd<'_>, written: io::Result<()>) -> io::Result<()> {
    if is_available(written)? { Ok(()) } else { sync_file(fd) }
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
        Some(EXT4 | XFS) => or_sync_file(fd, retry_on_intr(|| write_back(fd, 0, 0))),
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

/// Sets the times of a file to those of `src`, if any, closes it, and sets them again. Returns the results of the close
/// and of the times.
///
/// A server of SMB takes the time of a sync for that of the last modification. s3fs 1.90 forgets times that are set
/// between a sync and the close.
pub(super) fn close_with_times(fd: OwnedFd, src: Option<&Stat>) -> [io::Result<()>; 2] {
    let Some(src) = src else { return [close(fd), Ok(())] };
    let timed = set_times(Handle::Open(fd.as_fd()), src);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let kept = openat(CWD, Handle::proc_path(fd.as_fd()), flags, Mode::empty());
    let closed = close(fd);
    let timed = match kept.map(|file| set_times(Handle::Path(file.as_fd()), src)) {
        // A FUSE file system that knows files by their names does not find one that was opened by another name.
        Ok(Err(Errno::NOENT | Errno::STALE)) | Err(_) => timed,
        Ok(again) => again,
    };
    [closed, timed]
}

/// Syncs the names in a directory and its attributes.
fn sync_directory(dir: BorrowedFd<'_>) -> io::Result<()> {
    let synced = match retry_on_intr(|| fsync(dir)) {
        // It is open with O_PATH.
        Err(Errno::BADF) => open_operand(dir, c".").and_then(|dir| retry_on_intr(|| fsync(&dir))),
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
        let kept =
            if is_regular(&stat) { fcntl_dupfd_cloexec(fd, 0) } else { open_operand(fd, c".") };
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

// Writeback, whose errors count: its start, and a backlog of it that stays short.

/// Starts the writeback of a range of bytes; of the whole file if it is empty and starts at 0.
///
/// # Errors
/// Errors of the writeback. ext4 returns those of the allocation of blocks to this call, and to none
/// after it. No error if the call is not available, or the file has no pages: then later calls do
/// all the work.
pub(super) fn start_writeback(fd: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    is_available(begin_writing_back(fd, range.start, range.end - range.start)).map(drop)
}

/// Whether a call with the result `written` is available, for this file too.
fn is_available(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::SPIPE) => Ok(false),
        result => result.map(|()| true),
    }
}

/// How many bytes are written before they are waited for: what the medium writes in about a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct BacklogLimit {
    pub(super) bytes: u64,
    most: u64,
}

/// A slower medium is waited for longer: the cost of a wait does not depend on the bytes alone.
const BACKLOG_BYTES_MIN: u64 = 2 << 20;

/// The time that one wait should take.
const WAIT_MICROS: u64 = 1_000_000;

/// Bytes of files that are synced together at first, and at most. Media that write more in a second are
/// rare, and what is not synced fills the memory.
impl Default for BacklogLimit {
    fn default() -> BacklogLimit {
        BacklogLimit { bytes: 256 << 20, most: 1 << 30 }
    }
}

impl BacklogLimit {
    /// Starts with `bytes`, and does not exceed `most`.
    pub(super) const fn new(bytes: u64, most: u64) -> BacklogLimit {
        BacklogLimit { bytes, most }
    }

    /// As many bytes were waited for during `waited`.
    pub(super) fn adapt(&mut self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX).max(1);
        // At most gigabytes times a million.
        let bytes = self.bytes * WAIT_MICROS / micros;
        // One wait may have had another cause, so no step is long.
        let bytes = bytes.clamp(self.bytes / 8, self.bytes * 2);
        self.bytes = bytes.clamp(BACKLOG_BYTES_MIN, self.most);
    }
}

/// The writeback of a destination in ranges, while it is copied: of two ranges at most.
pub(super) struct Backlog<'f> {
    /// `None` if it is not a regular file, and nothing is written back.
    dst: Option<BorrowedFd<'f>>,
    /// With the bytes of a range.
    pub(super) limit: BacklogLimit,
    started_to: u64,
    /// Up to here the copy is on the medium.
    pub(super) written_to: u64,
}

/// The first range. Large enough for several workers to share.
const RANGE_BYTES: u64 = 16 << 20;

/// The longest range, also of the source, of which `--no-cache` drops the pages.
pub(super) const RANGE_BYTES_MAX: u64 = 32 << 20;

/// What one call starts the writeback of.
const PART_BYTES: u64 = 1 << 20;

/// More parts are longer.
const PARTS_MAX: u64 = 64;

/// The kernel drops pages in aligned units of up to this size.
const UNIT_BYTES: u64 = 2 << 20;

impl<'f> Backlog<'f> {
    pub(super) fn new(dst: Option<BorrowedFd<'f>>) -> Backlog<'f> {
        let limit = BacklogLimit::new(RANGE_BYTES, RANGE_BYTES_MAX);
        Backlog { dst, limit, started_to: 0, written_to: 0 }
    }

    /// The copy is complete up to the offset `at`. If that is a range more, starts its writeback, and waits
    /// for that of the range before. Returns the range that is on the medium now.
    ///
    /// # Errors
    /// Errors of the writeback.
    pub(super) fn passed(&mut self, at: u64) -> io::Result<Option<Range<u64>>> {
        let at = at / UNIT_BYTES * UNIT_BYTES;
        if at.saturating_sub(self.started_to) < self.limit.bytes {
            return Ok(None);
        }
        let written = self.written_to..self.started_to;
        let started = Instant::now();
        self.start(at)?;
        if let Some(dst) = self.dst.filter(|_| !written.is_empty()) {
            // No later call returns the errors of the writeback.
            is_available(write_back(dst, written.start, written.end - written.start))?;
            self.limit.adapt(started.elapsed());
        }
        self.written_to = written.end;
        Ok(Some(written))
    }

    /// Starts the writeback up to the offset `end`, in parts: pages of one call may stay dirty until all of
    /// them are written, and what is dirty is shown as not done.
    ///
    /// # Errors
    /// Errors of the writeback.
    pub(super) fn start(&mut self, end: u64) -> io::Result<()> {
        // A hole of any length is passed in a few calls.
        let part_bytes = PART_BYTES.max(end.saturating_sub(self.started_to) / PARTS_MAX);
        while self.started_to < end {
            let part_end = (self.started_to + part_bytes).min(end);
            let part = std::mem::replace(&mut self.started_to, part_end)..part_end;
            self.dst.map_or(Ok(()), |dst| start_writeback(dst, part))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Media from a slow USB stick to memory: after a few waits each takes about a second, or the limit is at
    /// its most.
    #[test]
    fn the_backlog_is_what_the_medium_writes_in_a_second() {
        for rate in [MIB / 2, 6 * MIB, 30 * MIB, 150 * MIB, 5000 * MIB] {
            let mut limit = BacklogLimit::new(64 * MIB, 256 * MIB);
            for _ in 0..6 {
                limit.adapt(Duration::from_secs_f64(limit.bytes as f64 / rate as f64));
            }
            let due = rate.clamp(2 * MIB, 256 * MIB);
            let bytes = limit.bytes;
            assert!(bytes.abs_diff(due) <= due / 10, "{bytes} for {due}");
        }
    }

    #[test]
    fn one_long_wait_does_not_end_the_backlog() {
        let mut limit = BacklogLimit::new(64 * MIB, 256 * MIB);
        limit.adapt(Duration::from_secs(60));
        assert_eq!(limit.bytes, 8 * MIB);
        limit.adapt(Duration::ZERO);
        assert_eq!(limit.bytes, 16 * MIB);
    }

    #[test]
    fn ranges_follow_one_another_and_the_last_two_are_not_waited_for() {
        let mut backlog = Backlog::new(None);
        let passed: Vec<_> = (0..=80)
            .step_by(8)
            .filter_map(|at| backlog.passed(at * MIB).expect("no file"))
            .collect();
        let range = |from: u64, to: u64| from * MIB..to * MIB;
        assert_eq!(
            passed,
            [range(0, 0), range(0, 16), range(16, 32), range(32, 48), range(48, 64)]
        );
        assert_eq!(backlog.written_to, 64 * MIB);
    }
}
