//! What decides whether something found in the destination is trusted.

use rustix::fs::Stat;

use super::preexisting_symlinks::PreexistingSymlinks;
use super::start_time::StartTime;
use crate::fs::{Caller, ctime};

/// Who copies, since when, and which symbolic links existed before.
pub(crate) struct Security {
    pub(crate) caller: Caller,
    start: StartTime,
    pub(crate) preexisting: PreexistingSymlinks,
}

impl Security {
    /// That of a run that starts now.
    pub(crate) fn now() -> Security {
        let start = StartTime::now();
        Security {
            caller: Caller::of_process(),
            start,
            preexisting: PreexistingSymlinks::new(start),
        }
    }

    /// Whether the inode was created, changed or renamed after the run started.
    pub(crate) fn changed_during_run(&self, stat: &Stat) -> bool {
        self.start.is_before(ctime(stat))
    }

    /// Whether a symbolic link belongs to root or to the user who copies. Links of other users are
    /// not followed.
    pub(crate) fn is_owner_trusted(&self, stat: &Stat) -> bool {
        stat.st_uid == 0 || self.caller.owns(stat)
    }
}
