//! The end of a file that haulage created beside a destination: a temporary, a partial file, a journal
//! or a marker.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::report::{Diagnostic, Reporter};

/// A file of that kind that cannot be removed.
#[derive(Debug)]
#[must_use = "the user must know what is left over"]
pub(crate) struct LeftOver {
    name: CString,
    pub(super) errno: Errno,
}

impl LeftOver {
    /// Reports it as a neighbour of the destination `dst`.
    pub(crate) fn report(&self, report: &Reporter<'_>, dst: &Path) {
        let path = dst.with_file_name(OsStr::from_bytes(self.name.to_bytes()));
        report.report(Diagnostic::LeftOver { path, errno: self.errno });
    }
}

/// Removes the file `name` in `dir`, if it is there.
pub(crate) fn remove(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), LeftOver> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(LeftOver { name: name.to_owned(), errno }),
    }
}
