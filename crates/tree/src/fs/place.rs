//! Where an entry is: an open directory and a name in it.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat, readlinkat, statat, unlinkat};
use rustix::io::{self, Errno};

use super::dir_path::DirPath;

/// A name in an open directory. Below the operands it is a single component, so that a lookup that
/// does not follow symbolic links never leaves the directory.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) shown: DisplayPath<'a>,
    pub(crate) trust: Trust,
}

/// How messages show a place.
#[derive(Clone, Copy)]
pub(crate) enum DisplayPath<'a> {
    /// As this path, from an operand.
    Operand(&'a Path),
    /// As the place's name in this directory.
    In(&'a DirPath),
    /// As this directory itself.
    Directory(&'a DirPath),
}

impl<'a> DisplayPath<'a> {
    /// The directory of an entry below the operands.
    pub(crate) fn dir(self) -> Option<&'a DirPath> {
        match self {
            DisplayPath::In(dir_path) => Some(dir_path),
            DisplayPath::Operand(_) | DisplayPath::Directory(_) => None,
        }
    }
}

/// Whether a symbolic link at a place may be followed to write to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The user named it: always.
    Operand,
    /// In a pre-existing directory: if the link is pre-existing and its owner is trusted.
    PreExisting,
    /// In a directory that this run created: never.
    Created,
}

impl<'a> Place<'a> {
    pub(crate) fn new(
        dir: BorrowedFd<'a>,
        name: &'a CStr,
        shown: DisplayPath<'a>,
        trust: Trust,
    ) -> Place<'a> {
        Place { dir, name, shown, trust }
    }

    /// The path as messages show it.
    pub(crate) fn path(&self) -> PathBuf {
        match self.shown {
            DisplayPath::Operand(path) => path.to_owned(),
            DisplayPath::In(dir_path) => dir_path.join(self.name),
            DisplayPath::Directory(dir_path) => dir_path.path(),
        }
    }

    /// stat(2) with `follow`, else lstat(2).
    pub(crate) fn stat(&self, follow: bool) -> io::Result<Stat> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        statat(self.dir, self.name, flags)
    }

    /// stat(2) of the directory that the name is in.
    pub(crate) fn stat_above(&self) -> io::Result<Stat> {
        statat(self.dir, OsStr::from_bytes(split(self.name).0), AtFlags::empty())
    }

    /// readlink(2).
    pub(crate) fn read_link(&self) -> io::Result<CString> {
        readlinkat(self.dir, self.name, Vec::new())
    }

    /// unlink(2), which removes no directory.
    pub(crate) fn unlink(&self) -> io::Result<()> {
        unlinkat(self.dir, self.name, AtFlags::empty())
    }
}

/// `name` without the slashes at its end; the root keeps one.
pub(crate) fn trim_slashes(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|&byte| byte != b'/') {
        Some(last) => &name[..=last],
        None => &name[..name.len().min(1)],
    }
}

/// The name of a source in the target directory: its last component, or `.` for the root and for
/// `..`.
pub(crate) fn last_component(source: &[u8]) -> &[u8] {
    match last_component_verbatim(source) {
        b".." | b"/" => b".",
        name => name,
    }
}

/// The last component as it is written.
pub(crate) fn last_component_verbatim(source: &[u8]) -> &[u8] {
    let trimmed = trim_slashes(source);
    if trimmed == b"/" {
        return trimmed;
    }
    &trimmed[trimmed.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)..]
}

/// The directory part of a name, `.` if there is none, and its last component. Trailing slashes do
/// not count.
pub(crate) fn split(name: &CStr) -> (&[u8], &[u8]) {
    let bytes = name.to_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let bytes = &bytes[..end];
    match bytes.iter().rposition(|&byte| byte == b'/') {
        None => (b".", bytes),
        Some(at) => (&bytes[..=at], &bytes[at + 1..]),
    }
}

/// `bytes` as a name for system calls.
///
/// # Errors
/// EINVAL when they contain a zero byte.
pub(crate) fn c_name(bytes: &[u8]) -> rustix::io::Result<CString> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_the_name_of_its_last_component() {
        for (source, name) in [
            ("a", "a"),
            ("a/", "a"),
            ("d//a//", "a"),
            ("d/.", "."),
            ("d/..", "."),
            ("/", "."),
            ("//", "."),
            ("/a", "a"),
        ] {
            assert_eq!(last_component(source.as_bytes()), name.as_bytes(), "{source}");
        }
    }
}
