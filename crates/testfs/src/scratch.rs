//! Fresh directories on the file systems that the environment names.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::skip::{skip, test_name};

/// The environment variable that names the file systems.
const VARIABLE: &str = "HAULAGE_TEST_FS";

/// The environment variable that names small file systems, for tests of ENOSPC.
const SMALL_VARIABLE: &str = "HAULAGE_TEST_SMALL_FS";

/// A kind of file system that tests run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FsKind {
    /// Journalled, writes in place, no reflink.
    Ext4,
    /// Writes in place, reflinks.
    Xfs,
    /// Copy-on-write, with checksums.
    Btrfs,
    /// In memory.
    Tmpfs,
}

impl FsKind {
    /// All of them.
    pub const ALL: [FsKind; 4] = [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs, FsKind::Tmpfs];

    /// The name of the file system for mount(8).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FsKind::Ext4 => "ext4",
            FsKind::Xfs => "xfs",
            FsKind::Btrfs => "btrfs",
            FsKind::Tmpfs => "tmpfs",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<FsKind> {
        FsKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether two files can share extents.
    #[must_use]
    pub fn reflinks(self) -> bool {
        matches!(self, FsKind::Xfs | FsKind::Btrfs)
    }
}

impl fmt::Display for FsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A fresh directory on one file system, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    /// The file system that it is on.
    pub kind: FsKind,
    dir: TempDir,
}

impl Scratch {
    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The path of `name` in it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }
}

/// A fresh directory on a small file system, which is locked for this test.
#[derive(Debug)]
pub struct SmallFs {
    scratch: Scratch,
    /// Holds the lock. It is dropped after the directory is removed.
    _locked: File,
}

impl SmallFs {
    /// The path of `name` in it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.join(name)
    }

    /// Fills the file system until a new file of one block does not fit, even after all was written to
    /// storage. ext4 can still free a few blocks later, when it ends a transaction.
    ///
    /// # Panics
    /// If that fails.
    pub fn leave_nothing(&self) {
        self.leave_room(0);
        // Delayed allocation reserves more than it needs, and gives the difference back when it
        // writes. So the file system is full when nothing fits after all was written.
        const BLOCK: [u8; 4096] = [1; 4096];
        for number in 0.. {
            let mut bytes = 0;
            let full = match File::create(self.join(format!("rest-{number}"))) {
                Ok(mut rest) => loop {
                    match rest.write(&BLOCK) {
                        Ok(written) => bytes += written,
                        Err(full) => break full,
                    }
                },
                Err(full) => full,
            };
            assert_eq!(full.kind(), ErrorKind::StorageFull, "{}: {full}", self.scratch.kind);
            let root = File::open(self.join("")).expect("opened");
            rustix::fs::syncfs(&root).expect("the file system writes its data");
            if bytes == 0 {
                return;
            }
        }
    }

    /// Fills the file system with one file, except for about `bytes`.
    ///
    /// # Panics
    /// If that fails.
    pub fn leave_room(&self, bytes: u64) {
        const STEP_BYTES: u64 = 256 << 10;
        let filler = File::create(self.join("filler")).expect("the file that fills it");
        let stat = rustix::fs::fstatvfs(&filler).expect("the free space");
        let mut len = (stat.f_bavail * stat.f_frsize).saturating_sub(bytes);
        // Part of the free space is for metadata. How much is found by trying.
        while len > 0 {
            match rustix::fs::fallocate(&filler, FallocateFlags::empty(), 0, len) {
                Ok(()) => return,
                Err(Errno::NOSPC) => len = len.saturating_sub(STEP_BYTES),
                Err(errno) => panic!("{}: filling it: {errno}", self.scratch.kind),
            }
        }
    }
}

/// A fresh directory on the file system `kind`. `None` after a reported skip.
///
/// # Panics
/// If the environment names the file system and no directory can be created there.
#[must_use]
pub fn fs(kind: FsKind) -> Option<Scratch> {
    Some(scratch_at(kind, &root_or_skip(VARIABLE, kind)?))
}

/// A fresh directory on a file system `kind` of 32 to 300 MiB, for tests of ENOSPC. Waits until no
/// other test uses it. `None` after a reported skip.
///
/// # Panics
/// If the environment names the file system and no directory can be created there.
#[must_use]
pub fn small_fs(kind: FsKind) -> Option<SmallFs> {
    Some(small_fs_at(kind, &root_or_skip(SMALL_VARIABLE, kind)?))
}

/// A fresh directory on the small file system `kind` at `root`. Waits until no other test uses it.
///
/// # Panics
/// If no directory can be created there.
#[must_use]
pub fn small_fs_at(kind: FsKind, root: &Path) -> SmallFs {
    let locked = File::open(root).expect("the root of a file system can be opened");
    rustix::fs::flock(&locked, FlockOperation::LockExclusive).expect("a directory can be locked");
    // The space of removed files may be freed late: wait for it.
    rustix::fs::syncfs(&locked).expect("a file system can be synced");
    SmallFs { scratch: scratch_at(kind, root), _locked: locked }
}

fn root_or_skip(variable: &str, kind: FsKind) -> Option<PathBuf> {
    root_of(variable, kind).map_err(|why| skip(&test_name(), &why)).ok()
}

fn scratch_at(kind: FsKind, root: &Path) -> Scratch {
    let dir = tempfile::Builder::new().prefix("test-").tempdir_in(root);
    let dir = dir.unwrap_or_else(|error| panic!("{kind}: {}: {error}", root.display()));
    Scratch { kind, dir }
}

/// Runs `test` in a fresh directory on every file system in turn. Missing ones are reported as
/// skips.
pub fn each_fs(mut test: impl FnMut(FsKind, &Path)) {
    for kind in FsKind::ALL {
        if let Some(scratch) = fs(kind) {
            test(kind, scratch.path());
        }
    }
}

/// Runs `test` with two fresh directories on every ordered pair of different file systems; the
/// first is for the source. Pairs with a missing one are reported as skips.
pub fn each_pair(mut test: impl FnMut(&Scratch, &Scratch)) {
    for src_kind in FsKind::ALL {
        let Some(src) = fs(src_kind) else { continue };
        for dst_kind in FsKind::ALL.into_iter().filter(|&kind| kind != src_kind) {
            if let Some(dst) = fs(dst_kind) {
                test(&src, &dst);
            }
        }
    }
}

/// The directory that the environment variable names for `kind`, or why there is none.
fn root_of(variable: &str, kind: FsKind) -> Result<PathBuf, String> {
    let list = std::env::var_os(variable)
        .ok_or_else(|| format!("no {kind}: {variable} is not set; `cargo xtask test` sets it"))?;
    let list = list.to_str().unwrap_or_else(|| panic!("{variable} is no UTF-8: {list:?}"));
    for item in list.split(':').filter(|item| !item.is_empty()) {
        let (name, dir) = item
            .split_once('=')
            .unwrap_or_else(|| panic!("{variable}: '{item}' is not of the form name=/directory"));
        assert!(
            FsKind::ALL.iter().any(|kind| kind.name() == name),
            "{variable}: no file system is called '{name}'"
        );
        if name == kind.name() {
            return Ok(PathBuf::from(dir));
        }
    }
    Err(format!("no {kind} in {variable}"))
}
