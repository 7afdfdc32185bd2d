//! `--no-cache`: a copy leaves the page cache as it was (docs/design/page-cache.md).
//!
//! Engines that bypass the cache do not bypass it for all of a file: `direct` moves whole blocks
//! only, and holes are found by plain reads. So with every engine, pages of the source that were
//! not resident before are dropped after they were copied, and all pages of the destination after
//! writeback. cachestat(2) tells which were resident; where it does not (before Linux 6.5, or for a
//! file that is neither owned nor writable), none counts as resident.
//!
//! Waiting for the disk after each small file would be slow, so several files stay open during
//! writeback.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use engines::profile::Residency;
use rustix::fs::{Advice, fadvise};
use rustix::io;
use sys::{cachestat, write_back};

use super::context::Files;
use super::holes::next_data;
use super::sync::start_writeback;
use crate::fs::{file_bytes, is_regular};
use crate::report::{Action, Diagnostic, Reporter};

/// How far ahead of the reader residency is recorded: farther than the kernel reads ahead, so that
/// pages read ahead for this copy do not count as resident before.
const AHEAD_BYTES: u64 = 32 << 20;

/// The longest wait for pages that are being read ahead, in milliseconds.
const READ_AHEAD_MS_MAX: u32 = 5;

/// Files that a worker keeps open during writeback.
pub(crate) const HELD_FILES_MAX: usize = 16;

/// Bytes of those files.
const HELD_BYTES_MAX: u64 = 64 << 20;

/// Pages of one sample, which takes a fifth of a microsecond. All of 256 MiB takes half a
/// millisecond with small pages.
const SAMPLE_PAGES: u64 = 16;

/// One sample for as many bytes, within these bounds.
const SAMPLE_EVERY_BYTES: u64 = 4 << 20;
const SAMPLES_MIN: u64 = 3;
const SAMPLES_MAX: u64 = 16;

/// How much of a file of `bytes` is in the page cache, by samples: counting all pages of a large
/// file takes as long as copying a part. If it has trusted holes, samples of data are taken. `None`
/// if that is unknown.
pub(crate) fn residency(src: BorrowedFd<'_>, bytes: u64, has_holes: bool) -> Option<Residency> {
    let page_bytes = rustix::param::page_size() as u64;
    let pages = bytes.div_ceil(page_bytes);
    let samples = bytes.div_ceil(SAMPLE_EVERY_BYTES).clamp(SAMPLES_MIN, SAMPLES_MAX);
    let sample_pages = SAMPLE_PAGES.min(pages);
    let (mut cached_pages, mut looked_at) = (0, 0);
    for nth in 0..samples {
        // Spread from the first page to the last.
        let mut at = (pages - sample_pages) * nth / (samples - 1) * page_bytes;
        let mut len = sample_pages * page_bytes;
        if has_holes {
            let Some(extent) = next_data(src, at, bytes).ok()? else { break };
            at = extent.at;
            len = len.min(extent.len);
        }
        let counted = cachestat(src, at, len).ok()?;
        cached_pages += counted.cached_pages;
        looked_at += (at + len).div_ceil(page_bytes) - at / page_bytes;
    }
    (looked_at > 0).then(|| Residency::of(cached_pages, looked_at))
}

/// The pages of a copy in progress.
pub(crate) struct Footprint<'f> {
    src: Option<BorrowedFd<'f>>,
    /// Length of the source, when it was opened.
    src_bytes: u64,
    /// Ranges of the source that were not resident, in order.
    absent: VecDeque<Range<u64>>,
    absent_known_to: u64,
}

impl<'f> Footprint<'f> {
    pub(crate) fn of(files: &Files<'f>) -> Footprint<'f> {
        Footprint {
            src: is_regular(files.src.stat).then_some(files.src.fd),
            src_bytes: file_bytes(files.src.stat),
            absent: VecDeque::new(),
            absent_known_to: 0,
        }
    }

    /// Records which pages of the source are resident before it is read up to the offset `end`.
    pub(crate) fn before_reading(&mut self, end: u64) {
        let Some(src) = self.src else { return };
        let known_to = page_up(end.min(self.src_bytes).saturating_add(AHEAD_BYTES));
        let known_to = known_to.min(page_up(self.src_bytes));
        if known_to > self.absent_known_to {
            note_absent(src, self.absent_known_to..known_to, &mut self.absent);
            self.absent_known_to = known_to;
        }
    }

    /// Drops pages of the source up to the offset `at`, up to which the copy is complete, and those of the
    /// destination in `written`, which is on the medium.
    pub(super) fn passed(&mut self, at: u64, dst: BorrowedFd<'_>, written: Range<u64>) {
        if let Some(src) = self.src {
            drop_absent(src, &mut self.absent, at);
        }
        drop_pages(dst, written);
    }
}

fn page_up(offset: u64) -> u64 {
    offset.next_multiple_of(rustix::param::page_size() as u64)
}

/// Adds the parts of the page-aligned `range` that are not resident.
fn note_absent(src: BorrowedFd<'_>, range: Range<u64>, absent: &mut VecDeque<Range<u64>>) {
    let page_bytes = rustix::param::page_size() as u64;
    let pages = (range.end - range.start) / page_bytes;
    let cached = cachestat(src, range.start, range.end - range.start).map_or(0, |c| c.cached_pages);
    if cached == 0 {
        match absent.back_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => absent.push_back(range),
        }
    } else if cached < pages {
        let middle = range.start + pages / 2 * page_bytes;
        note_absent(src, range.start..middle, absent);
        note_absent(src, middle..range.end, absent);
    }
}

