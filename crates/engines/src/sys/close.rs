//! Closing a descriptor and hearing of it.

use std::os::fd::{IntoRawFd, OwnedFd};

use rustix::io;

/// `int close(int fd)`: gives the descriptor back, and tells of writes that failed after they had
/// been accepted, as network file systems and quotas do. See close(2).
///
/// # Errors
/// What the kernel says. The descriptor is closed all the same.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: `into_raw_fd` has taken the descriptor from its owner, so nobody else closes or uses
    // it from here on.
    match unsafe { io::try_close(fd.into_raw_fd()) } {
        // Linux has released the descriptor by the time a signal can interrupt.
        Err(io::Errno::INTR) => Ok(()),
        result => result,
    }
}
