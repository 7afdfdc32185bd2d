//! Directories that take several spellings for one name: they ignore case, the form of Unicode, or dots at the end,
//! have short names, or store text.

use std::ffi::{CStr, CString};
use std::hash::BuildHasher;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::fs_types::{VFAT, fs_type_of};
use rustix::fs::{AtFlags, IFlags, Mode, OFlags, ioctl_getflags, openat, unlinkat};
use rustix::io::{self, Errno};

use super::dir::open_for_search;
use super::fs_type::{is_on_reliable_fs, is_reliable, is_smb};
use super::place::{Place, c_name, split};
use super::readdir::each_name;
use super::stat::are_alike;
use super::{FileId, lstat};
use crate::hash::Seeded;

/// Whether there may be a directory that takes both for one name.
pub(crate) fn may_be_one_name(a: &[u8], b: &[u8]) -> bool {
    without_end(a).eq_ignore_ascii_case(without_end(b)) || has_alias(a) || has_alias(b)
}

/// The name without the dots and spaces at its end, which FAT and servers of SMB ignore.
pub(crate) fn without_end(name: &[u8]) -> &[u8] {
    let kept = name.iter().rposition(|byte| !b". ".contains(byte));
    &name[..kept.map_or(0, |last| last + 1)]
}

/// Whether another name, which cannot be derived from this one, may be the same for a directory: in another form of
/// Unicode, or the name that has this as its short name, of up to eight characters and three, on FAT.
pub(crate) fn has_alias(name: &[u8]) -> bool {
    let is_short = name.len() <= "LONGNA~1.TXT".len();
    let is_numbered = |pair: &[u8]| pair[0] == b'~' && pair[1].is_ascii_digit();
    !name.is_ascii() || is_short && name.windows(2).any(is_numbered)
}

/// Whether `dir` lists each of `names`. If not, one of them is another spelling of a name that is listed.
fn lists_all(dir: BorrowedFd<'_>, names: [&[u8]; 2]) -> io::Result<bool> {
    let mut listed = [false; 2];
    each_name(dir, |name, _kind| {
        for (listed, wanted) in listed.iter_mut().zip(names) {
            *listed |= name.to_bytes() == wanted;
        }
    })?;
    Ok(listed == [true; 2])
}

/// Whether two names that exist, which are equal or may be one name, are one name of one directory.
///
/// # Errors
/// The directory cannot be listed, and does not tell.
pub(crate) fn are_one_name(a: &Place<'_>, b: &Place<'_>) -> io::Result<bool> {
    are_one_name_where(a, b, |_| false)
}

/// The same where directories with two numbers are one if `is_one` says so.
///
/// # Errors
/// As of [`are_one_name`].
pub(crate) fn are_one_name_where(
    a: &Place<'_>,
    b: &Place<'_>,
    is_one: impl FnOnce([FileId; 2]) -> bool,
) -> io::Result<bool> {
    let ids = [a, b].map(|place| place.stat_above().map(|dir| FileId::of(&dir)));
    let [Ok(a_dir), Ok(b_dir)] = ids else { return Ok(false) };
    if a_dir != b_dir && !is_one([a_dir, b_dir]) {
        return Ok(false);
    }
    let bases = [a, b].map(|place| split(place.name).1);
    if bases[0] == bases[1] {
        return Ok(true);
    }
    let (dir, _) = open_above(b)?;
    Ok(!lists_all(dir.as_fd(), bases)?)
}

/// Whether the directories of `a` and `b` are one, though they have two numbers: the client of SMB gives each spelling
/// of a directory's name a number, and other ones to what is in it. If they are alike, a file that is made in one of
/// them for a moment is looked for in the other.
///
/// # Errors
/// One of the directories cannot be searched, or no file can be made in that of `b`.
pub(crate) fn have_one_directory(a: &Place<'_>, b: &Place<'_>) -> io::Result<bool> {
    let ((a, _), (b, _)) = (open_above(a)?, open_above(b)?);
    if !are_alike(a.as_fd(), b.as_fd()) {
        return Ok(false);
    }
    // No other process, on whatever host, makes a file of this name.
    let number = Seeded::default().hash_one(std::process::id());
    let name = c_name(format!(".haulage-{number:016x}").as_bytes())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    drop(openat(&b, &name, flags, Mode::RUSR | Mode::WUSR)?);
    let is_there = lstat(a.as_fd(), &*name).is_ok();
    // Even if it cannot be removed, the source must not be replaced.
    let _ = unlinkat(&b, &name, AtFlags::empty());
    Ok(is_there)
}

