//! Whether it is fast to clone over the old contents of a destination.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::fstatfs;

/// Blocks take the place of others in less, unless what is yet to be written of those is written
/// first.
const CLONING_OVER_TIME_MAX: Duration = Duration::from_micros(100);

/// So many files, at most, are emptied before one is cloned over again.
const EMPTIED_MAX: u32 = 1024;

/// Whether cloning over old contents is of use here.
#[derive(Debug, Default)]
pub(crate) struct CloneOverPolicy {
    /// Bytes of a block of the destination's file system, once that was asked.
    block_bytes: Option<u64>,
    /// Of files of one block, whether that is quick.
    pub(super) one_block: Backoff,
    /// Of longer ones, whether they share their blocks already.
    pub(super) shared: Backoff,
}

/// What is tried as long as it is of use, and seldom where it was not.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// How many files are emptied before it is tried again, and how many are left of them.
    emptied: u32,
    left: u32,
}

impl Backoff {
    /// Whether it is tried with the next file.
    pub(super) fn should_try(&mut self) -> bool {
        let tries = self.left == 0;
        self.left = self.left.saturating_sub(1);
        tries
    }

    pub(super) fn record(&mut self, of_use: bool) {
        self.emptied = if of_use { 0 } else { (4 * self.emptied).clamp(4, EMPTIED_MAX) };
        self.left = self.emptied;
    }
}

impl CloneOverPolicy {
    pub(super) fn block_bytes(&mut self, dst: BorrowedFd<'_>) -> u64 {
        let asked = || fstatfs(dst).ok().and_then(|statfs| u64::try_from(statfs.f_bsize).ok());
        *self.block_bytes.get_or_insert_with(|| asked().unwrap_or(0))
    }

    /// Notes how long it took of a file of so many bytes.
    pub(super) fn took(&mut self, bytes: u64, elapsed: Duration) {
        let is_one_block = self.block_bytes.is_some_and(|block_bytes| bytes <= block_bytes);
        let trying = if is_one_block { &mut self.one_block } else { &mut self.shared };
        trying.record(elapsed < CLONING_OVER_TIME_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_no_use_is_seldom_tried() {
        let mut trying = Backoff::default();
        let mut tries_of_1000 = |of_use: bool| {
            let mut tries = 0;
            for _ in 0..1000 {
                if trying.should_try() {
                    tries += 1;
                    trying.record(of_use);
                }
            }
            tries
        };
        assert_eq!(tries_of_1000(true), 1000);
        assert!((3..=6).contains(&tries_of_1000(false)));
        assert!(tries_of_1000(true) > 500, "soon after it is of use again");
    }

    #[test]
    fn long_files_say_nothing_of_short_ones() {
        let mut over = CloneOverPolicy { block_bytes: Some(4096), ..CloneOverPolicy::default() };
        over.took(5000, Duration::from_millis(5));
        assert!(over.one_block.should_try() && !over.shared.should_try());
        over.took(4096, Duration::from_millis(5));
        assert!(!over.one_block.should_try());
    }
}
