//! Calls a callable of the caller so that the thread may end in it.
//!
//! When the interpreter exits, CPython before 3.14 ends a daemon thread by pthread_exit(3) as soon as it asks
//! for the lock of the interpreter. That unwinds the stack. Functions of Rust on it would run their
//! destructors without the lock, which aborts the process.
#![allow(unsafe_code)]

use pyo3::IntoPyObjectExt;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

unsafe extern "C-unwind" {
    /// `PyObject *PyObject_CallObject(PyObject *callable, PyObject *args)`: calls it with a tuple. pyo3
    /// declares it as a function that does not unwind.
    fn PyObject_CallObject(callable: *mut PyObject, args: *mut PyObject) -> *mut PyObject;
}

/// Stops the thread for ever when it is dropped.
struct EndsHere;

impl Drop for EndsHere {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls `callable` with one argument.
///
/// # Errors
/// Its exception.
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    argument: impl IntoPyObjectExt<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = callable.py();
    let arguments = PyTuple::new(py, [argument.into_bound_py_any(py)?])?;
    let thread = EndsHere;
    // SAFETY: both are objects that live for the call, one of them a tuple, and the thread has the lock. If
    // the stack is unwound, no frame but this one is: it waits for the end of the process.
    let result = unsafe { PyObject_CallObject(callable.as_ptr(), arguments.as_ptr()) };
    std::mem::forget(thread);
    // SAFETY: the call returns a new reference, or null after an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, result) }
}