/// Whether the file system of `at` may give each spelling of a name an inode number of its own, as the client of SMB
/// does with `noserverino`, and FUSE programs that know files by their names.
pub(crate) fn may_number_spellings(at: &Place<'_>) -> bool {
    open_above(at).is_ok_and(|(dir, _)| !is_on_reliable_fs(dir.as_fd()))
}

/// Whether `name` in `dir` may have other spellings. In most directories another case is another name, and does not
/// exist, nor does the name with a dot behind it.
pub(crate) fn may_have_spellings(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    let exists = |other: CString| lstat(dir, &*other).is_ok();
    let with_dot = || c_name(&[name.to_bytes(), b"."].concat());
    has_alias(name.to_bytes())
        || in_other_case(name).is_some_and(exists)
        || with_dot().is_ok_and(exists)
}

/// FS_CASEFOLD_FL of linux/fs.h: the directory ignores the case and the form of Unicode of names.
const CASEFOLD: IFlags = IFlags::from_bits_retain(0x4000_0000);

/// Whether two names are two files in `dir` unless they differ in the case of letters alone.
pub(crate) fn keeps_spellings(dir: BorrowedFd<'_>) -> bool {
    is_on_reliable_fs(dir) && ioctl_getflags(dir).is_ok_and(|flags| !flags.contains(CASEFOLD))
}

/// The names that `dir` lists besides `name` and that some directory may take for the same.
pub(crate) fn names_like(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Vec<CString>> {
    let mut found = Vec::new();
    each_name(dir, |listed, _kind| {
        if listed != name && may_be_one_name(listed.to_bytes(), name.to_bytes()) {
            found.push(listed.to_owned());
        }
    })?;
    Ok(found)
}

/// A kind of names that some file systems store as others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusual {
    /// Not UTF-8: UDF and some servers store text. Several such names become one there, of which one file alone can
    /// be opened.
    NotText,
    /// A dot or a space is the last character: FAT and servers of SMB leave it out.
    DotAtEnd,
    /// More than eight characters, a dot and three: FAT that is mounted as msdos cuts them off.
    Long,
}

/// The kinds of names that the file systems of these devices were seen to keep.
#[derive(Default)]
pub(crate) struct KeptNames(Vec<(u64, Unusual)>);

impl KeptNames {
    /// Looks for the name of the new file `dst` in its directory, which is on the device `dev` if that is known. A
    /// name that another file system has kept is not looked for again.
    ///
    /// # Errors
    /// The directory does not list the name: EILSEQ if it is not UTF-8, else EINVAL.
    pub(crate) fn check(&mut self, dst: &Place<'_>, dev: Option<u64>) -> io::Result<()> {
        let name = split(dst.name).1;
        for (unusual, is_so, errno) in [
            (Unusual::NotText, !is_text(name), Errno::ILSEQ),
            (Unusual::DotAtEnd, without_end(name) != name, Errno::INVAL),
            (Unusual::Long, !is_short(name), Errno::INVAL),
        ] {
            if is_so && !self.keeps(unusual, dst, dev) {
                return Err(errno);
            }
        }
        Ok(())
    }

    /// Whether the name of `dst`, which is `unusual`, is kept. A directory that cannot be listed does not tell.
    fn keeps(&mut self, unusual: Unusual, dst: &Place<'_>, dev: Option<u64>) -> bool {
        let dev_above = || dst.stat_above().ok().map(|dir| FileId::of(&dir).dev);
        let Some(dev) = dev.or_else(dev_above) else { return true };
        if self.0.contains(&(dev, unusual)) {
            return true;
        }
        let Ok((dir, name)) = open_above(dst) else { return true };
        let fs_type = fs_type_of(dir.as_fd());
        let is_kept = match unusual {
            _ if fs_type.is_some_and(is_reliable) => Ok(true),
            Unusual::Long if fs_type != Some(VFAT) => Ok(true),
            _ => lists_all(dir.as_fd(), [name, name]),
        };
        if is_kept == Ok(true) {
            self.0.push((dev, unusual));
        }
        is_kept != Ok(false)
    }
}

/// Whether all file systems but msdos keep the name.
pub(crate) fn is_kept_everywhere(name: &[u8]) -> bool {
    is_text(name) && without_end(name) == name
}

