//! The sync of names that Python itself has made.

use std::path::PathBuf;

use pyo3::prelude::*;
use rustix::fs::{Mode, OFlags, open, syncfs};
use rustix::io::retry_on_intr;

use crate::failure::Failure;
use crate::keywords::name;

/// Syncs the file system of the directory `dir`, as the copier does with names that cannot be synced alone.
/// Returns the failure.
#[pyfunction]
pub(crate) fn sync_file_system(py: Python<'_>, dir: &[u8]) -> PyResult<Option<Failure>> {
    let dir = PathBuf::from(name(dir)?);
    let synced = py.detach(|| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| open(&dir, flags, Mode::empty()))?;
        retry_on_intr(|| syncfs(&opened))
    });
    Ok(synced.err().map(|errno| Failure::call(&dir, errno)))
}
