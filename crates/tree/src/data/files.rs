//! The two files of one copy.

use std::os::fd::BorrowedFd;

use rustix::fs::Stat;

use crate::fs::Place;

/// Both files, open, and as they were when they were opened.
pub(crate) struct Files<'f> {
    pub(crate) src: BorrowedFd<'f>,
    pub(crate) src_stat: &'f Stat,
    pub(crate) src_place: &'f Place<'f>,
    pub(crate) dst: BorrowedFd<'f>,
    pub(crate) dst_stat: &'f Stat,
    pub(crate) dst_place: &'f Place<'f>,
    /// This run made the destination.
    pub(crate) new: bool,
    /// The destination has no name yet, and none will be left of it should it not become whole.
    pub(crate) atomic: bool,
}
