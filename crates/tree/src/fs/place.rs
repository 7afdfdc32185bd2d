//! Where an entry is: an open directory and a name in it.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Stat, statat, unlinkat};
use rustix::io::{self, Errno};

use super::stat::FileId;

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

// The path of a directory as messages show it, stored as its name and a reference to its parent.
//
// A tree may be twenty thousand levels deep, and a whole path at each level would take gigabytes.
// So a path is put together when a message needs it.

/// A directory of a tree. Clones share their memory.
#[derive(Clone, Debug)]
pub(crate) struct DirPath(Arc<Node>);

#[derive(Debug)]
struct Node {
    parent: Option<DirPath>,
    /// For the top, the operand as the user wrote it.
    name: Box<[u8]>,
    /// For the top of a destination, how it is opened again.
    anchor: Option<Anchor>,
    /// The identity of the directory. That of a copy is known if partners may be told of it.
    id: Option<FileId>,
}

/// How a directory is opened again whose name is that of an operand or of a symbolic link.
#[derive(Clone, Debug)]
pub(crate) enum Anchor {
    /// The directory stays open.
    Held(Arc<OwnedFd>),
    /// The directory has this name in that directory.
    In(DirPath, CString),
    /// The directory is the target of the symbolic link of this name in that directory, and has
    /// this identity.
    ThroughLink(DirPath, CString, FileId),
}

impl DirPath {
    /// The top of a source or a destination, shown as `operand`, and its identity if that is known.
    pub(crate) fn top(operand: &Path, anchor: Option<Anchor>, id: Option<FileId>) -> DirPath {
        let name = operand.as_os_str().as_bytes().into();
        DirPath(Arc::new(Node { parent: None, name, anchor, id }))
    }

    /// The directory `name` in this one, and its identity if that is known.
    pub(crate) fn child(&self, name: &CStr, id: Option<FileId>) -> DirPath {
        let name = name.to_bytes().into();
        DirPath(Arc::new(Node { parent: Some(self.clone()), name, anchor: None, id }))
    }

    /// Whether the source directory `id` is this one or one above it.
    pub(crate) fn contains(&self, id: FileId) -> bool {
        std::iter::successors(Some(self), |dir_path| dir_path.parent())
            .any(|dir_path| dir_path.0.id == Some(id))
    }

    /// The directory above, unless this is the top.
    pub(crate) fn parent(&self) -> Option<&DirPath> {
        self.0.parent.as_ref()
    }

    /// The directories from the top to this one.
    pub(crate) fn levels(&self) -> impl ExactSizeIterator<Item = &DirPath> {
        let above = std::iter::successors(Some(self), |dir_path| dir_path.parent());
        let mut levels: Vec<_> = above.collect();
        levels.reverse();
        levels.into_iter()
    }

    /// The identity of the directory, if it is known.
    pub(crate) fn id(&self) -> Option<FileId> {
        self.0.id
    }

    /// The last name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.0.name
    }

    /// How the top is opened again.
    pub(crate) fn anchor(&self) -> Option<&Anchor> {
        self.0.anchor.as_ref()
    }

    /// Whether both are clones of one value.
    pub(crate) fn is(&self, other: &DirPath) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The path from the operand down.
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = Vec::new();
        self.levels().for_each(|level| push_name(&mut path, level.name()));
        into_path(path)
    }

    /// The path of `name` in this directory, without the operand.
    pub(crate) fn below_operand(&self, name: &CStr) -> Vec<u8> {
        let above = self.levels().skip(1).map(DirPath::name);
        above.chain([name.to_bytes()]).collect::<Vec<_>>().join(&b'/')
    }

    /// The path of `name` in this directory.
    pub(crate) fn join(&self, name: &CStr) -> PathBuf {
        join(&self.path(), OsStr::from_bytes(name.to_bytes()))
    }
}

impl Node {
    /// Takes the reference to the next directory above, by which this one is reached.
    fn take_above(&mut self) -> Option<DirPath> {
        match self.anchor.take() {
            Some(Anchor::In(dir, _) | Anchor::ThroughLink(dir, ..)) => Some(dir),
            Some(Anchor::Held(_)) | None => self.parent.take(),
        }
    }
}

impl Drop for Node {
    // The default drop is recursive and uses one stack frame a level.
    fn drop(&mut self) {
        let mut above = self.take_above();
        while let Some(DirPath(node)) = above {
            above = Arc::into_inner(node).and_then(|mut node| node.take_above());
        }
    }
}

/// `name` in `dir` as messages show it: with one slash between them, and without the normalisation
/// of [`Path::join`].
pub(crate) fn join(dir: &Path, name: &OsStr) -> PathBuf {
    let mut path = dir.as_os_str().as_bytes().to_vec();
    push_name(&mut path, name.as_bytes());
    into_path(path)
}

fn push_name(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        let trimmed = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        path.truncate(trimmed);
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

fn into_path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
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

#[cfg(test)]
mod dir_path_tests {
    use super::*;

    #[test]
    fn names_are_joined_by_one_slash() {
        for (dir, name, path) in [
            ("d", "f", "d/f"),
            ("d/", "f", "d/f"),
            ("d//", "f", "d/f"),
            ("/", "f", "/f"),
            ("d", ".", "d/."),
            ("", "f", "f"),
        ] {
            assert_eq!(join(Path::new(dir), OsStr::new(name)).as_os_str(), path);
        }
    }

    #[test]
    fn a_long_path_is_dropped_without_a_deep_stack() {
        let mut dir_path = DirPath::top(Path::new("top"), None, None);
        for _ in 0..200_000 {
            dir_path = dir_path.child(c"d", None);
        }
        assert_eq!(dir_path.path().as_os_str().len(), 3 + 2 * 200_000);
        drop(dir_path);
        let mut dir_path = DirPath::top(Path::new("top"), None, None);
        for ino in 0..200_000 {
            let anchor = Anchor::ThroughLink(dir_path, c"link".into(), FileId { dev: 1, ino });
            dir_path = DirPath::top(Path::new("top/link"), Some(anchor), None);
        }
        drop(dir_path);
    }
}