fn is_text(name: &[u8]) -> bool {
    str::from_utf8(name).is_ok()
}

/// Whether `name` has at most eight characters, or a dot and up to three behind them.
fn is_short(name: &[u8]) -> bool {
    let dot = name.iter().position(|byte| *byte == b'.').unwrap_or(name.len());
    let (stem, end) = name.split_at(dot);
    stem.len() <= 8 && end.len() <= 4 && !end.iter().skip(1).any(|byte| *byte == b'.')
}

/// Tries a name beside `dst` that is not UTF-8 if that of `dst` is not. A server of SMB may refuse to create such a
/// file, and still rename one to such a name, which nobody can open or remove then (ksmbd of Linux 6.12).
///
/// # Errors
/// As of openat(2).
pub(crate) fn try_odd_name(dst: &Place<'_>) -> io::Result<()> {
    if dst.name.to_str().is_ok() {
        return Ok(());
    }
    let (dir, name) = open_above(dst)?;
    if !fs_type_of(dir.as_fd()).is_some_and(is_smb) {
        return Ok(());
    }
    let tried = c_name(&[b".haulage-", name].concat())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    drop(openat(&dir, &tried, flags, Mode::RUSR | Mode::WUSR)?);
    unlinkat(&dir, &tried, AtFlags::empty())
}

/// The directory of `dst`, and the name in it.
pub(crate) fn open_above<'n>(dst: &Place<'n>) -> io::Result<(OwnedFd, &'n [u8])> {
    let (above, name) = split(dst.name);
    Ok((open_for_search(dst.dir, &c_name(above)?)?, name))
}

/// `name` with upper case for lower case and the reverse; `None` if it has no ASCII letters.
fn in_other_case(name: &CStr) -> Option<CString> {
    const CASE: u8 = b'a' ^ b'A';
    let name = name.to_bytes();
    let change = |&byte: &u8| if byte.is_ascii_alphabetic() { byte ^ CASE } else { byte };
    let other: Vec<u8> = name.iter().map(change).collect();
    (other != name).then(|| CString::new(other).expect("no letter becomes a zero byte"))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn names_that_a_directory_distinguishes_are_listed_and_may_be_alike() {
        let home = tempfile::tempdir().expect("created");
        let dir = std::fs::File::open(home.path()).expect("opened");
        for name in ["File", "file", "other", "7"] {
            std::fs::write(home.path().join(name), "content").expect("written");
        }
        assert_eq!(names_like(dir.as_fd(), c"file"), Ok(vec![c"File".to_owned()]));
        for (name, may) in [(c"File", false), (c"other", false), (c"7", false), (c"\xc3\xa9", true)]
        {
            assert_eq!(may_have_spellings(dir.as_fd(), name), may, "{name:?}");
        }
        for (names, listed) in [(["File", "7"], true), (["7", "FILE"], false)] {
            let found = lists_all(dir.as_fd(), names.map(str::as_bytes));
            assert_eq!(found, Ok(listed), "{names:?}");
        }
    }

    #[test]
    fn names_may_be_one_by_case_dots_unicode_or_a_short_name() {
        for (a, b, may) in [
            ("file", "FILE", true),
            ("file", "file2", false),
            ("Inc", "Inc. .", true),
            (".", "..", true),
            (".a", "a", false),
            ("\u{e9}", "e", true),
            ("A long name.txt", "ALONGN~1.TXT", true),
            ("a long backup.txt~1", "b", false),
            ("notes~", "notes", false),
        ] {
            assert_eq!(may_be_one_name(a.as_bytes(), b.as_bytes()), may, "{a} {b}");
            assert_eq!(may_be_one_name(b.as_bytes(), a.as_bytes()), may, "{b} {a}");
        }
    }

    #[test]
    fn short_names_have_eight_characters_and_three() {
        for (name, is) in [
            ("README", true),
            ("filename.txt", true),
            ("filenames.txt", false),
            ("a.html", false),
            ("a.b.c", false),
            ("a.", true),
        ] {
            assert_eq!(is_short(name.as_bytes()), is, "{name}");
        }
    }

    #[test]
    fn only_letters_have_another_case() {
        for (name, other) in [(c"aB-1", Some(c"Ab-1")), (c"1-@[`{", None), (c"\xc3\xa9", None)] {
            assert_eq!(in_other_case(name).as_deref(), other);
        }
    }
}
