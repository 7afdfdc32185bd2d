//! The operands of a run and their copies, so that repeated operands are recognised.

use std::collections::hash_map::Entry;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{AtFlags, CWD, fstat, statat};

use crate::fs::{FileId, Place, split, trim_slashes};
use crate::hash::{HashMap, HashSet};
use crate::lock::lock;

/// The operands so far, and their copies.
pub(crate) struct Operands {
    /// With `--parents` operands are copied into several directories.
    parents: bool,
    files: Mutex<HashMap<NamedFile, Parents>>,
    /// Copies of operands: the directory, unless that is the target, the name there, and the file.
    made: Mutex<HashSet<(Option<FileId>, CString, FileId)>>,
    /// Directory operands and their destinations.
    directories: Mutex<HashMap<FileId, PathBuf>>,
    /// Directories that this run created in pre-existing directories. A source directory that is
    /// one of these would be copied into itself without end.
    roots: Mutex<HashSet<FileId>>,
}

/// A file operand, and the last component of its name.
type NamedFile = (FileId, Box<[u8]>);

/// The directories of the names of one file operand. Few files have a second name, so that the
/// first directory is looked up only then.
enum Parents {
    Path(Box<[u8]>),
    Directories(HashSet<FileId>),
}

impl Parents {
    /// Adds the directory `path`. Returns whether it was there before.
    fn insert_again(&mut self, path: &[u8]) -> bool {
        if let Parents::Path(first) = self {
            *self = Parents::Directories(directory_at(first).into_iter().collect());
        }
        let Parents::Directories(ids) = self else { unreachable!("it was just set") };
        directory_at(path).is_some_and(|id| !ids.insert(id))
    }
}

impl Operands {
    /// `parents` is the option `--parents`.
    pub(crate) fn new(parents: bool) -> Operands {
        Operands {
            parents,
            files: Mutex::default(),
            made: Mutex::default(),
            directories: Mutex::default(),
            roots: Mutex::default(),
        }
    }

    /// Records the file operand `name`. Returns whether the same name in the same directory was an
    /// operand before. With `--parents` names in two directories have two destinations.
    pub(crate) fn is_repeated_file(&self, src: FileId, name: &CStr) -> bool {
        let (above, base) = split(name);
        let mut files = lock(&self.files);
        match files.entry((src, base.into())) {
            Entry::Vacant(entry) => {
                entry.insert(Parents::Path(above.into()));
                false
            }
            Entry::Occupied(entry) => entry.into_mut().insert_again(above),
        }
    }

    /// Records the copy `id` of an operand, at `dst`.
    pub(crate) fn record_made(&self, dst: &Place<'_>, id: FileId) {
        lock(&self.made).insert((self.directory_of(dst), dst.name.into(), id));
    }

    /// Whether `id` at `dst` is the copy of an earlier operand.
    pub(crate) fn was_made(&self, dst: &Place<'_>, id: FileId) -> bool {
        lock(&self.made).contains(&(self.directory_of(dst), dst.name.into(), id))
    }

    /// The earlier destination of the directory operand `src`. The first time `dst` is recorded.
    pub(crate) fn directory_before(&self, src: FileId, dst: &Path) -> Option<PathBuf> {
        match lock(&self.directories).entry(src) {
            Entry::Occupied(entry) => Some(entry.get().clone()),
            Entry::Vacant(entry) => {
                entry.insert(dst.to_owned());
                None
            }
        }
    }

    /// Forgets the destination `dst` of the directory operand `src`, whose copy failed.
    pub(crate) fn forget_directory(&self, src: FileId, dst: &Path) {
        if let Entry::Occupied(entry) = lock(&self.directories).entry(src)
            && entry.get() == dst
        {
            entry.remove();
        }
    }

    /// The directory of `dst`, if the operands go into several.
    fn directory_of(&self, dst: &Place<'_>) -> Option<FileId> {
        let stat = self.parents.then(|| fstat(dst.dir).ok())??;
        Some(FileId::of(&stat))
    }

    /// Creates a directory in a pre-existing directory with `make`, and records it. The lock is
    /// held meanwhile, so that [`is_created_root`](Operands::is_created_root) is right as soon as
    /// another worker finds the name.
    pub(crate) fn create_root<T, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        id: impl FnOnce(&T) -> FileId,
    ) -> Result<T, E> {
        let mut roots = lock(&self.roots);
        make().inspect(|made| {
            roots.insert(id(made));
        })
    }

    /// Records a directory that another rank created as [`create_root`](Operands::create_root) does.
    pub(crate) fn record_root(&self, id: FileId) {
        lock(&self.roots).insert(id);
    }

    /// Whether `id` is a directory that [`create_root`](Operands::create_root) made.
    pub(crate) fn is_created_root(&self, id: FileId) -> bool {
        lock(&self.roots).contains(&id)
    }
}

/// The directory part of an operand's name. A symbolic link counts as itself, since `--parents`
/// creates a directory for it.
fn directory_at(name: &[u8]) -> Option<FileId> {
    let name = OsStr::from_bytes(trim_slashes(name));
    statat(CWD, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| FileId::of(&stat))
}
