//! Where the copy of each source is, in few bytes a source: with `-L` and links preserved every
//! file of a tree is remembered, since a symbolic link anywhere may lead to it once more.

use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, RandomState};

use crate::fs::{DirPath, FileId};

/// Where a copy is.
#[derive(Clone, Debug)]
pub(crate) struct FirstCopy {
    pub(crate) home: DirPath,
    pub(crate) name: CString,
    /// The copy itself, so that nothing else is ever linked in its stead.
    pub(crate) id: FileId,
}

/// A source takes an [`Entry`], its copy's name, and 5 to 11 bytes of the index.
pub(crate) struct CopiedInodes {
    entries: Vec<Entry>,
    homes: Vec<Home>,
    /// Each ends in a zero.
    names: Vec<u8>,
    /// Positions in `entries`, counted from one, where the hash of the source says or in the next
    /// slot that was free. Their number is a power of two.
    slots: Vec<u32>,
    hasher: RandomState,
}

/// A source and its copy.
struct Entry {
    src_ino: u64,
    dst_ino: u64,
    /// Position in `homes`.
    home: u32,
    /// Where the copy's name begins, from where the names of its home begin.
    name: u32,
}

/// What neighbours have in common.
struct Home {
    dir_path: DirPath,
    src_dev: u64,
    dst_dev: u64,
    names_begin: usize,
}

/// How many homes are looked at, the latest first, before one is entered again: as many as there
/// may be workers, each in a directory of its own.
const RECENT_HOMES: usize = 16;

impl Default for CopiedInodes {
    fn default() -> CopiedInodes {
        CopiedInodes {
            entries: Vec::new(),
            homes: Vec::new(),
            names: Vec::new(),
            slots: vec![0; 16],
            hasher: RandomState::new(),
        }
    }
}

impl CopiedInodes {
    /// Where the copy of `src` is.
    pub(crate) fn get(&self, src: FileId) -> Option<FirstCopy> {
        let entry = &self.entries[self.find(src).ok()?];
        let home = &self.homes[entry.home as usize];
        let name = &self.names[home.names_begin + entry.name as usize..];
        let name = CStr::from_bytes_until_nul(name).expect("each name ends in a zero");
        let id = FileId { dev: home.dst_dev, ino: entry.dst_ino };
        Some(FirstCopy { home: home.dir_path.clone(), name: name.into(), id })
    }

    /// Remembers the copy of `src`, in place of the one before.
    pub(crate) fn insert(&mut self, src: FileId, home: &DirPath, name: &CStr, copy: FileId) {
        // Past what 32 bits can count, a further name becomes a file of its own.
        let Ok(position) = u32::try_from(self.entries.len() + 1) else { return };
        let Some((home, begin)) = self.home(home, src.dev, copy.dev) else { return };
        if (self.entries.len() + 1) * 4 > self.slots.len() * 3 {
            self.double();
        }
        self.names.extend_from_slice(name.to_bytes_with_nul());
        let entry = Entry { src_ino: src.ino, dst_ino: copy.ino, home, name: begin };
        match self.find(src) {
            Ok(known) => self.entries[known] = entry,
            Err(free) => {
                self.slots[free] = position;
                self.entries.push(entry);
            }
        }
    }

    /// The position of the home with these properties, and where the next name would begin in it.
    fn home(&mut self, dir_path: &DirPath, src_dev: u64, dst_dev: u64) -> Option<(u32, u32)> {
        let names_end = self.names.len();
        let begin = |home: &Home| u32::try_from(names_end - home.names_begin).ok();
        let recent = self.homes.iter().enumerate().rev().take(RECENT_HOMES).find(|(_, home)| {
            (home.src_dev, home.dst_dev) == (src_dev, dst_dev)
                && home.dir_path.is(dir_path)
                && begin(home).is_some()
        });
        if let Some((at, home)) = recent {
            return Some((u32::try_from(at).ok()?, begin(home)?));
        }
        let at = u32::try_from(self.homes.len()).ok()?;
        self.homes.push(Home {
            dir_path: dir_path.clone(),
            src_dev,
            dst_dev,
            names_begin: names_end,
        });
        Some((at, 0))
    }

    /// The position of `src` in `entries`, or the slot that is free for it.
    fn find(&self, src: FileId) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = self.slot(src);
        loop {
            let Some(position) = self.slots[slot].checked_sub(1) else { return Err(slot) };
            let position = position as usize;
            if self.source(position) == src {
                return Ok(position);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The slot where the search for `src` begins.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits of a hash are a hash")]
    fn slot(&self, src: FileId) -> usize {
        self.hasher.hash_one(src) as usize & (self.slots.len() - 1)
    }

    fn source(&self, position: usize) -> FileId {
        let entry = &self.entries[position];
        FileId { dev: self.homes[entry.home as usize].src_dev, ino: entry.src_ino }
    }

    fn double(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for position in 0..self.entries.len() {
            if let Err(free) = self.find(self.source(position)) {
                self.slots[free] = u32::try_from(position + 1).expect("it was entered as such");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_entered_is_found_and_nothing_else() {
        let mut random = fastrand::Rng::with_seed(3);
        let homes: Vec<DirPath> = (0..40).map(|_| DirPath::top(Path::new("t"), None)).collect();
        let (mut copies, mut expected) = (CopiedInodes::default(), HashMap::new());
        for number in 0..20_000 {
            let mut id = || FileId { dev: random.u64(..3), ino: random.u64(..15_000) };
            let (src, copy) = (id(), id());
            let (home, name) = (random.usize(..homes.len()), CString::new(format!("n{number}")));
            let name = name.expect("no zero");
            copies.insert(src, &homes[home], &name, copy);
            expected.insert(src, (home, name, copy));
        }
        for (dev, ino) in (0..4).flat_map(|dev| (0..15_000).map(move |ino| (dev, ino))) {
            let src = FileId { dev, ino };
            let (found, expected) = (copies.get(src), expected.get(&src));
            assert_eq!(found.is_some(), expected.is_some(), "{src:?}");
            if let (Some(found), Some((home, name, copy))) = (found, expected) {
                assert!(found.home.is(&homes[*home]), "{src:?}");
                assert_eq!((&found.name, found.id), (name, *copy), "{src:?}");
            }
        }
    }

    #[test]
    fn a_million_sources_take_some_forty_bytes_each() {
        let home = DirPath::top(Path::new("t"), None);
        let mut copies = CopiedInodes::default();
        for ino in 0..1_000_000 {
            let id = FileId { dev: 1, ino };
            copies.insert(id, &home, c"file.txt", id);
        }
        assert_eq!(copies.homes.len(), 1);
        let bytes = copies.entries.len() * size_of::<Entry>()
            + copies.names.len()
            + copies.slots.len() * size_of::<u32>();
        assert!(bytes < 42_000_000, "{bytes}");
    }
}
