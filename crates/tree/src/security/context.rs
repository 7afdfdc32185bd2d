//! What is needed to decide whether a file found in the destination is trusted.

use rustix::fs::Stat;

use super::preexisting_symlinks::PreexistingSymlinks;
use super::start_time::StartTime;
use crate::fs::{Caller, ctime};

/// The caller, the start of the run, and the symbolic links that existed before it.
pub(crate) struct Security {
    pub(crate) caller: Caller,
    start: StartTime,
    pub(crate) preexisting: PreexistingSymlinks,
}

impl Security {
    /// For a run that starts now.
    pub(crate) fn new() -> Security {
        let start = StartTime::now();
        Security {
            caller: Caller::of_process(),
            start,
            preexisting: PreexistingSymlinks::new(start),
        }
    }

    /// Whether the inode was created, changed or renamed after the start of the run.
    pub(crate) fn changed_during_run(&self, stat: &Stat) -> bool {
        self.start.is_before(ctime(stat))
    }

    /// Whether a symbolic link belongs to root or to the caller. Others are not followed.
    pub(crate) fn is_owner_trusted(&self, stat: &Stat) -> bool {
        stat.st_uid == 0 || self.caller.owns(stat)
    }
}
