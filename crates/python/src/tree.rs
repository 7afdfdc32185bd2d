//! The copy of a tree.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Mutex;

use haulage::options::{Follow, Options};
use pyo3::prelude::*;

use crate::callbacks::Callbacks;
use crate::failure::Failure;
use crate::keywords::{Attributes, Keywords, name, request};
use crate::observer::{Observer, Tree};
use crate::run::{Total, run_beside};

/// How a tree is copied, beside the keyword arguments that files have too.
#[derive(FromPyObject)]
pub(crate) struct TreeKeywords {
    symlinks: bool,
    ignore_dangling_symlinks: bool,
    merges: bool,
    /// `dst` is created.
    creates: bool,
    /// Gets a directory as bytes, and returns the names to ignore.
    ignore: Option<Py<PyAny>>,
    /// The names to ignore in the directory itself.
    ignored: Vec<Vec<u8>>,
}

/// Copies the directory `src` into the directory `dst`. Returns all failures.
#[pyfunction]
pub(crate) fn copy_tree(
    py: Python<'_>,
    src: &[u8],
    dst: &[u8],
    tree: TreeKeywords,
    keywords: Keywords,
) -> PyResult<Vec<Failure>> {
    let options = Options {
        recursive: true,
        // As open(2), which `shutil` calls for them.
        copy_contents: true,
        // `src` itself is always followed.
        follow: if tree.symlinks { Follow::CommandLine } else { Follow::Always },
        new_directory: tree.creates,
        ..keywords.options(Attributes::All)?
    };
    let top = PathBuf::from(name(src)?);
    let ignored = tree.ignored.into_iter().map(OsString::from_vec).collect();
    let chooses = Tree {
        dst: PathBuf::from(name(dst)?),
        follows: !tree.symlinks,
        ignores_dangling: tree.ignore_dangling_symlinks,
        merges: tree.merges,
        continues: keywords.resume,
        ignored: tree.ignore.is_some().then(|| Mutex::new([(top.clone(), ignored)].into())),
        src: top,
    };
    let request = request(src, dst)?;
    let Keywords { progress, receipt, .. } = keywords;
    // What is ignored is not counted.
    let total = if tree.ignore.is_some() { Total::Unknown } else { Total::Counted };
    let callbacks = Callbacks { progress, receipt, ignore: tree.ignore };
    let observer = Observer::new(&callbacks, Some(chooses));
    run_beside(py, (&request, &options), &observer, &callbacks, total)?;
    Ok(observer.into_failures())
}
