//! One end of a copy.

use std::os::fd::BorrowedFd;

/// An open file, and the file system that it is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint<'f> {
    pub(crate) fd: BorrowedFd<'f>,
    /// Its device number.
    pub(crate) dev: u64,
    /// The number that statfs(2) gives its file system.
    pub(crate) fs_type: Option<u64>,
}
