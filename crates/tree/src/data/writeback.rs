//! Writeback, whose errors count: its start, and a backlog of it that stays short.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use engines::sys::{begin_writing_back, write_back};
use rustix::io::{self, Errno};

/// Starts the writeback of a range of bytes; of the whole file if it is empty and starts at 0.
///
/// # Errors
/// Errors of the writeback. ext4 returns those of the allocation of blocks to this call, and to none
/// after it. No error if the call is not available, or the file has no pages: then later calls do
/// all the work.
pub(super) fn start_writeback(fd: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    match begin_writing_back(fd, range.start, range.end - range.start) {
        Err(Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::SPIPE) => Ok(()),
        result => result,
    }
}

/// Waits for the writeback of a range of bytes, and starts it where it was not.
///
/// # Errors
/// Errors of the writeback, which no later call returns.
fn wait_for_writeback(fd: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    match write_back(fd, range.start, range.end - range.start) {
        Err(Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::SPIPE) => Ok(()),
        result => result,
    }
}

/// How many bytes are written before they are waited for: what the medium writes in about a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct BacklogLimit {
    bytes: u64,
    most: u64,
}

/// A slower medium is waited for longer: the cost of a wait does not depend on the bytes alone.
const BACKLOG_BYTES_MIN: u64 = 2 << 20;

/// The time that one wait should take.
const WAIT_MICROS: u64 = 1_000_000;

impl BacklogLimit {
    /// Starts with `bytes`, and does not exceed `most`.
    pub(super) const fn new(bytes: u64, most: u64) -> BacklogLimit {
        BacklogLimit { bytes, most }
    }

    pub(super) fn bytes(self) -> u64 {
        self.bytes
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
    limit: BacklogLimit,
    started_to: u64,
    written_to: u64,
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

    /// The bytes of a range.
    pub(super) fn range_bytes(&self) -> u64 {
        self.limit.bytes()
    }

    /// The copy is complete up to the offset `at`. If that is a range more, starts its writeback, and waits
    /// for that of the range before. Returns the range that is on the medium now.
    ///
    /// # Errors
    /// Errors of the writeback.
    pub(super) fn passed(&mut self, at: u64) -> io::Result<Option<Range<u64>>> {
        let at = at / UNIT_BYTES * UNIT_BYTES;
        if at.saturating_sub(self.started_to) < self.limit.bytes() {
            return Ok(None);
        }
        let written = self.written_to..self.started_to;
        let started = Instant::now();
        self.start(at)?;
        if let Some(dst) = self.dst.filter(|_| !written.is_empty()) {
            wait_for_writeback(dst, written.clone())?;
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

    /// Up to where the copy is on the medium.
    pub(super) fn written_to(&self) -> u64 {
        self.written_to
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
                limit.adapt(Duration::from_secs_f64(limit.bytes() as f64 / rate as f64));
            }
            let due = rate.clamp(2 * MIB, 256 * MIB);
            let bytes = limit.bytes();
            assert!(bytes.abs_diff(due) <= due / 10, "{bytes} for {due}");
        }
    }

    #[test]
    fn one_long_wait_does_not_end_the_backlog() {
        let mut limit = BacklogLimit::new(64 * MIB, 256 * MIB);
        limit.adapt(Duration::from_secs(60));
        assert_eq!(limit.bytes(), 8 * MIB);
        limit.adapt(Duration::ZERO);
        assert_eq!(limit.bytes(), 16 * MIB);
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
        assert_eq!(backlog.written_to(), 64 * MIB);
    }
}
