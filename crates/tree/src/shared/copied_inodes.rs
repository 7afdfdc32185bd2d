//! The copy of each source, in about 40 bytes a source. With `-L` and preserved hard links every
//! file of a tree is recorded, since a symbolic link may lead to it again.

use std::ffi::{CStr, CString};
use std::hash::BuildHasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use crate::fs::{DirPath, FileId};
use crate::hash::Seeded;

/// The first copy of a source.
#[derive(Clone, Debug)]
pub(crate) struct FirstCopy {
    pub(crate) dir: DirPath,
    pub(crate) name: CString,
    /// The identity of the copy, so that no other file is linked.
    pub(crate) id: FileId,
}

/// A hash table by source. A source takes an [`Entry`], the name of its copy, and 6 to 12 bytes of
/// the index.
#[derive(Default)]
pub(crate) struct CopiedInodes {
    entries: Vec<Entry>,
    directories: Vec<Directory>,
    /// Each ends in a zero byte.
    names: Vec<u8>,
    /// Positions in `entries`, by the hash of the source.
    index: HashTable<u32>,
    hasher: Seeded,
}

/// A source and its copy.
struct Entry {
    src_ino: u64,
    dst_ino: u64,
    /// Index in `directories`.
    directory: u32,
    /// Offset of the copy's name from the first name of its directory.
    name: u32,
}

/// What copies in one directory have in common.
struct Directory {
    dir_path: DirPath,
    src_dev: u64,
    dst_dev: u64,
    names_start: usize,
}

/// How many of the latest directories are compared before one is added again. Each worker is in a
/// directory of its own.
const RECENT_DIRECTORIES: usize = 16;

impl CopiedInodes {
    /// The copy of `src`.
    pub(crate) fn get(&self, src: FileId) -> Option<FirstCopy> {
        let is_of = |&position: &u32| source(&self.entries, &self.directories, position) == src;
        let position = *self.index.find(self.hasher.hash_one(src), is_of)?;
        let entry = &self.entries[position as usize];
        let directory = &self.directories[entry.directory as usize];
        let name = &self.names[directory.names_start + entry.name as usize..];
        let name = CStr::from_bytes_until_nul(name).expect("each name ends in a zero byte");
        let id = FileId { dev: directory.dst_dev, ino: entry.dst_ino };
        Some(FirstCopy { dir: directory.dir_path.clone(), name: name.into(), id })
    }

    /// Records the copy of `src`, and forgets an earlier one.
    pub(crate) fn insert(&mut self, src: FileId, dir: &DirPath, name: &CStr, copy: FileId) {
        // Beyond 2^32 sources, further hard links become separate files.
        let Ok(position) = u32::try_from(self.entries.len()) else { return };
        let Some((directory, start)) = self.directory(dir, src.dev, copy.dev) else { return };
        self.names.extend_from_slice(name.to_bytes_with_nul());
        let entry = Entry { src_ino: src.ino, dst_ino: copy.ino, directory, name: start };
        let CopiedInodes { entries, directories, index, hasher, .. } = self;
        let source = |&position: &u32| source(entries, directories, position);
        let hash = |position: &u32| hasher.hash_one(source(position));
        match index.entry(hasher.hash_one(src), |position| source(position) == src, hash) {
            Slot::Occupied(known) => entries[*known.get() as usize] = entry,
            Slot::Vacant(free) => {
                free.insert(position);
                entries.push(entry);
            }
        }
    }

    /// The index of the directory, which is added if needed, and the offset of the next name in it.
    fn directory(&mut self, dir_path: &DirPath, src_dev: u64, dst_dev: u64) -> Option<(u32, u32)> {
        let names_end = self.names.len();
        let start = |of: &Directory| u32::try_from(names_end - of.names_start).ok();
        let recent = self.directories.iter().enumerate().rev().take(RECENT_DIRECTORIES).find(
            |(_, known)| {
                (known.src_dev, known.dst_dev) == (src_dev, dst_dev)
                    && known.dir_path.is(dir_path)
                    && start(known).is_some()
            },
        );
        if let Some((at, known)) = recent {
            return Some((u32::try_from(at).ok()?, start(known)?));
        }
        let at = u32::try_from(self.directories.len()).ok()?;
        let dir_path = dir_path.clone();
        self.directories.push(Directory { dir_path, src_dev, dst_dev, names_start: names_end });
        Some((at, 0))
    }
}

/// The source of the entry at `position`.
fn source(entries: &[Entry], directories: &[Directory], position: u32) -> FileId {
    let entry = &entries[position as usize];
    FileId { dev: directories[entry.directory as usize].src_dev, ino: entry.src_ino }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;

    use super::*;

    #[test]
    fn inserted_sources_are_found_and_no_others() {
        let mut random = fastrand::Rng::with_seed(3);
        let directories: Vec<DirPath> =
            (0..40).map(|_| DirPath::top(Path::new("t"), None, None)).collect();
        let (mut copies, mut expected) = (CopiedInodes::default(), HashMap::new());
        for number in 0..20_000 {
            let mut id = || FileId { dev: random.u64(..3), ino: random.u64(..15_000) };
            let (src, copy) = (id(), id());
            let (directory, name) =
                (random.usize(..directories.len()), CString::new(format!("n{number}")));
            let name = name.expect("no zero");
            copies.insert(src, &directories[directory], &name, copy);
            expected.insert(src, (directory, name, copy));
        }
        for (dev, ino) in (0..4).flat_map(|dev| (0..15_000).map(move |ino| (dev, ino))) {
            let src = FileId { dev, ino };
            let (found, expected) = (copies.get(src), expected.get(&src));
            assert_eq!(found.is_some(), expected.is_some(), "{src:?}");
            if let (Some(found), Some((directory, name, copy))) = (found, expected) {
                assert!(found.dir.is(&directories[*directory]), "{src:?}");
                assert_eq!((&found.name, found.id), (name, *copy), "{src:?}");
            }
        }
    }

    #[test]
    fn a_million_sources_take_some_forty_bytes_each() {
        let directory = DirPath::top(Path::new("t"), None, None);
        let mut copies = CopiedInodes::default();
        for ino in 0..1_000_000 {
            let id = FileId { dev: 1, ino };
            copies.insert(id, &directory, c"file.txt", id);
        }
        assert_eq!(copies.directories.len(), 1);
        let bytes = copies.entries.len() * size_of::<Entry>()
            + copies.names.len()
            + copies.index.allocation_size();
        assert!(bytes < 44_000_000, "{bytes}");
    }
}
