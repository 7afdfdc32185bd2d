//! Locks that workers take before those of the kernel, for creating files, and locks for single files.
//!
//! The kernel creates the files of a directory one at a time. On XFS it also locks the allocation
//! group, since a file gets an inode from the group of its directory. Workers that wait in the kernel
//! sleep and are woken for each file, which takes longer than the file. Here they spin, and wait once
//! for several new files (docs/design/small-files.md).

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use sys::{XfsGeometry, xfs_geometry};

use crate::fs::{FileId, XFS, fs_type_of};
use crate::hash::HashSet;
use crate::lock::lock;

/// How long a worker spins before it sleeps. Others hold the lock for a batch of new files, some 100
/// microseconds. A worker that sleeps may wake up on the processor of the one that wakes it
/// (docs/design/placement.md).
const SPIN_TIME: Duration = Duration::from_micros(500);

/// Allocation groups with a lock of their own. Groups beyond that number share locks.
const GROUPS_MAX: usize = 64;

/// The lock for creating files in a directory, which directories of one allocation group share.
pub(crate) type CreationLock = Arc<Mutex<()>>;

/// The locks of the file systems of a run, by device number.
#[derive(Default)]
pub(crate) struct CreationLocks(Mutex<Vec<(u64, Option<Groups>)>>);

/// The allocation groups of an XFS file system.
struct Groups {
    geometry: XfsGeometry,
    locks: Vec<CreationLock>,
}

impl CreationLocks {
    /// The lock for the directory `fd`. Only in one that `is_private` files are created in batches.
    pub(crate) fn of(&self, fd: BorrowedFd<'_>, id: FileId, is_private: bool) -> CreationLock {
        if !is_private {
            return CreationLock::default();
        }
        let mut known = lock(&self.0);
        let at = known.iter().position(|(device, _)| *device == id.dev).unwrap_or_else(|| {
            let is_xfs = fs_type_of(fd) == Some(XFS);
            let geometry = is_xfs.then(|| xfs_geometry(fd).ok()).flatten();
            let groups = geometry.map(|geometry| {
                let number = (geometry.groups as usize).clamp(1, GROUPS_MAX);
                Groups { geometry, locks: (0..number).map(|_| <_>::default()).collect() }
            });
            known.push((id.dev, groups));
            known.len() - 1
        });
        let of_group = known[at].1.as_ref().map(|Groups { geometry, locks }| {
            let group = usize::try_from(id.ino >> geometry.group_shift).unwrap_or_default();
            locks[group % locks.len()].clone()
        });
        of_group.unwrap_or_default()
    }
}

/// Waits until no other worker creates files under `mutex`. Spins first: sleeping and waking often takes longer than
/// the lock is held.
pub(crate) fn lock_creation(mutex: &CreationLock) -> MutexGuard<'_, ()> {
    let started = Instant::now();
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if started.elapsed() >= SPIN_TIME => return lock(mutex),
            Err(TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
}

// Locks for files, of which one worker at a time writes to one, or makes its first copy.
//
// Two names in a destination tree may be the same file, by a hard or symbolic link. Two workers
// that wrote to it at once would mix their data.

/// The files that workers have locked.
#[derive(Default)]
pub(crate) struct FileLocks {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Default)]
struct State {
    files: HashSet<FileId>,
    /// Workers that wait for one of them.
    waiting: usize,
}

/// Keeps a file locked until it is dropped.
pub(crate) struct FileGuard<'w> {
    locks: &'w FileLocks,
    file: FileId,
}

impl FileLocks {
    /// Waits until no other worker has locked `file`.
    pub(crate) fn lock_file(&self, file: FileId) -> FileGuard<'_> {
        let mut state = lock(&self.state);
        while !state.files.insert(file) {
            state.waiting += 1;
            state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        FileGuard { locks: self, file }
    }
}

impl Drop for FileGuard<'_> {
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
    use std::fs::{File, create_dir};
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use testfs::{FsKind, each_fs};

    use super::*;

    #[test]
    fn directories_of_one_xfs_group_share_a_lock_and_others_have_their_own() {
        each_fs(|kind, dir| {
            let creation_locks = CreationLocks::default();
            let lock_of = |number: usize| {
                let path = dir.join(number.to_string());
                create_dir(&path).expect("created");
                let (fd, stat) = (File::open(&path).expect("opened"), path.metadata());
                let stat = stat.expect("its inode");
                creation_locks.of(fd.as_fd(), FileId { dev: stat.dev(), ino: stat.ino() }, true)
            };
            let locks: Vec<_> = (0..40).map(lock_of).collect();
            let first = lock_creation(&locks[0]);
            let is_free = |lock: &CreationLock| lock.try_lock().is_ok();
            let others = locks.iter().skip(1).filter(|lock| !is_free(lock)).count();
            // A file system of some megabytes has four groups.
            let expected = if kind == FsKind::Xfs { 3..=30 } else { 0..=0 };
            assert!(expected.contains(&others), "{kind}: {others} share the lock of the first");
            // A waiting worker continues only after the lock is released.
            let released = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    drop(lock_creation(&locks[0]));
                    assert!(released.load(Ordering::SeqCst), "{kind}");
                });
                thread::sleep(3 * SPIN_TIME);
                released.store(true, Ordering::SeqCst);
                drop(first);
            });
            assert!(locks.iter().all(is_free), "{kind}");
        });
    }

    #[test]
    fn one_worker_at_a_time_writes_to_a_file() {
        let (locks, inside) = (FileLocks::default(), AtomicUsize::new(0));
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
