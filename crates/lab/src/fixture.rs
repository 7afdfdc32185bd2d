//! The one place where an experiment writes: a directory of its own, removed on every way out.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::error::Error;

/// A fresh directory under the one that the user named. Nothing outside it is ever created, written
/// or removed. Dropping it removes it with all it holds.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    remover: Remover,
}

/// Removes a scratch directory, from any thread and as often as one likes: for the thread that
/// waits for signals.
#[derive(Debug)]
pub struct Remover {
    parent: OwnedFd,
    name: OsString,
    dir: OwnedFd,
}

/// How the names of scratch directories begin.
const PREFIX: &str = ".haulage-race-";

/// Scratch directories in `dst_dir` that no experiment works in any more: a SIGKILL, or the end of
/// the machine, leaves no time to remove them. Whoever works in one holds a lock on it.
#[must_use]
pub fn abandoned(dst_dir: &Path) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Shared, since another race may be looking at the same moment.
    let is_abandoned = |path: &Path| {
        rustix::fs::open(path, flags, Mode::empty())
            .is_ok_and(|dir| flock(&dir, FlockOperation::NonBlockingLockShared).is_ok())
    };
    let entries = std::fs::read_dir(dst_dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()))
        .map(|entry| entry.path())
        .filter(|path| is_abandoned(path))
        .collect()
}

impl Scratch {
    /// Makes `.haulage-race-<pid>-<random>` in `dst_dir`.
    ///
    /// # Errors
    /// When `dst_dir` cannot be opened or written to.
    pub fn create(dst_dir: &Path) -> Result<Scratch, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(dst_dir, flags, Mode::empty())
            .map_err(Error::path("cannot open the directory", dst_dir))?;
        let failed = |errno| Error::path("cannot create a directory in", dst_dir)(errno);
        let name = loop {
            let name = format!("{PREFIX}{}-{:08x}", std::process::id(), fastrand::u32(..));
            match rustix::fs::mkdirat(&parent, &name, Mode::RWXU) {
                Ok(()) => break OsString::from(name),
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        };
        let path = dst_dir.join(&name);
        match rustix::fs::openat(&parent, &name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(dir) => {
                // Where locks are unknown nobody can look for abandoned ones either.
                let _ = flock(&dir, FlockOperation::LockExclusive);
                Ok(Scratch { path, remover: Remover { parent, name, dir } })
            }
            Err(errno) => {
                // It was made a moment ago and is empty; that it cannot be opened is the error.
                let _ = rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR);
                Err(failed(errno))
            }
        }
    }

    /// Where it is, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &OwnedFd {
        &self.remover.dir
    }

    /// A second handle that can remove the directory.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn remover(&self) -> Result<Remover, Error> {
        let again = |fd: &OwnedFd| {
            rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(Error::path("cannot hold", &self.path))
        };
        let Remover { parent, name, dir } = &self.remover;
        Ok(Remover { parent: again(parent)?, name: name.clone(), dir: again(dir)? })
    }

    /// Creates a file that was not there, open for reading and writing.
    ///
    /// # Errors
    /// What openat(2) gives.
    pub fn create_file(&self, name: &str) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(&self.remover.dir, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(Error::path("cannot create", self.path.join(name)))
    }

    /// Removes a file that was created here.
    ///
    /// # Errors
    /// What unlinkat(2) gives.
    pub fn remove_file(&self, name: &str) -> Result<(), Error> {
        rustix::fs::unlinkat(&self.remover.dir, name, AtFlags::empty())
            .map_err(Error::path("cannot remove", self.path.join(name)))
    }

    /// Refuses when the file system has not room for `needed_bytes` more.
    ///
    /// # Errors
    /// `NoSpace`, in words.
    pub fn require_space(&self, needed_bytes: u64) -> Result<(), Error> {
        let dir = self.path.parent().unwrap_or(&self.path).to_owned();
        let stat = rustix::fs::fstatvfs(&self.remover.dir)
            .map_err(Error::path("cannot ask for the free space of", &dir))?;
        // Some file systems without a fixed size report none at all.
        if stat.f_blocks == 0 {
            return Ok(());
        }
        let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        if free_bytes < needed_bytes {
            return Err(Error::NoSpace { dir, needed_bytes, free_bytes });
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remover.remove();
    }
}

impl Remover {
    /// Removes the files in the directory and the directory. Once that is gone no file can be
    /// created in it any more, so a race that still runs in another thread leaves nothing behind.
    pub fn remove(&self) {
        // A file that another thread creates in between makes the directory not empty: once more.
        for _ in 0..1000 {
            self.remove_files();
            match rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::INTR) => {}
                _ => return,
            }
        }
    }

    fn remove_files(&self) {
        let Ok(entries) = rustix::fs::Dir::read_from(self.dir.as_fd()) else { return };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                // What cannot be removed keeps the directory, where the user will find it.
                let _ = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_remains_of_it() {
        let home = tempfile::tempdir().expect("a directory");
        let scratch = Scratch::create(home.path()).expect("scratch");
        let _file = scratch.create_file("0").expect("a file");
        assert!(scratch.create_file("0").is_err(), "an existing file is never taken");
        assert_eq!(std::fs::read_dir(home.path()).expect("listed").count(), 1);
        drop(scratch);
        assert_eq!(std::fs::read_dir(home.path()).expect("listed").count(), 0);
    }

    #[test]
    fn what_a_killed_race_left_is_found() {
        let home = tempfile::tempdir().expect("a directory");
        let left = home.path().join(".haulage-race-1-deadbeef");
        std::fs::create_dir(&left).expect("made");
        std::fs::create_dir(home.path().join("other")).expect("made");
        let scratch = Scratch::create(home.path()).expect("scratch");
        assert_eq!(abandoned(home.path()), [left]);
        drop(scratch);
    }

    #[test]
    fn a_second_handle_removes_it_under_a_writer() {
        let home = tempfile::tempdir().expect("a directory");
        let scratch = Scratch::create(home.path()).expect("scratch");
        let remover = scratch.remover().expect("a second handle");
        std::thread::scope(|scope| {
            let scratch = &scratch;
            let writer = scope
                .spawn(move || (0_u32..).find(|n| scratch.create_file(&n.to_string()).is_err()));
            std::thread::sleep(std::time::Duration::from_millis(20));
            remover.remove();
            assert!(writer.join().expect("the writer ends").is_some());
        });
        assert_eq!(std::fs::read_dir(home.path()).expect("listed").count(), 0);
    }

    #[test]
    fn too_little_room_is_refused() {
        let home = tempfile::tempdir().expect("a directory");
        let scratch = Scratch::create(home.path()).expect("scratch");
        scratch.require_space(1).expect("room for a byte");
        let refusal = scratch.require_space(u64::MAX).expect_err("no such disk");
        assert!(refusal.to_string().contains("not enough room"), "{refusal}");
    }
}
