//! The certificates of this machine.

use std::path::PathBuf;

use lab::certificate::store::{StoredCertificate, Subject};
use lab::run_dir::HowRun;

/// The certificate for this machine and the file systems of a run, if there is one.
pub(super) fn find(how: &HowRun) -> Option<StoredCertificate> {
    StoredCertificate::find(&dir()?, &Subject::of(&how.src_dir, &how.dst_dir))
}

/// The directory of the certificates: `haulage/certificates` in the state directory of the XDG Base
/// Directory Specification. `None` for a user without a home directory.
pub(crate) fn dir() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("haulage/certificates"))
}
