//! The numbers of backups in a directory, so that it is listed once and not for every file in it.

use std::collections::HashMap;
use std::sync::Mutex;

use rustix::io;

use crate::identity::FileId;
use crate::lock::lock;

/// The highest number that each file of a directory has among its backups.
pub(super) type Highest = HashMap<Box<[u8]>, u64>;

/// How many directories are remembered: those from the top of a tree to where the copy is.
const DIRECTORIES_MAX: usize = 16;

/// How many files with numbered backups are remembered beyond those of the directory at hand.
const FILES_MAX: usize = 1 << 16;

/// The directories that were listed lately. What other processes put there meanwhile is not noticed:
/// no backup with a number replaces another, and for one without it is looked whether there is a first
/// with a number by now.
#[derive(Default)]
pub(crate) struct Numbers(Mutex<Vec<(FileId, Highest)>>);

impl Numbers {
    /// The highest number among the backups of `base` in `dir`, which `list` lists if that is not known.
    pub(super) fn highest(
        &self,
        dir: FileId,
        base: &[u8],
        list: impl FnOnce() -> io::Result<Highest>,
    ) -> io::Result<Option<u64>> {
        let mut directories = lock(&self.0);
        let listed = match directories.iter().position(|(id, _)| *id == dir) {
            Some(at) => directories.remove(at),
            None => (dir, list()?),
        };
        let highest = listed.1.get(base).copied();
        directories.push(listed);
        let is_much = |kept: &[(FileId, Highest)]| {
            kept.len() > DIRECTORIES_MAX
                || kept.len() > 1
                    && kept.iter().map(|(_, files)| files.len()).sum::<usize>() > FILES_MAX
        };
        while is_much(&directories) {
            directories.remove(0);
        }
        Ok(highest)
    }

    /// What is in `dir` has to be listed again.
    pub(super) fn forget(&self, dir: FileId) {
        lock(&self.0).retain(|(id, _)| *id != dir);
    }

    /// An entry has come to be in `dir` that is a backup of `base` by its name.
    pub(super) fn add(&self, dir: FileId, base: &[u8], number: u64) {
        let mut directories = lock(&self.0);
        if let Some((_, files)) = directories.iter_mut().find(|(id, _)| *id == dir) {
            let highest = files.entry(base.into()).or_default();
            *highest = number.max(*highest);
        }
    }
}

/// The file that `entry` is a backup of, and its number, if its name is that of a numbered backup.
pub(super) fn parse(entry: &[u8]) -> Option<(&[u8], u64)> {
    let rest = entry.strip_suffix(b"~")?;
    let at = rest.iter().rposition(|&byte| byte == b'~')?;
    let (base, digits) = (rest[..at].strip_suffix(b".")?, &rest[at + 1..]);
    if base.is_empty() || digits.first().is_none_or(|first| !(b'1'..=b'9').contains(first)) {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((base, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_names_of_backups_only() {
        for (entry, number) in [
            ("f.~1~", Some(("f", 1))),
            ("f.~12~", Some(("f", 12))),
            ("f.~1~.~2~", Some(("f.~1~", 2))),
            ("f.~0~", None),
            ("f.~01~", None),
            ("f.~+1~", None),
            ("f.~~", None),
            ("f.~1", None),
            ("f~", None),
            ("~", None),
            ("f~1~", None),
            (".~1~", None),
            ("f.~1x~", None),
            ("f.~99999999999999999999~", None),
        ] {
            let expected = number.map(|(base, number)| (base.as_bytes(), number));
            assert_eq!(parse(entry.as_bytes()), expected, "{entry}");
        }
    }

    #[test]
    fn a_directory_is_listed_once_as_long_as_it_is_remembered() {
        let numbers = Numbers::default();
        let id = |ino| FileId { dev: 1, ino };
        let lists = std::cell::Cell::new(0);
        let highest = |ino, base: &str| {
            let list = || {
                lists.set(lists.get() + 1);
                Ok(Highest::from([(b"f".as_slice().into(), 7)]))
            };
            numbers.highest(id(ino), base.as_bytes(), list).expect("no error")
        };
        assert_eq!((highest(0, "f"), highest(0, "g"), lists.get()), (Some(7), None, 1));
        numbers.add(id(0), b"g", 3);
        numbers.add(id(0), b"f", 5);
        assert_eq!((highest(0, "f"), highest(0, "g"), lists.get()), (Some(7), Some(3), 1));
        for ino in 1..=DIRECTORIES_MAX as u64 {
            highest(ino, "f");
        }
        assert_eq!((highest(1, "f"), lists.get()), (Some(7), 1 + DIRECTORIES_MAX));
        assert_eq!((highest(0, "g"), lists.get()), (None, 2 + DIRECTORIES_MAX));
        numbers.forget(id(0));
        assert_eq!((highest(0, "f"), lists.get()), (Some(7), 3 + DIRECTORIES_MAX));
    }

    #[test]
    fn large_directories_are_remembered_one_at_a_time() {
        let numbers = Numbers::default();
        let lists = std::cell::Cell::new(0);
        for (ino, expected) in [(1, 1), (1, 1), (2, 2), (2, 2), (1, 3)] {
            let list = || {
                lists.set(lists.get() + 1);
                Ok((0..=FILES_MAX / 2).map(|n| (n.to_string().into_bytes().into(), 1)).collect())
            };
            let highest = numbers.highest(FileId { dev: 1, ino }, b"9", list);
            assert_eq!((highest.expect("no error"), lists.get()), (Some(1), expected));
        }
    }
}
