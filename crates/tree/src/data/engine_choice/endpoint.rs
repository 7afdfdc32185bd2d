//! One side of a copy.

use std::os::fd::BorrowedFd;

/// An open file and its file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint<'f> {
    pub(crate) fd: BorrowedFd<'f>,
    pub(crate) dev: u64,
    /// The number that statfs(2) gives its file system, see [`crate::fs::fs_type`].
    pub(crate) fs_type: Option<u64>,
}
