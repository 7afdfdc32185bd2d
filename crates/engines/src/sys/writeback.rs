//! The call that sends a file's dirty pages on their way.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::last_errno;

/// `int sync_file_range(int fd, off64_t offset, off64_t nbytes, unsigned int flags)`
///
/// Starts writing all dirty pages of the file to the medium, and waits for none of them. It makes
/// nothing durable by itself: see sync_file_range(2).
///
/// # Errors
/// ESPIPE for what has no pages, ENOSYS under filters that do not know the call, and others.
pub fn start_writeback(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // SAFETY: the call takes no pointer, and `fd` is open while it is borrowed.
    let result =
        unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}
