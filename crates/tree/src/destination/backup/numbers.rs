//! The numbers of the backups in a directory, which is listed once and not for every file in it
//! (docs/design/old-contents.md).

use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use rustix::io;

use crate::fs::{FileId, Place, lstat};
use crate::hash::{HashMap, HashSet};
use crate::lock::lock;
use crate::request::{BackupKind, Options};

/// The highest backup number of each file in a directory.
pub(super) type Highest = HashMap<Box<[u8]>, u128>;

/// Directories whose numbers are kept: those from the top of a tree down to the current one.
const DIRECTORIES_MAX: usize = 16;

/// Files with numbered backups that are kept, beyond those of the current directory.
const FILES_MAX: usize = 1 << 16;

/// A directory, and its ctime in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: FileId,
    pub(super) changed: (i64, i64),
}

/// The directories that were listed last, with their ctime after this run's last change. If another
/// process changes one, it is listed again. (Before Linux 6.13 a change within the same clock tick
/// is missed, as is one between a listing and a backup.)
#[derive(Default)]
pub(crate) struct BackupNumbers(Mutex<Vec<(Seen, Highest)>>);

impl BackupNumbers {
    /// The highest number among the backups of `base` in `dir`. `list` lists the directory if
    /// needed.
    pub(super) fn highest(
        &self,
        dir: Seen,
        base: &[u8],
        list: impl FnOnce() -> io::Result<Highest>,
    ) -> io::Result<Option<u128>> {
        let mut directories = lock(&self.0);
        let known = directories.iter().position(|(seen, _)| seen.id == dir.id);
        let listed = match known.map(|at| directories.remove(at)) {
            Some(listed) if listed.0 == dir => listed,
            _ => (dir, list()?),
        };
        let highest = listed.1.get(base).copied();
        directories.push(listed);
        let is_full = |kept: &[(Seen, Highest)]| {
            let files = || kept.iter().map(|(_, files)| files.len()).sum::<usize>();
            kept.len() > DIRECTORIES_MAX || kept.len() > 1 && files() > FILES_MAX
        };
        while is_full(&directories) {
            directories.remove(0);
        }
        Ok(highest)
    }

    /// Forgets the numbers of `dir`.
    pub(super) fn forget(&self, dir: FileId) {
        lock(&self.0).retain(|(seen, _)| seen.id != dir);
    }

    /// Forgets the numbers of `dir` unless its ctime is still `dir.changed`.
    pub(super) fn refresh(&self, dir: Seen) {
        lock(&self.0).retain(|(seen, _)| seen.id != dir.id || *seen == dir);
    }

    /// Records the new ctime of `dir` after a change by this run, and a new backup if there is one.
    pub(super) fn note_created(&self, dir: Seen, backup: Option<(&[u8], u128)>) {
        let mut directories = lock(&self.0);
        let Some((seen, files)) = directories.iter_mut().find(|(seen, _)| seen.id == dir.id) else {
            return;
        };
        *seen = dir;
        if let Some((base, number)) = backup {
            note(files, base, number);
        }
    }
}

/// Records the backup `number` of `base`.
pub(super) fn note(files: &mut Highest, base: &[u8], number: u128) {
    let highest = files.entry(base.into()).or_default();
    *highest = number.max(*highest);
}

/// The file that `entry` is a backup of, and its number, if its name is that of a numbered backup.
pub(super) fn parse(entry: &[u8]) -> Option<(&[u8], u128)> {
    let rest = entry.strip_suffix(b"~")?;
    let at = rest.iter().rposition(|&byte| byte == b'~')?;
    let (base, digits) = (rest[..at].strip_suffix(b".")?, &rest[at + 1..]);
    if base.is_empty() || digits.first() == Some(&b'0') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.is_empty())?;
    // Above the largest number there is none, and no backup is made.
    Some((base, digits.parse().unwrap_or(u128::MAX)))
}

// Files that this run created and that a simple backup must not replace.

