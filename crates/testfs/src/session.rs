//! The mounted file systems of this process, and what they share with its threads.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fuser::BackgroundSession;

/// A test that has failed leaves its locks to the others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends what is mounted at `path`: the directory can be removed only then.
pub(crate) fn unmount(session: Option<BackgroundSession>, path: &Path) {
    if let Some(Err(error)) = session.map(BackgroundSession::umount_and_join) {
        // The kernel may release the last file shortly after its process has ended.
        let detached = Command::new("umount").arg("-l").arg(path).status();
        if !detached.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted: {error}", path.display());
        }
    }
}
