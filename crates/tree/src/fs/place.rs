//! Where an entry is: an open directory and a name in it.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat, statat, unlinkat};
use rustix::io;

use crate::fs::dir_path::DirPath;

/// A name in an open directory. Below the operands it is always a single component, so that a
/// lookup without following the last symbolic link can lead nowhere else.
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

/// How far a symbolic link found in a place may be followed by one who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The user named it: wherever it leads.
    Operand,
    /// In a directory that was there before: if it stood there before the run, and is
    /// of a trusted owner.
    PreExisting,
    /// In a directory that this run made, where nothing else has any business: never.
    Created,
}

impl Place<'_> {
    /// The path as messages show it.
    pub(crate) fn path(&self) -> PathBuf {
        match self.shown {
            DisplayPath::Operand(path) => path.to_owned(),
            DisplayPath::In(dir_path) => dir_path.join(self.name),
            DisplayPath::Directory(dir_path) => dir_path.path(),
        }
    }

    /// Looks at what is there, or, with `follow`, at what a symbolic link there leads to.
    pub(crate) fn stat(&self, follow: bool) -> io::Result<Stat> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        statat(self.dir, self.name, flags)
    }

    /// Removes what is there; a directory stays.
    pub(crate) fn unlink(&self) -> io::Result<()> {
        unlinkat(self.dir, self.name, AtFlags::empty())
    }
}