/// Copies whose names end in the suffix of simple backups, or as a name that was cut, and simple backups.
#[derive(Default)]
pub(crate) struct CreatedFiles(Mutex<HashSet<FileId>>);

impl CreatedFiles {
    /// Records the copy `id` at `dst`.
    pub(crate) fn record(&self, options: &Options, dst: &Place<'_>, id: FileId) {
        if let Some(backup) = &options.backup
            && backup.kind != BackupKind::Numbered
            && [backup.suffix.as_bytes(), b"~"]
                .iter()
                .any(|&end| dst.name.to_bytes().ends_with(end))
        {
            self.insert(id);
        }
    }

    pub(super) fn insert(&self, id: FileId) {
        lock(&self.0).insert(id);
    }

    /// Whether the file `name` in the directory of `dst` is one of them.
    pub(super) fn is_at(&self, dst: &Place<'_>, name: &[u8]) -> bool {
        let stat = lstat(dst.dir, name);
        let own = lock(&self.0);
        stat.is_ok_and(|stat| own.contains(&FileId::of(&stat)))
    }
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
            ("f.~99999999999999999999~", Some(("f", 99_999_999_999_999_999_999))),
            ("f.~9999999999999999999999999999999999999999~", Some(("f", u128::MAX))),
        ] {
            let expected = number.map(|(base, number)| (base.as_bytes(), number));
            assert_eq!(parse(entry.as_bytes()), expected, "{entry}");
        }
    }

    fn seen(ino: u64, changed: i64) -> Seen {
        Seen { id: FileId { dev: 1, ino }, changed: (changed, 0) }
    }

    #[test]
    fn a_directory_is_listed_once_as_long_as_it_is_kept() {
        let numbers = BackupNumbers::default();
        let lists = std::cell::Cell::new(0);
        let highest = |dir, base: &str| {
            let list = || {
                lists.set(lists.get() + 1);
                Ok(Highest::from_iter([(b"f".as_slice().into(), 7)]))
            };
            (numbers.highest(dir, base.as_bytes(), list).expect("no error"), lists.get())
        };
        assert_eq!(highest(seen(0, 1), "f"), (Some(7), 1));
        assert_eq!(highest(seen(0, 1), "g"), (None, 1));
        numbers.note_created(seen(0, 2), Some((b"g", 3)));
        numbers.note_created(seen(0, 3), Some((b"f", 5)));
        numbers.note_created(seen(0, 4), None);
        assert_eq!(highest(seen(0, 4), "f"), (Some(7), 1));
        assert_eq!(highest(seen(0, 4), "g"), (Some(3), 1));
        // Another process has changed the directory.
        assert_eq!(highest(seen(0, 5), "g"), (None, 2));
        numbers.refresh(seen(0, 5));
        numbers.note_created(seen(0, 6), None);
        assert_eq!(highest(seen(0, 6), "g"), (None, 2));
        numbers.refresh(seen(0, 7));
        numbers.note_created(seen(0, 8), None);
        assert_eq!(highest(seen(0, 8), "g"), (None, 3));
        for ino in 1..=DIRECTORIES_MAX as u64 {
            highest(seen(ino, 1), "f");
        }
        assert_eq!(highest(seen(1, 1), "f"), (Some(7), 3 + DIRECTORIES_MAX));
        assert_eq!(highest(seen(0, 8), "f"), (Some(7), 4 + DIRECTORIES_MAX));
    }

    #[test]
    fn large_directories_are_kept_one_at_a_time() {
        let numbers = BackupNumbers::default();
        let lists = std::cell::Cell::new(0);
        for (ino, expected) in [(1, 1), (1, 1), (2, 2), (2, 2), (1, 3)] {
            let list = || {
                lists.set(lists.get() + 1);
                Ok((0..=FILES_MAX / 2).map(|n| (n.to_string().into_bytes().into(), 1)).collect())
            };
            let highest = numbers.highest(seen(ino, 1), b"9", list);
            assert_eq!((highest.expect("no error"), lists.get()), (Some(1), expected));
        }
    }
}
