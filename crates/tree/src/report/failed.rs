//! Diagnostics of failed calls.

use std::path::Path;

use rustix::io::Errno;

use super::diagnostic::{Action, Diagnostic};
use crate::fs::Place;

/// Makes the diagnostic of a call on the file at `place` from its error.
pub(crate) fn failed<'p>(
    action: Action,
    place: &'p Place<'p>,
) -> impl FnOnce(Errno) -> Diagnostic + use<'p> {
    move |errno| Diagnostic::Failed { action, path: place.path(), errno }
}

/// The same for a file that messages show as `path`.
pub(crate) fn failed_at(action: Action, path: &Path) -> impl FnOnce(Errno) -> Diagnostic + use<> {
    let path = path.to_owned();
    move |errno| Diagnostic::Failed { action, path, errno }
}
