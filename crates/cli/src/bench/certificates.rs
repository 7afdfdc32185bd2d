//! The certificates of this machine.

use std::path::PathBuf;

/// The directory of the certificates: `haulage/certificates` in the state directory of the XDG Base
/// Directory Specification. `None` for a user without a home directory.
pub(crate) fn dir() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("haulage/certificates"))
}