/// Drops the pages before the offset `end` that were not resident before.
fn drop_absent(src: BorrowedFd<'_>, absent: &mut VecDeque<Range<u64>>, end: u64) {
    while let Some(first) = absent.front_mut()
        && first.start < end
    {
        let upto = first.end.min(end);
        drop_read(src, first.start..upto);
        first.start = upto;
        if first.is_empty() {
            absent.pop_front();
        }
    }
}

/// Drops pages that were read. Pages that the kernel is reading ahead cannot be dropped yet.
fn drop_read(src: BorrowedFd<'_>, range: Range<u64>) {
    for _ in 0..READ_AHEAD_MS_MAX {
        drop_pages(src, range.clone());
        let left = cachestat(src, range.start, range.end - range.start);
        if left.map_or(0, |counted| counted.cached_pages) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An error leaves pages in the cache, which does no harm.
pub(super) fn drop_pages(fd: BorrowedFd<'_>, range: Range<u64>) {
    if let Some(len) = std::num::NonZeroU64::new(range.end - range.start) {
        let _ = fadvise(fd, range.start, Some(len), Advice::DontNeed);
    }
}

/// Waits for writeback of `range`, and drops it.
fn drop_written(dst: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let written = write_back(dst, range.start, range.end - range.start);
    drop_pages(dst, range.start..page_up(range.end));
    written
}

/// Copies of a worker during writeback.
#[derive(Default)]
pub(crate) struct PendingDrops {
    files: VecDeque<HeldFile>,
    /// Bytes of the pages that are still to be dropped.
    pub(super) bytes: u64,
}

struct HeldFile {
    dst: OwnedFd,
    path: PathBuf,
    rest: Range<u64>,
}

impl PendingDrops {
    /// Adds a copy that has ended. The pages in `rest` of the destination are still to be dropped.
    pub(crate) fn add(
        &mut self,
        reporter: &Reporter<'_>,
        files: &Files<'_>,
        mut footprint: Footprint<'_>,
        rest: Range<u64>,
    ) {
        if let Some(src) = footprint.src {
            drop_absent(src, &mut footprint.absent, u64::MAX);
        }
        if rest.is_empty() || !is_regular(files.dst.stat) {
            return;
        }
        let path = files.dst.place.path();
        report(reporter, path.clone(), start_writeback(files.dst.fd, rest.clone()));
        let Ok(dst) = files.dst.fd.try_clone_to_owned() else {
            // No descriptor is left: wait for this file now.
            return report(reporter, path, drop_written(files.dst.fd, rest));
        };
        self.bytes += rest.end - rest.start;
        self.files.push_back(HeldFile { dst, path, rest });
        while self.files.len() > HELD_FILES_MAX || self.bytes > HELD_BYTES_MAX {
            self.drop_oldest(reporter);
        }
    }

    /// Waits for all of them.
    pub(crate) fn drop_all(&mut self, reporter: &Reporter<'_>) {
        while !self.files.is_empty() {
            self.drop_oldest(reporter);
        }
    }

    fn drop_oldest(&mut self, reporter: &Reporter<'_>) {
        let Some(HeldFile { dst, path, rest }) = self.files.pop_front() else { return };
        self.bytes -= rest.end - rest.start;
        report(reporter, path, drop_written(dst.as_fd(), rest));
    }
}

fn report(reporter: &Reporter<'_>, path: PathBuf, written: io::Result<()>) {
    if let Err(errno) = written {
        reporter.report(Diagnostic::Failed { action: Action::Write, path, errno });
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use testfs::{FsKind, each_fs, random_bytes, skip, test_name};

    use super::*;

    #[test]
    fn holes_are_not_sampled_and_the_residency_of_a_hole_is_unknown() {
        const BYTES: u64 = 256 << 20;
        each_fs(|kind, dir| {
            let file = File::create_new(dir.join("s")).expect("created");
            file.set_len(BYTES).expect("length set");
            assert_eq!(residency(file.as_fd(), BYTES, true), None, "{kind}");
            file.write_all_at(&random_bytes(1 << 20, 1), 100 << 20).expect("written");
            let file = File::open(dir.join("s")).expect("opened");
            if cachestat(file.as_fd(), 0, 0) == Err(rustix::io::Errno::NOSYS) {
                return skip(&test_name(), "no cachestat before Linux 6.5");
            }
            let look = |has_holes| residency(file.as_fd(), BYTES, has_holes);
            assert_eq!(look(true), Some(Residency::Resident), "{kind}");
            assert_eq!(look(false), Some(Residency::Absent), "{kind}");
            if kind == FsKind::Tmpfs {
                return;
            }
            // Reading a hole leaves pages of it in the cache.
            file.sync_all().expect("synced");
            fadvise(&file, 0, None, Advice::DontNeed).expect("it is dropped");
            file.read_exact_at(&mut vec![0; 8 << 20], 0).expect("read");
            assert_eq!(look(true), Some(Residency::Absent), "{kind}");
        });
    }
}
