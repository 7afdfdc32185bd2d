//! Whether cloning over the old contents of a destination is fast (docs/design/old-contents.md).

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::fstatfs;

/// Cloning over existing blocks takes less, unless dirty pages of those are written first.
const CLONE_OVER_TIME_MAX: Duration = Duration::from_micros(100);

/// Files that are truncated, at most, before cloning over is tried again.
const TRUNCATED_MAX: u32 = 1024;

/// The experience with cloning over old contents on one pair of file systems.
#[derive(Debug, Default)]
pub(crate) struct CloneOverPolicy {
    /// Bytes of a block of the destination's file system, once they were read.
    block_bytes: Option<u64>,
    /// For files of one block, whether it is fast.
    pub(super) one_block: Backoff,
    /// For longer ones, whether they share their blocks already.
    pub(super) shared: Backoff,
}

/// Tries an optimisation as long as it succeeds, and rarely after failures.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Files that are truncated before it is tried again, and how many of them are left.
    truncated: u32,
    left: u32,
}

impl Backoff {
    /// Whether to try it with the next file.
    pub(super) fn should_try(&mut self) -> bool {
        let tries = self.left == 0;
        self.left = self.left.saturating_sub(1);
        tries
    }

    pub(super) fn record(&mut self, success: bool) {
        self.truncated = if success { 0 } else { (4 * self.truncated).clamp(4, TRUNCATED_MAX) };
        self.left = self.truncated;
    }
}

impl CloneOverPolicy {
    pub(super) fn block_bytes(&mut self, dst: BorrowedFd<'_>) -> u64 {
        let asked = || fstatfs(dst).ok().and_then(|statfs| u64::try_from(statfs.f_bsize).ok());
        *self.block_bytes.get_or_insert_with(|| asked().unwrap_or(0))
    }

    /// Records the time for a file of `bytes`.
    pub(super) fn record(&mut self, bytes: u64, elapsed: Duration) {
        let is_one_block = self.block_bytes.is_some_and(|block_bytes| bytes <= block_bytes);
        let backoff = if is_one_block { &mut self.one_block } else { &mut self.shared };
        backoff.record(elapsed < CLONE_OVER_TIME_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_failures_it_is_rarely_tried() {
        let mut backoff = Backoff::default();
        let mut tries_of_1000 = |success: bool| {
            let mut tries = 0;
            for _ in 0..1000 {
                if backoff.should_try() {
                    tries += 1;
                    backoff.record(success);
                }
            }
            tries
        };
        assert_eq!(tries_of_1000(true), 1000);
        assert!((3..=6).contains(&tries_of_1000(false)));
        assert!(tries_of_1000(true) > 500, "soon after it succeeds again");
    }

    #[test]
    fn long_files_do_not_affect_short_ones() {
        let mut over = CloneOverPolicy { block_bytes: Some(4096), ..CloneOverPolicy::default() };
        over.record(5000, Duration::from_millis(5));
        assert!(over.one_block.should_try() && !over.shared.should_try());
        over.record(4096, Duration::from_millis(5));
        assert!(!over.one_block.should_try());
    }
}
