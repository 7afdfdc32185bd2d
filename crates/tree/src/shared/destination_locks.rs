//! Locks for existing destinations, so that one worker at a time writes to a file.
//!
//! Two names in a destination tree may be the same file, by a hard or symbolic link. Two workers
//! that wrote to it at once would mix their data.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::fs::FileId;
use crate::hash::HashSet;
use crate::lock::lock;

/// The existing files that are being written to.
#[derive(Default)]
pub(crate) struct DestinationLocks {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Default)]
struct State {
    files: HashSet<FileId>,
    /// Workers that wait for one of them.
    waiting: usize,
}

/// The right to write to a file, until it is dropped.
pub(crate) struct DestinationGuard<'w> {
    locks: &'w DestinationLocks,
    file: FileId,
}

impl DestinationLocks {
    /// Waits until no other worker writes to `file`.
    pub(crate) fn lock_file(&self, file: FileId) -> DestinationGuard<'_> {
        let mut state = lock(&self.state);
        while !state.files.insert(file) {
            state.waiting += 1;
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        DestinationGuard { locks: self, file }
    }
}

impl Drop for DestinationGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.locks.state);
        state.files.remove(&self.file);
        // Notifying without a waiter is a system call too.
        if state.waiting > 0 {
            self.locks.finished.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_worker_at_a_time_writes_to_a_file() {
        let (locks, inside) = (DestinationLocks::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for ino in 0..200 {
                        let _other = locks.lock_file(FileId { dev: 2, ino });
                        let _same = locks.lock_file(FileId { dev: 1, ino: 1 });
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let state = lock(&locks.state);
        assert!(state.files.is_empty() && state.waiting == 0);
    }
}
