//! The scratch directory: the only place that the lab writes to. It is removed however the
//! program ends; after SIGKILL the next run reports it.

pub mod files;
pub mod inode_reclaim;
pub mod space;

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir, flock};
use rustix::io::Errno;

use crate::error::Error;
use space::require_space;

/// A fresh directory under the one that the user named. Nothing outside it is ever created, written
/// or removed. Dropping it removes it with all it holds.
#[derive(Debug)]
pub struct Scratch(Arc<Remover>);

/// A directory that another process makes and removes, for the files of runs.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    dir: OwnedFd,
}

/// Removes a scratch directory, from any thread and as often as one likes: for the thread that
/// waits for signals.
#[derive(Debug)]
pub struct Remover {
    parent: OwnedFd,
    name: OsString,
    work: WorkDir,
}

/// How the names of scratch directories begin; what they are for follows.
const PREFIX: &str = ".haulage-";

/// What scratch directories are for.
const KINDS: [&str; 3] = ["race", "bench", "tune"];

/// Scratch directories in `dst_dir` that no experiment works in any more: a SIGKILL, or the end of
/// the machine, leaves no time to remove them. A process that works in one holds a lock on it.
pub fn abandoned(dst_dir: &Path) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Shared, since another race may be looking at the same moment.
    let is_abandoned = |path: &Path| {
        rustix::fs::open(path, flags, Mode::empty())
            .is_ok_and(|dir| flock(&dir, FlockOperation::NonBlockingLockShared).is_ok())
    };
    let entries = std::fs::read_dir(dst_dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| is_scratch(&entry.file_name()))
        .map(|entry| entry.path())
        .filter(|path| is_abandoned(path))
        .collect()
}

/// Removes scratch directories in `dst_dir` for `purpose` that a kill left behind. What cannot be removed remains
/// [`abandoned`]. Those of others are left alone: on a file system that several machines share, a lock may be one that
/// only its own machine knows of.
pub fn remove_left(dst_dir: &Path, purpose: &str) {
    let is_its = |left: &PathBuf| left.file_name().is_some_and(|name| is_for(name, purpose));
    for left in abandoned(dst_dir).into_iter().filter(is_its) {
        // What was killed may be ending still, in the middle of a call that makes a file.
        let _ = (0..100).find(|_| {
            std::fs::remove_dir_all(&left)
                .inspect_err(|_| std::thread::sleep(std::time::Duration::from_millis(10)))
                .is_ok()
        });
    }
}

fn is_scratch(name: &OsStr) -> bool {
    KINDS.iter().any(|kind| is_for(name, kind))
}

/// Whether a scratch directory of this name has the purpose, or one that begins with it and a `-`.
fn is_for(name: &OsStr, purpose: &str) -> bool {
    name.as_bytes().starts_with(format!("{PREFIX}{purpose}-").as_bytes())
}

impl Scratch {
    /// Makes `.haulage-<purpose>-<pid>-<random>` in `dst_dir`. The purpose is `race`, `bench` or `tune`, perhaps with
    /// a `-` and what else tells it from others: a kill at any moment leaves nothing that [`remove_left`] would not
    /// find.
    ///
    /// # Errors
    /// When `dst_dir` cannot be opened or written to.
    ///
    /// # Panics
    /// With another purpose: what a killed program leaves of it would not be found.
    pub fn create(dst_dir: &Path, purpose: &str) -> Result<Scratch, Error> {
        let is_known = is_scratch(OsStr::new(&format!("{PREFIX}{purpose}-")));
        assert!(is_known, "scratch directories are for {KINDS:?}");
        let WorkDir { dir: parent, .. } = WorkDir::open(dst_dir)?;
        let failed = |errno| Error::NoScratch { dir: dst_dir.to_owned(), errno };
        let name = loop {
            let (pid, random) = (std::process::id(), fastrand::u32(..));
            let name = format!("{PREFIX}{purpose}-{pid}-{random:08x}");
            match rustix::fs::mkdirat(&parent, &name, Mode::RWXU) {
                Ok(()) => break OsString::from(name),
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        };
        let path = dst_dir.join(&name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::openat(&parent, &name, flags, Mode::empty()) {
            Ok(dir) => {
                // Where locks are not supported, abandoned directories cannot be found either.
                let _ = flock(&dir, FlockOperation::LockExclusive);
                Ok(Scratch(Arc::new(Remover { parent, name, work: WorkDir { path, dir } })))
            }
            Err(errno) => {
                // It was made a moment ago and is empty; that it cannot be opened is the error.
                let _ = rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR);
                Err(failed(errno))
            }
        }
    }

    /// A second handle that can remove the directory.
    #[must_use]
    pub fn remover(&self) -> Arc<Remover> {
        Arc::clone(&self.0)
    }
}

impl Deref for Scratch {
    type Target = WorkDir;

