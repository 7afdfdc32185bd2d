//! sync_file_range(2), which writes dirty pages of one range back.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::last_errno;

/// Starts the writeback of dirty pages in `len_bytes` bytes from `offset_bytes`: `sync_file_range`
/// with SYNC_FILE_RANGE_WRITE. Waits only for space in the device's request queue. Makes nothing
/// durable, because it writes neither lengths nor block maps.
///
/// # Errors
/// Those of sync_file_range(2): `SPIPE` for a descriptor that is neither file, directory nor block
/// device.
pub fn begin_writing_back(
    fd: BorrowedFd<'_>,
    offset_bytes: u64,
    len_bytes: u64,
) -> rustix::io::Result<()> {
    sync_file_range(fd, offset_bytes, len_bytes, libc::SYNC_FILE_RANGE_WRITE)
}

/// Writes dirty pages in `len_bytes` bytes from `offset_bytes` back, and waits until the pages are
/// clean. Makes nothing durable, because it writes neither lengths nor block maps.
///
/// # Errors
/// Those of sync_file_range(2), among them writeback errors: `IO`, `NOSPC`. The kernel reports a
/// writeback error once for each open file description, so the caller must pass it on: a later
/// fsync(2) does not report it.
pub fn write_back(fd: BorrowedFd<'_>, offset_bytes: u64, len_bytes: u64) -> rustix::io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(fd, offset_bytes, len_bytes, flags)
}

/// Waits for the writeback that has begun, of the whole file: `sync_file_range` with
/// SYNC_FILE_RANGE_WAIT_BEFORE. Begins none.
///
/// # Errors
/// Those of sync_file_range(2), and errors of earlier writeback: `IO`, `NOSPC`. The kernel reports
/// such an error once for each open file description, so the caller must pass it on.
pub fn wait_for_writeback(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    sync_file_range(fd, 0, 0, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
}

/// `int sync_file_range(int fd, off64_t offset, off64_t nbytes, unsigned int flags)`
fn sync_file_range(
    fd: BorrowedFd<'_>,
    offset_bytes: u64,
    len_bytes: u64,
    flags: libc::c_uint,
) -> rustix::io::Result<()> {
    let offset = i64::try_from(offset_bytes).map_err(|_| rustix::io::Errno::INVAL)?;
    let len = i64::try_from(len_bytes).map_err(|_| rustix::io::Errno::INVAL)?;
    // SAFETY: the arguments are numbers, and `fd` is open while it is borrowed.
    let result = unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, flags) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;
    use crate::cachestat;

    #[test]
    fn a_range_that_was_written_back_is_clean() {
        let mut file = tempfile::tempfile().expect("created");
        file.write_all(&[7; 10_000]).expect("written");
        assert_eq!(begin_writing_back(file.as_fd(), 0, 10_000), Ok(()));
        assert_eq!(write_back(file.as_fd(), 0, 10_000), Ok(()));
        if let Ok(counted) = cachestat(file.as_fd(), 0, 0) {
            assert_eq!((counted.dirty_pages, counted.writeback_pages), (0, 0));
        }
    }

    #[test]
    fn nothing_is_waited_for_where_no_writeback_has_begun() {
        let mut file = tempfile::tempfile().expect("created");
        assert_eq!(wait_for_writeback(file.as_fd()), Ok(()));
        file.write_all(&[7; 10_000]).expect("written");
        assert_eq!(begin_writing_back(file.as_fd(), 0, 10_000), Ok(()));
        assert_eq!(wait_for_writeback(file.as_fd()), Ok(()));
        if let Ok(counted) = cachestat(file.as_fd(), 0, 0) {
            assert_eq!(counted.writeback_pages, 0);
        }
    }

    #[test]
    fn a_pipe_has_nothing_to_write_back() {
        let (reader, _writer) = rustix::pipe::pipe().expect("created");
        assert_eq!(write_back(reader.as_fd(), 0, 1), Err(rustix::io::Errno::SPIPE));
    }
}
