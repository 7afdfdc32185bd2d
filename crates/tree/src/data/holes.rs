//! The extents and holes of a file, by lseek(2). `copy_by_options` in `transfer.rs` decides whether they
//! are used: on file systems of [`engines::fs_types::Storage::Reliable`] only (docs/design/holes.md).

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{self, Errno};

/// A range of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Offset in bytes.
    pub(crate) at: u64,
    /// Bytes.
    pub(crate) len: u64,
}

/// The first extent of `fd` at or after `at` and before `end`; `None` when only a hole remains.
pub(crate) fn next_data(fd: BorrowedFd<'_>, at: u64, end: u64) -> io::Result<Option<Extent>> {
    let data = match seek(fd, SeekFrom::Data(at)) {
        Ok(data) => data,
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if data >= end {
        return Ok(None);
    }
    // Every file ends in a hole. ENXIO means that the file was truncated meanwhile.
    let hole = match seek(fd, SeekFrom::Hole(data)) {
        Ok(hole) => hole,
        Err(Errno::NXIO) => end,
        Err(errno) => return Err(errno),
    };
    Ok(Some(Extent { at: data, len: hole.min(end).saturating_sub(data) }))
}
