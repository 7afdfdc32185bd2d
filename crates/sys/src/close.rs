//! close(2) with its error.

use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

use rustix::io;

/// `int close(int fd)`: closes the descriptor. Reports writes that failed after they were accepted,
/// as on network file systems and with quotas. See close(2).
///
/// # Errors
/// Those of close(2). The descriptor is closed in any case.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: `into_raw_fd` took the descriptor from its owner, so no other code closes or uses it
    // afterwards.
    match unsafe { io::try_close(fd.into_raw_fd()) } {
        // Linux has released the descriptor before a signal can interrupt the call.
        Err(io::Errno::INTR) => Ok(()),
        result => result,
    }
}

/// Does for the file of `fd` what close(2) does, which stays open: the client of a network file system sends what is left
/// in the page cache to its server.
///
/// # Errors
/// Those of close(2), and of dup(2).
pub fn flush_as_close(fd: impl AsFd) -> io::Result<()> {
    close(io::fcntl_dupfd_cloexec(fd, 0)?)
}
