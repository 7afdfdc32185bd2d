//! The callables of the caller.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::call;
use crate::progress::Progress;

/// The names that are ignored in one directory.
pub(crate) type Ignored = HashSet<OsString>;

/// The callables of the caller.
pub(crate) struct Callbacks {
    /// Gets a [`Progress`].
    pub(crate) progress: Option<Py<PyAny>>,
    /// Gets a dict for each entry.
    pub(crate) receipt: Option<Py<PyAny>>,
    /// Gets a directory as bytes, and returns the names to ignore as bytes.
    pub(crate) ignore: Option<Py<PyAny>>,
}

impl Callbacks {
    pub(crate) fn are_none(&self) -> bool {
        self.progress.is_none() && self.receipt.is_none() && self.ignore.is_none()
    }

    /// Calls the progress callback, if there is one.
    pub(crate) fn show(&self, py: Python<'_>, progress: &dyn Fn() -> Progress) -> PyResult<()> {
        let Some(callback) = &self.progress else { return Ok(()) };
        call(callback.bind(py), progress()).map(drop)
    }

    /// The names that are ignored in a directory.
    pub(crate) fn ignored(&self, py: Python<'_>, dir: &Path) -> PyResult<Ignored> {
        let Some(ignore) = &self.ignore else { return Ok(Ignored::new()) };
        let dir = PyBytes::new(py, dir.as_os_str().as_bytes());
        let names: Vec<Vec<u8>> = call(ignore.bind(py), dir)?.extract()?;
        Ok(names.into_iter().map(OsString::from_vec).collect())
    }
}
