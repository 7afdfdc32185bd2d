//! The start of writeback, whose errors count.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use engines::sys::begin_writing_back;
use rustix::io::{self, Errno};

/// Starts the writeback of a range of bytes; of the whole file if it is empty and starts at 0.
///
/// # Errors
/// Errors of the writeback. ext4 returns those of the allocation of blocks to this call, and to none
/// after it. No error if the call is not available, or the file has no pages: then later calls do
/// all the work.
pub(super) fn start_writeback(fd: BorrowedFd<'_>, range: Range<u64>) -> io::Result<()> {
    match begin_writing_back(fd, range.start, range.end - range.start) {
        Err(Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::SPIPE) => Ok(()),
        result => result,
    }
}
