//! The user who copies.

use rustix::fs::Stat;

/// The effective user and group of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) euid: u32,
    egid: u32,
}

impl Caller {
    /// The effective user and group of the calling process now.
    pub(crate) fn of_process() -> Caller {
        Caller {
            euid: rustix::process::geteuid().as_raw(),
            egid: rustix::process::getegid().as_raw(),
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.euid == 0
    }

    /// Whether the inode belongs to this user.
    pub(crate) fn owns(&self, stat: &Stat) -> bool {
        stat.st_uid == self.euid
    }

    /// Whether a file that this user creates gets the inode's owner and group without chown(2). In
    /// a set-group-ID directory it gets another group, which [`crate::metadata`] corrects.
    pub(crate) fn owns_with_group(&self, stat: &Stat) -> bool {
        (stat.st_uid, stat.st_gid) == (self.euid, self.egid)
    }
}
