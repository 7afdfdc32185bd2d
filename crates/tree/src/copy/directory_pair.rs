//! A directory of the source and its copy, both open.

use std::sync::Mutex;
use std::time::Instant;

use rustix::fs::{Mode, Stat};

use crate::fs::Dir;
use crate::report::Diagnostic;
use crate::shared::CreationLock;

/// A directory that is being copied. Workers who have names from it share it.
pub(crate) struct DirectoryPair {
    pub(crate) src: Dir,
    pub(crate) dst: Dir,
    /// As it was before anything in it was read.
    pub(crate) src_stat: Stat,
    /// As it was made or found.
    pub(crate) dst_stat: Stat,
    /// This run made the destination.
    pub(crate) new: bool,
    /// And nobody else may give or take names there until it is finished.
    pub(crate) private: bool,
    /// The mode that the destination gets in the end when none is preserved.
    pub(crate) mode: Option<Mode>,
    /// The destination has an access control list from the directory above.
    pub(crate) inherits_acl: bool,
    /// What is made in the destination gets one from it.
    pub(crate) children_inherit_acl: bool,
    /// When it was first looked at, if receipts are kept.
    pub(crate) started: Option<Instant>,
    /// What went wrong with the directory itself, if receipts are kept.
    pub(crate) failures: Mutex<Vec<Diagnostic>>,
    /// Where the blocks are that files may share, and where files are made.
    pub(crate) src_creation_lock: CreationLock,
    pub(crate) dst_creation_lock: CreationLock,
}
