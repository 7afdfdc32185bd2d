//! Where a file has data and where holes, by lseek(2). Only reliable file systems are asked.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{self, Errno};

/// The next stretch of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Offset in bytes.
    pub(crate) at: u64,
    /// Bytes.
    pub(crate) len: u64,
}

/// The first data of `fd` at or after `at` and before `end`; `None` when only a hole remains.
pub(crate) fn next_data(fd: BorrowedFd<'_>, at: u64, end: u64) -> io::Result<Option<Extent>> {
    let data = match seek(fd, SeekFrom::Data(at)) {
        Ok(data) => data,
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if data >= end {
        return Ok(None);
    }
    // There is a hole at the end of every file. ENXIO says that the file was cut off meanwhile.
    let hole = match seek(fd, SeekFrom::Hole(data)) {
        Ok(hole) => hole,
        Err(Errno::NXIO) => end,
        Err(errno) => return Err(errno),
    };
    Ok(Some(Extent { at: data, len: hole.min(end).saturating_sub(data) }))
}
