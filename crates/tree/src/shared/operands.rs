//! The operands of a run and what was made of them, so that one that repeats is recognised.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{AtFlags, CWD, fstat, statat};

use crate::fs::{FileId, Place, split, trim_slashes};
use crate::lock::lock;

/// What is known of the operands and of what was made of them.
pub(crate) struct Operands {
    /// With `--parents` operands go into several directories.
    parents: bool,
    files: Mutex<HashMap<NamedFile, Above>>,
    /// What was made of an operand: its directory, unless that is the target, its name there, and
    /// the file.
    made: Mutex<HashSet<(Option<FileId>, CString, FileId)>>,
    /// Directory operands, and where each went.
    directories: Mutex<HashMap<FileId, PathBuf>>,
    /// Directories of this run whose parent is none of this run's: a source directory that is one
    /// of these would be copied into itself for ever.
    roots: Mutex<HashSet<FileId>>,
}

/// A file operand, and the last component of its name.
type NamedFile = (FileId, Box<[u8]>);

/// The directories in which a file operand has a name. Few have a second, so only then is it looked
/// which directory the first one's path leads to.
enum Above {
    Path(Box<[u8]>),
    Directories(HashSet<FileId>),
}

impl Above {
    /// Whether the directory at `path` is one of them; if not it becomes one.
    fn insert_again(&mut self, path: &[u8]) -> bool {
        if let Above::Path(first) = self {
            *self = Above::Directories(directory_at(first).into_iter().collect());
        }
        let Above::Directories(ids) = self else { unreachable!("it was just made so") };
        directory_at(path).is_some_and(|id| !ids.insert(id))
    }
}

impl Operands {
    /// None so far. `parents` is the option `--parents`.
    pub(crate) fn new(parents: bool) -> Operands {
        Operands {
            parents,
            files: Mutex::default(),
            made: Mutex::default(),
            directories: Mutex::default(),
            roots: Mutex::default(),
        }
    }

    /// Whether `name` of this file, by whatever way to its directory, was an operand before. The
    /// same name in another directory is not this one: with --parents it goes elsewhere.
    pub(crate) fn is_repeated_file(&self, src: FileId, name: &CStr) -> bool {
        let (above, base) = split(name);
        let mut files = lock(&self.files);
        match files.entry((src, base.into())) {
            Entry::Vacant(entry) => {
                entry.insert(Above::Path(above.into()));
                false
            }
            Entry::Occupied(entry) => entry.into_mut().insert_again(above),
        }
    }

    /// Remembers that `id` was made of an operand, as `dst`.
    pub(crate) fn record_made(&self, dst: &Place<'_>, id: FileId) {
        lock(&self.made).insert((self.directory_of(dst), dst.name.into(), id));
    }

    /// Whether `id` was made of an operand before, as `dst`.
    pub(crate) fn was_made(&self, dst: &Place<'_>, id: FileId) -> bool {
        lock(&self.made).contains(&(self.directory_of(dst), dst.name.into(), id))
    }

    /// Where the directory operand `src` went before; the first time it is remembered.
    pub(crate) fn directory_before(&self, src: FileId, dst: &Path) -> Option<PathBuf> {
        match lock(&self.directories).entry(src) {
            Entry::Occupied(entry) => Some(entry.get().clone()),
            Entry::Vacant(entry) => {
                entry.insert(dst.to_owned());
                None
            }
        }
    }

    /// The directory operand `src` has not gone to `dst` after all.
    pub(crate) fn forget_directory(&self, src: FileId, dst: &Path) {
        if let Entry::Occupied(entry) = lock(&self.directories).entry(src)
            && entry.get() == dst
        {
            entry.remove();
        }
    }

    /// The directory that `dst` is in, where not all operands go into the same.
    fn directory_of(&self, dst: &Place<'_>) -> Option<FileId> {
        let stat = self.parents.then(|| fstat(dst.dir).ok())??;
        Some(FileId::of(&stat))
    }

    /// Makes a directory whose parent is none of this run's and remembers it. The lock is held
    /// meanwhile, so that no worker that has seen the name is told by
    /// [`is_created_root`](Operands::is_created_root) that this run did not make it.
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

    /// Whether `id` is a directory that [`create_root`](Operands::create_root) made.
    pub(crate) fn is_created_root(&self, id: FileId) -> bool {
        lock(&self.roots).contains(&id)
    }
}

/// The directory that an operand's name begins with. A symbolic link counts for itself: --parents
/// makes another directory of it.
fn directory_at(name: &[u8]) -> Option<FileId> {
    let name = OsStr::from_bytes(trim_slashes(name));
    statat(CWD, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| FileId::of(&stat))
}
