//! The extension module of the Python package `haulage`.
//!
//! It copies and tells what failed as plain values. What callers of `shutil` see, which is signatures,
//! checks of arguments and exceptions, is in `python/haulage/`.

use pyo3::prelude::*;

mod call;
mod callbacks;
mod failure;
mod files;
mod keywords;
mod observer;
mod progress;
mod receipt;
mod run;
mod sync;
mod tree;

/// The extension module.
#[pymodule]
mod _haulage {
    #[pymodule_export]
    use super::files::copy_file;
    #[pymodule_export]
    use super::progress::Progress;
    #[pymodule_export]
    use super::sync::sync_file_system;
    #[pymodule_export]
    use super::tree::copy_tree;
}
