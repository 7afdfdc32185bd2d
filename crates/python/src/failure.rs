//! What failed, as values that `python/haulage/_errors.py` makes exceptions of.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haulage::events::Errno;
use haulage::{Error, Operation};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A file that was not copied as asked for.
pub(crate) struct Failure {
    /// Why, as `shutil` tells it apart.
    pub(crate) kind: Kind,
    pub(crate) errno: i32,
    /// Why, in words; `None` for those of strerror(3).
    pub(crate) reason: Option<String>,
    /// The file that the call failed on.
    pub(crate) path: Option<Vec<u8>>,
    /// The target, if the call was symlink(2).
    pub(crate) target: Option<Vec<u8>>,
}

/// The exception of a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `OSError`.
    System,
    /// `shutil.SameFileError`.
    SameFile,
    /// `shutil.SpecialFileError`.
    Fifo,
}

impl Failure {
    pub(crate) fn of(error: &Error) -> Failure {
        let same = error.diagnostic().is_some_and(|diagnostic| {
            matches!(diagnostic, haulage::events::Diagnostic::SameFile { .. })
        });
        Failure {
            kind: if same { Kind::SameFile } else { Kind::System },
            errno: error.errno(),
            reason: reason(error),
            path: error.path().map(|path| path.as_os_str().as_bytes().to_vec()),
            target: None,
        }
    }

    pub(crate) fn call(path: &Path, errno: Errno) -> Failure {
        Failure {
            kind: Kind::System,
            errno: errno.raw_os_error(),
            reason: None,
            path: Some(path.as_os_str().as_bytes().to_vec()),
            target: None,
        }
    }

    pub(crate) fn special(kind: Kind, path: &Path) -> Failure {
        Failure { kind, ..Failure::call(path, Errno::INVAL) }
    }
}

/// The words, if they say more than the errno.
fn reason(error: &Error) -> Option<String> {
    let errno = Errno::from_raw_os_error(error.errno());
    let is_rule = error.operation() == Operation::Check;
    if is_rule && matches!(errno, Errno::EXIST | Errno::ISDIR | Errno::NOTDIR) {
        return None;
    }
    let has_call = error.diagnostic().is_none_or(|diagnostic| diagnostic.errno().is_some());
    (!has_call).then(|| error.to_string())
}

impl<'py> IntoPyObject<'py> for Failure {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    /// The tuple `(kind, errno, reason, path, target)`.
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let kind = match self.kind {
            Kind::System => "system",
            Kind::SameFile => "same_file",
            Kind::Fifo => "fifo",
        };
        let path = self.path.map(|path| PyBytes::new(py, &path));
        let target = self.target.map(|target| PyBytes::new(py, &target));
        Ok((kind, self.errno, self.reason, path, target).into_pyobject(py)?.into_any())
    }
}
