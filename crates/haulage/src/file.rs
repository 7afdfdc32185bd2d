//! One file: by its path, or by descriptors that the caller has opened.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use engines::{Moved, Span, Variant};
use tree::{Destination, Diagnostic, Observer, Options, Request, Severity};

use crate::cancel::CancelToken;
use crate::error::Error;
use crate::totals::Copied;

/// Copies the file `src` to the name `dst`, as `cp` does without options: the data, and the
/// permissions of `src` less the umask if `dst` is new. A symbolic link is followed, an existing file
/// is replaced, and `dst` may not be a directory.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let (src, dst) = (home.path().join("src"), home.path().join("dst"));
/// # std::fs::write(&src, "some bytes")?;
/// let copied = haulage::copy_file(&src, &dst)?;
/// assert_eq!(copied.data_bytes, 10);
/// # assert_eq!(std::fs::read(&dst)?, b"some bytes");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The first error. A destination that was created stays, with the data that was copied before.
pub fn copy_file(src: impl AsRef<Path>, dst: impl AsRef<Path>) -> Result<Copied, Error> {
    copy_file_with(src, dst, &Options::default(), None)
}

/// Copies the file `src` to `dst`, as [`copy_file`] does, with options and a token that cancels the
/// copy. Options about trees have no effect.
///
/// # Errors
/// The first error; ECANCELED if it was cancelled.
pub fn copy_file_with(
    src: impl AsRef<Path>,
    dst: impl AsRef<Path>,
    options: &Options,
    cancel: Option<&CancelToken>,
) -> Result<Copied, Error> {
    let destination = Destination::Exact(dst.as_ref().into());
    let request = Request { sources: vec![src.as_ref().into()], destination };
    let options = &Options { recursive: false, ..options.clone() };
    observed(options, cancel, |watcher| tree::copy(&request, options, watcher))
}

/// Copies what is open as `src` to what is open as `dst`. Between regular files the whole file is
/// copied, whatever the offsets of the descriptors are, and replaces the contents of `dst`; anything
/// else, such as a pipe or a socket, is a stream from where it is to its end. What a file `dst` has
/// before its offset then stays, and the rest is replaced. Both stay open.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let (src, dst) = (home.path().join("src"), home.path().join("dst"));
/// # std::fs::write(&src, "some bytes")?;
/// use std::fs::File;
///
/// let copied = haulage::copy_descriptors(File::open(&src)?, File::create(&dst)?)?;
/// assert_eq!(copied.data_bytes, 10);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The first error. Its path is `/dev/fd/N`, by the number of the descriptor. EBADF also for a
/// regular file `dst` with O_APPEND. A write to a pipe without a reader raises SIGPIPE, as write(2)
/// does; EPIPE is returned if that is ignored.
pub fn copy_descriptors(src: impl AsFd, dst: impl AsFd) -> Result<Copied, Error> {
    copy_descriptors_with(src, dst, &Options::default(), None)
}

/// Copies what is open as `src` to what is open as `dst`, as [`copy_descriptors`] does, with options
/// and a token that cancels the copy. Options about names and trees have no effect.
///
/// # Errors
/// The first error; ECANCELED if it was cancelled.
pub fn copy_descriptors_with(
    src: impl AsFd,
    dst: impl AsFd,
    options: &Options,
    cancel: Option<&CancelToken>,
) -> Result<Copied, Error> {
    let (src, dst) = (src.as_fd(), dst.as_fd());
    observed(options, cancel, |watcher| tree::copy_descriptors(src, dst, options, watcher))
}

/// Runs a copy of one file. Its result is what the watcher saw.
fn observed(
    options: &Options,
    cancel: Option<&CancelToken>,
    copy: impl FnOnce(&Watcher<'_>) -> tree::Outcome,
) -> Result<Copied, Error> {
    Error::unless_allowed(options)?;
    let watcher = Watcher { engines: Mutex::default(), failure: OnceLock::new(), cancel };
    let _ = copy(&watcher);
    let Watcher { engines, failure, .. } = watcher;
    let copied = Copied::by(&engines.into_inner().unwrap_or_else(PoisonError::into_inner));
    match failure.into_inner() {
        Some(diagnostic) => Err(Error::of_file(diagnostic, copied)),
        None => Ok(copied),
    }
}

/// The observer of the copy of one file.
struct Watcher<'c> {
    /// Bytes, by the name of the engine that has moved them.
    engines: Mutex<BTreeMap<&'static str, u64>>,
    /// The first failure.
    failure: OnceLock<Diagnostic>,
    cancel: Option<&'c CancelToken>,
}

impl Observer for Watcher<'_> {
    fn diagnose(&self, diagnostic: Diagnostic) {
        if diagnostic.severity() == Severity::Failure {
            let _ = self.failure.set(diagnostic);
        }
    }

    fn moved(&self, variant: &Variant, _: Span, moved: Moved) {
        if moved.bytes > 0 {
            let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
            *engines.entry(variant.engine.name).or_default() += moved.bytes;
        }
    }

    fn interrupted(&self) -> bool {
        self.cancel.is_some_and(CancelToken::is_cancelled)
    }
}
