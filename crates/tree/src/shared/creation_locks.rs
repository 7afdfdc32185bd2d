//! Where in a file system the kernel lets only one process lock_creation files, or lock_sharing blocks, at a time.
//!
//! That is the directory everywhere. On XFS it is the allocation group as well: a file gets an
//! inode of the group that its directory is in, and whoever shares its blocks changes a tree of
//! that group. Two workers who meet there go to sleep and are woken for each file, which takes
//! longer than the file does; here they meet before, once for some files.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use engines::sys::{XfsGeometry, xfs_geometry};

use crate::fs::{FileId, XFS, file_system};
use crate::lock::lock;

/// How long a worker who waits stays awake.
const SPIN_TIME: Duration = Duration::from_micros(100);

/// Locks for groups. Groups beyond that number lock_sharing them.
const GROUPS_MAX: usize = 64;

/// The file systems that have been met, by device number.
#[derive(Default)]
pub(crate) struct CreationLocks(Mutex<Vec<(u64, Option<Arc<Groups>>)>>);

/// An XFS file system's allocation groups.
pub(crate) struct Groups {
    geometry: XfsGeometry,
    locks: Vec<Locks>,
}

#[derive(Default)]
struct Locks {
    creating: Mutex<()>,
    sharing: Mutex<()>,
}

/// The region that a directory is in.
pub(crate) enum CreationLock {
    /// The directory alone.
    Directory(Mutex<()>),
    /// Its allocation group.
    Group { groups: Arc<Groups>, at: usize },
}

impl Default for CreationLock {
    fn default() -> CreationLock {
        CreationLock::Directory(Mutex::default())
    }
}

impl CreationLocks {
    /// The region of the directory `fd`.
    pub(crate) fn of(&self, fd: BorrowedFd<'_>, id: FileId) -> CreationLock {
        let known = lock(&self.0).iter().find(|(device, _)| *device == id.dev).cloned();
        let groups = match known {
            Some((_, groups)) => groups,
            None => self.enter(fd, id.dev),
        };
        groups.map_or_else(CreationLock::default, |groups| {
            let group = usize::try_from(id.ino >> groups.geometry.group_shift);
            let at = group.unwrap_or_default() % groups.locks.len();
            CreationLock::Group { groups, at }
        })
    }

    /// Asks the file system of `fd`, which nobody is made to wait for.
    fn enter(&self, fd: BorrowedFd<'_>, dev: u64) -> Option<Arc<Groups>> {
        let is_xfs = file_system(fd) == Some(XFS);
        let geometry = is_xfs.then(|| xfs_geometry(fd).ok()).flatten();
        let groups = geometry.map(|geometry| Arc::new(Groups::new(geometry)));
        let mut known = lock(&self.0);
        // Somebody may have asked meanwhile.
        let entered = known.iter().find(|(device, _)| *device == dev).cloned();
        let (_, groups) = entered.unwrap_or_else(|| {
            known.push((dev, groups.clone()));
            (dev, groups)
        });
        groups
    }
}

impl Groups {
    fn new(geometry: XfsGeometry) -> Groups {
        let number = (geometry.groups as usize).clamp(1, GROUPS_MAX);
        Groups { geometry, locks: (0..number).map(|_| Locks::default()).collect() }
    }
}

impl CreationLock {
    /// Waits until nobody else of this run makes files in the region.
    pub(crate) fn lock_creation(&self) -> MutexGuard<'_, ()> {
        lock_spinning(match self {
            CreationLock::Directory(creating) => creating,
            CreationLock::Group { groups, at } => &groups.locks[*at].creating,
        })
    }

    /// Waits until nobody else of this run shares blocks of files in the region, where only one
    /// can.
    pub(crate) fn lock_sharing(&self) -> Option<MutexGuard<'_, ()>> {
        match self {
            CreationLock::Group { groups, at } if groups.geometry.shares => {
                Some(lock_spinning(&groups.locks[*at].sharing))
            }
            CreationLock::Directory(_) | CreationLock::Group { .. } => None,
        }
    }
}

/// Locks `mutex`, which others have for some 100 microseconds. To go to sleep and to be woken takes
/// as long.
fn lock_spinning(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    let begun = Instant::now();
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= SPIN_TIME => return lock(mutex),
            // Whoever has something to do goes first.
            Err(TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir};
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use testfs::{FsKind, each_fs};

    use super::*;

    #[test]
    fn directories_of_one_group_of_xfs_are_one_region_and_others_each_their_own() {
        each_fs(|kind, dir| {
            let creation_locks = CreationLocks::default();
            let region = |number: usize| {
                let path = dir.join(number.to_string());
                create_dir(&path).expect("a directory");
                let (fd, stat) = (File::open(&path).expect("it opens"), path.metadata());
                let stat = stat.expect("its inode");
                creation_locks.of(fd.as_fd(), FileId { dev: stat.dev(), ino: stat.ino() })
            };
            let creation_locks: Vec<_> = (0..40).map(region).collect();
            let first = creation_locks[0].lock_creation();
            let creating = |region: &CreationLock| match region {
                CreationLock::Directory(creating) => creating.try_lock().is_ok(),
                CreationLock::Group { groups, at } => groups.locks[*at].creating.try_lock().is_ok(),
            };
            let others = creation_locks.iter().skip(1).filter(|region| !creating(region)).count();
            // A file system of some megabytes has four groups.
            let expected = if kind == FsKind::Xfs { 3..=30 } else { 0..=0 };
            assert!(expected.contains(&others), "{kind}: {others} meet the first");
            // Nor does waiting for it end before it is given back.
            let given_back = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    drop(creation_locks[0].lock_creation());
                    assert!(given_back.load(Ordering::SeqCst), "{kind}");
                });
                thread::sleep(3 * SPIN_TIME);
                given_back.store(true, Ordering::SeqCst);
                drop(first);
            });
            assert!(creation_locks.iter().all(creating), "{kind}");
            assert_eq!(creation_locks[1].lock_sharing().is_some(), kind == FsKind::Xfs, "{kind}");
        });
    }
}
