//! Where an entry is: an open directory and a name in it.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat, statat, unlinkat};
use rustix::io;

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

    /// unlink(2), which removes no directory.
    pub(crate) fn unlink(&self) -> io::Result<()> {
        unlinkat(self.dir, self.name, AtFlags::empty())
    }
}
