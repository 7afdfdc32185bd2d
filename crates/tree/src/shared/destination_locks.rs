//! Existing destinations that are being written to, each by one worker at a time.
//!
//! Two names in a destination tree may be one file, as hard links or through a symbolic link. Copied
//! one after the other the last one counts; copied at once they would mix.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::fs::FileId;
use crate::lock::lock;

/// The files being written to.
#[derive(Default)]
pub(crate) struct DestinationLocks {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Default)]
struct State {
    files: HashSet<FileId>,
    /// How many wait for one of them.
    waiting: usize,
}

/// The right to write to a file, until it is dropped.
pub(crate) struct DestinationGuard<'w> {
    writing: &'w DestinationLocks,
    file: FileId,
}

impl DestinationLocks {
    /// Waits until nobody else writes to `file`.
    pub(crate) fn lock_file(&self, file: FileId) -> DestinationGuard<'_> {
        let mut state = lock(&self.state);
        while !state.files.insert(file) {
            state.waiting += 1;
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        DestinationGuard { writing: self, file }
    }
}

impl Drop for DestinationGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.writing.state);
        state.files.remove(&self.file);
        // To wake nobody is a system call as well.
        if state.waiting > 0 {
            self.writing.finished.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_writes_at_a_time() {
        let (writing, inside) = (DestinationLocks::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for ino in 0..200 {
                        let _other = writing.lock_file(FileId { dev: 2, ino });
                        let _turn = writing.lock_file(FileId { dev: 1, ino: 1 });
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let state = lock(&writing.state);
        assert!(state.files.is_empty() && state.waiting == 0);
    }
}
