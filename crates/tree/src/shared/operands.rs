//! The operands of a run and their copies, so that repeated operands are recognised.

use std::collections::hash_map::Entry;
use std::ffi::{CStr, CString, OsStr};
use std::hash::{BuildHasher, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{CWD, fstat};

use crate::fs::{
    DirPath, FileId, Place, have_one_directory, lstat, split, trim_slashes, without_end,
};
use crate::hash::{HashMap, HashSet, Seeded};
use crate::lock::lock;

/// The operands so far, and their copies.
#[derive(Default)]
pub(crate) struct Operands {
    /// With `--parents` operands are copied into several directories.
    parents: bool,
    files: Mutex<HashMap<NamedFile, Parents>>,
    /// Copies of operands.
    made: Mutex<MadeNames>,
    /// Which files in pre-existing directories this run has made or written to.
    in_preexisting: Mutex<Vec<u64>>,
    /// For pre-existing directories, some of which share one: locked while a name is created and noted.
    creations: [Mutex<()>; CREATIONS],
    /// Partners may have made or written to others.
    has_partner: AtomicBool,
    /// The directories of the last source and destination that were compared, and whether they are one.
    looked_at: Mutex<Option<([FileId; 2], bool)>>,
    /// Directory operands and their destinations.
    directories: Mutex<HashMap<FileId, PathBuf>>,
    /// Directories that this run created in pre-existing directories. A source directory that is
    /// one of these would be copied into itself without end.
    roots: Mutex<HashSet<FileId>>,
}

/// The names of each copy, by its directory, unless that is the target, and by its identity.
type MadeNames = HashMap<(Option<FileId>, FileId), Vec<CString>>;

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
        Operands { parents, ..Operands::default() }
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

    /// Whether `dirs`, the directories of `src` and `dst`, are one by two spellings of its name. `false` if nothing
    /// tells.
    pub(crate) fn are_one_directory(
        &self,
        dirs: [FileId; 2],
        src: &Place<'_>,
        dst: &Place<'_>,
    ) -> bool {
        let mut looked_at = lock(&self.looked_at);
        match *looked_at {
            Some((last, are_one)) if last == dirs => are_one,
            _ => {
                let are_one = have_one_directory(src, dst).unwrap_or(false);
                *looked_at = Some((dirs, are_one));
                are_one
            }
        }
    }

    /// Records the copy `id` of an operand, at `dst`.
    pub(crate) fn record_made(&self, dst: &Place<'_>, id: FileId) {
        let directory = self.directory_of(dst);
        lock(&self.made).entry((directory, id)).or_default().push(dst.name.into());
    }

    /// Whether `id` at `dst` is the copy of an earlier operand.
    pub(crate) fn was_made(&self, dst: &Place<'_>, id: FileId) -> bool {
        let directory = self.directory_of(dst);
        lock(&self.made)
            .get(&(directory, id))
            .is_some_and(|names| names.iter().any(|name| **name == *dst.name))
    }

    /// The names in the directory of `dst` to which earlier operands were copied.
    pub(crate) fn names_made_beside(&self, dst: &Place<'_>) -> Vec<CString> {
        let directory = self.directory_of(dst);
        let made = lock(&self.made);
        let beside = made.iter().filter(|((made_in, _), _)| *made_in == directory);
        beside.flat_map(|(_, names)| names).cloned().collect()
    }

    /// Records that this run has made or written to the file `id` at `dst`, in a pre-existing directory.
    pub(crate) fn note_in_preexisting(&self, dst: &Place<'_>, id: FileId) {
        let mut words = lock(&self.in_preexisting);
        if words.is_empty() {
            *words = vec![0; WORDS];
        }
        for (word, bit) in bits_of(dst, id) {
            words[word] |= bit;
        }
    }

    /// Locks out other workers that create names in the directory `dir`, until the new one is noted. A worker that has
    /// found a name waits for the lock before it asks whether this run has made the file.
    pub(crate) fn lock_creation(&self, dir: Option<&DirPath>) -> MutexGuard<'_, ()> {
        let number = dir.and_then(DirPath::id).map_or(0, |id| id.ino % CREATIONS as u64);
        lock(&self.creations[usize::try_from(number).expect("below the number of locks")])
    }

    /// Notes that a partner has names of this copy, and may make or write to any file.
    pub(crate) fn note_partner(&self) {
        self.has_partner.store(true, Ordering::Relaxed);
    }

    /// Whether this run may have made or written to the file `id` at `dst`, perhaps by another spelling of its name.
    /// The files are not listed, because there may be millions.
    pub(crate) fn may_be_of_this_run(&self, dst: &Place<'_>, id: FileId) -> bool {
        let words = lock(&self.in_preexisting);
        let is_set = |(at, bit): (usize, u64)| words.get(at).is_some_and(|word| word & bit != 0);
        self.has_partner.load(Ordering::Relaxed) || bits_of(dst, id).any(is_set)
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

    /// Records a directory that a partner created as [`create_root`](Operands::create_root) does.
    pub(crate) fn record_root(&self, id: FileId) {
        lock(&self.roots).insert(id);
    }

    /// Whether `id` is a directory that [`create_root`](Operands::create_root) made.
    pub(crate) fn is_created_root(&self, id: FileId) -> bool {
        lock(&self.roots).contains(&id)
    }
}

/// Locks for creating names. Workers are few.
const CREATIONS: usize = 31;

/// Words of 64 bits: two bits for each of half a million files.
const WORDS: usize = 1 << 14;

/// The words and bits that stand for a file, and for others: by its number, and by all spellings of its name, since each
/// may have a number of its own. Without a table nobody knows the spellings of a name that is not ASCII.
fn bits_of(dst: &Place<'_>, id: FileId) -> impl Iterator<Item = (usize, u64)> {
    // Fibonacci hashing: neighbours get places that are far apart.
    let of_id = (id.ino ^ id.dev.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let of_name = dst.name.to_bytes().is_ascii().then(|| {
        let mut hasher = Seeded::default().build_hasher();
        let above = std::iter::successors(dst.shown.dir(), |dir| dir.parent());
        let above = above.filter(|dir| dir.parent().is_some()).take(LEVELS).map(DirPath::name);
        for name in [dst.name.to_bytes()].into_iter().chain(above) {
            hasher.write(&without_end(name).to_ascii_lowercase());
            hasher.write_u8(b'/');
        }
        hasher.finish()
    });
    [Some(of_id), of_name].into_iter().flatten().map(bit_of)
}

/// How many directories above a name are told apart. The depth of a tree has no limit.
const LEVELS: usize = 8;

fn bit_of(hash: u64) -> (usize, u64) {
    let word = usize::try_from(hash >> (64 - WORDS.trailing_zeros())).expect("an index of a word");
    (word, 1 << (hash >> 32 & 63))
}

/// The directory part of an operand's name. A symbolic link counts as itself, since `--parents`
/// creates a directory for it.
fn directory_at(name: &[u8]) -> Option<FileId> {
    let name = OsStr::from_bytes(trim_slashes(name));
    lstat(CWD, name).ok().map(|stat| FileId::of(&stat))
}
