//! A directory of the source and its copy, both open.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{Mode, Stat};

use crate::entry::Operand;
use crate::fs::Dir;
use crate::report::Diagnostic;
use crate::shared::{CreationLock, ReceivedShare};

/// A directory that is being copied. Workers that have names from it share it.
pub(crate) struct DirectoryPair {
    pub(crate) src: Dir,
    pub(crate) dst: Dir,
    /// Attributes of the source before anything in it was read.
    pub(crate) src_stat: Stat,
    /// Attributes of the destination when it was created or found.
    pub(crate) dst_stat: Stat,
    /// This run created the destination.
    pub(crate) new: bool,
    /// No other user may create or remove names in the destination until it is finished.
    pub(crate) private: bool,
    /// The final mode of the destination if modes are not preserved.
    pub(crate) mode: Option<Mode>,
    /// The directory above the destination has a default access control list.
    pub(crate) inherits_acl: bool,
    /// The destination has a default access control list.
    pub(crate) children_inherit_acl: bool,
    /// When the copy of the directory started, if receipts are kept.
    pub(crate) started: Option<Instant>,
    /// Failures of the directory itself, if receipts are kept.
    pub(crate) failures: Mutex<Vec<Diagnostic>>,
    /// Taken while files are created in the destination.
    pub(crate) creation_lock: CreationLock,
    pub(crate) operand: Arc<Operand>,
    /// The only file system to enter.
    pub(crate) device: Option<u64>,
    /// Set if a partner entered the directory, and has given names in it to this one. It is told
    /// when this is dropped.
    pub(crate) received: Option<ReceivedShare>,
    /// Names that were given to a partner came back. No further ones are given.
    pub(crate) returned: AtomicBool,
}
