//! Waits until removed files have been freed.
//!
//! unlink(2) on XFS only removes the name. A kernel thread frees the blocks and the inode some
//! milliseconds later and holds the locks of the allocation groups meanwhile. Without this wait the
//! next run would sometimes wait for those locks.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The inodes that a file system had in use when it was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InodesInUse(u64);

/// The time between two checks: about the time that xfs needs for some hundred extents.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Without any progress for so long, the remaining inodes belong to another process.
const PATIENCE: Duration = Duration::from_millis(20);

/// Other processes that keep making and removing files are not waited for any longer.
const LONGEST: Duration = Duration::from_secs(10);

impl InodesInUse {
    /// Asks the file system of `dir`. One that does not tell, or refuses, has none in use.
    pub fn now(dir: BorrowedFd<'_>) -> InodesInUse {
        InodesInUse(usage(dir).inodes)
    }

    /// Waits until no more are in use than were: to be called when everything that was made since
    /// has been removed. Where inodes go together with their names it returns at once; where others
    /// make files meanwhile, after 20 ms in which nothing was given back, and 10 s at most.
    pub fn wait_until_again(self, dir: BorrowedFd<'_>) {
        let started = Instant::now();
        let mut last = usage(dir);
        let mut since = started;
        // XFS starts at once when it is asked for its inodes.
        while last.inodes > self.0 && since.elapsed() < PATIENCE && started.elapsed() < LONGEST {
            std::thread::sleep(LOOK_EVERY);
            let now = usage(dir);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }
}

/// Shows whether inodes are still being freed.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Usage {
    inodes: u64,
    free_blocks: u64,
}

fn usage(dir: BorrowedFd<'_>) -> Usage {
    match rustix::fs::fstatvfs(dir) {
        Ok(stat) => {
            Usage { inodes: stat.f_files.saturating_sub(stat.f_ffree), free_blocks: stat.f_bfree }
        }
        Err(_) => Usage { inodes: 0, free_blocks: 0 },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn removed_files_are_waited_for_and_those_of_others_are_not() {
        // No other process makes files there meanwhile.
        let Some(small) = testfs::small_fs(testfs::FsKind::Xfs) else { return };
        let dir = File::open(small.join(".")).expect("opened");
        // What an earlier test removed has to be gone.
        InodesInUse(0).wait_until_again(dir.as_fd());
        let before = InodesInUse::now(dir.as_fd());
        let paths: Vec<_> = (0..300).map(|nth| small.join(nth.to_string())).collect();
        for path in &paths {
            std::fs::write(path, [1; 4096]).expect("written");
        }
        assert_eq!(InodesInUse::now(dir.as_fd()).0, before.0 + 300);
        for path in &paths {
            std::fs::remove_file(path).expect("removed");
        }
        before.wait_until_again(dir.as_fd());
        assert_eq!(InodesInUse::now(dir.as_fd()), before);

        std::fs::write(small.join("of another"), "").expect("written");
        let started = Instant::now();
        before.wait_until_again(dir.as_fd());
        assert!((PATIENCE..LONGEST).contains(&started.elapsed()), "{:?}", started.elapsed());
    }
}