    fn deref(&self) -> &WorkDir {
        &self.0.work
    }
}

impl WorkDir {
    /// The directory at `path`, which is there.
    ///
    /// # Errors
    /// What open(2) gives.
    pub fn open(path: &Path) -> Result<WorkDir, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, Mode::empty())
            .map_err(Error::path("cannot open the directory", path))?;
        Ok(WorkDir { path: path.to_owned(), dir })
    }

    /// Where it is, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory.
    pub fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Creates a file that was not there, open for reading and writing.
    ///
    /// # Errors
    /// What openat(2) gives.
    pub fn create_file(&self, name: &str) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(Error::path("cannot create", self.path.join(name)))
    }

    /// Removes a file that was created here.
    ///
    /// # Errors
    /// What unlinkat(2) gives.
    pub fn remove_file(&self, name: &str) -> Result<(), Error> {
        rustix::fs::unlinkat(&self.dir, name, AtFlags::empty())
            .map_err(Error::path("cannot remove", self.path.join(name)))
    }

    /// Removes all files that are here.
    ///
    /// # Errors
    /// What the directory's listing or unlinkat(2) gives.
    pub fn remove_files(&self) -> Result<(), Error> {
        let failed = |errno| Error::path("cannot list", &self.path)(errno);
        for entry in rustix::fs::Dir::read_from(&self.dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                rustix::fs::unlinkat(&self.dir, name, AtFlags::empty())
                    .map_err(Error::path("cannot remove", self.path.join(name)))?;
            }
        }
        Ok(())
    }

    /// Refuses when the file system has not room for `needed_bytes` more.
    ///
    /// # Errors
    /// `NoSpace`, in words.
    pub fn require_space(&self, needed_bytes: u64) -> Result<(), Error> {
        let dir = self.path.parent().unwrap_or(&self.path);
        require_space(dir, dir, (needed_bytes, 0))
    }

    /// Opens a file for reading and writing, and creates it when it is not there.
    ///
    /// # Errors
    /// What openat(2) gives.
    pub fn open_or_create(&self, name: &str) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(Error::path("cannot open", self.path.join(name)))
    }

    /// Makes `fd`, a file here, hold `len` zeros that are on the medium and in the page cache.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn fill_zeros(&self, name: &str, fd: &OwnedFd, len: u64) -> Result<(), Error> {
        let failed = |errno| Error::path("cannot write", self.path.join(name))(errno);
        let zeros = [0; 1 << 16];
        let mut at = 0;
        while at < len {
            #[allow(clippy::cast_possible_truncation)] // At most the length of `zeros`.
            let piece = (len - at).min(zeros.len() as u64) as usize;
            engines::pwrite_all(fd.as_fd(), &zeros[..piece], at).1.map_err(failed)?;
            at += piece as u64;
        }
        rustix::fs::ftruncate(fd, len).map_err(failed)?;
        rustix::fs::fdatasync(fd).map_err(failed)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl Remover {
    /// The directory, if it is still there. After [`remove`](Self::remove) it cannot be removed.
    pub fn left(&self) -> Option<&Path> {
        let found = rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        (found.map(drop) != Err(Errno::NOENT)).then_some(self.work.path())
    }

    /// Removes the files in the directory and the directory. Once that is gone no file can be
    /// created in it any more, so a race that still runs in another thread leaves nothing behind.
    pub fn remove(&self) {
        // A file that another thread creates in between makes the directory not empty: once more.
        for _ in 0..1000 {
            remove_below(self.work.dir.as_fd());
            match rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::INTR) => {}
                _ => return,
            }
        }
    }
}

/// Removes what is in `dir`. What cannot be removed stays, where the user will find it. Needs no memory: this may be
/// the end of a process that has none.
fn remove_below(dir: BorrowedFd<'_>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Of its own, since the position is that of the open directory.
    let Ok(listed) = rustix::fs::openat(dir, c".", flags, Mode::empty()) else { return };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&listed, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if rustix::fs::unlinkat(dir, name, AtFlags::empty()) == Err(Errno::ISDIR)
            && let Ok(below) = rustix::fs::openat(dir, name, flags, Mode::empty())
        {
            remove_below(below.as_fd());
            let _ = rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_taken_up_finds_what_it_left() {
        let home = tempfile::tempdir().expect("created");
        let scratch = |purpose| Scratch::create(home.path(), purpose).expect("created");
        let left_by = |purpose| {
            // As a kill leaves it: the lock is gone, and nothing was removed.
            let left = scratch(purpose).path().to_owned();
            std::fs::create_dir_all(left.join("tree")).expect("made");
            left
        };
        let (own, other, longer) = (left_by("bench-a1"), left_by("bench-b2"), left_by("bench-a12"));
        let working = scratch("bench-a1");
        remove_left(home.path(), "bench-a1");
        assert!(!own.exists() && working.path().exists());
        std::fs::create_dir(home.path().join("not of haulage")).expect("made");
        let mut left = abandoned(home.path());
        left.sort();
        assert_eq!(left, [longer, other]);
    }

    #[test]
    fn a_second_handle_removes_it_under_a_writer() {
        let home = tempfile::tempdir().expect("created");
        let scratch = Scratch::create(home.path(), "race").expect("created");
        scratch.create_file("0").expect("a file");
        assert!(scratch.create_file("0").is_err(), "an existing file is never taken");
        let remover = scratch.remover();
        assert_eq!(remover.left(), Some(scratch.path()));
        std::thread::scope(|scope| {
            let scratch = &scratch;
            let writer = scope
                .spawn(move || (1_u32..).find(|n| scratch.create_file(&n.to_string()).is_err()));
            while scratch.path().read_dir().expect("listed").count() == 1 {
                std::thread::yield_now();
            }
            remover.remove();
            assert!(writer.join().expect("joined").is_some());
        });
        assert_eq!(remover.left(), None);
        assert_eq!(std::fs::read_dir(home.path()).expect("listed").count(), 0);
    }

    #[test]
    fn too_little_room_is_refused() {
        let home = tempfile::tempdir().expect("created");
        let scratch = Scratch::create(home.path(), "race").expect("created");
        scratch.require_space(1).expect("room for a byte");
        let refusal = scratch.require_space(u64::MAX).expect_err("no such disk");
        assert!(refusal.to_string().contains("not enough room"), "{refusal}");
    }
}
