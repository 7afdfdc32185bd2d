//! The path of a directory as messages show it, stored as its name and a reference to its parent.
//!
//! A tree may be twenty thousand levels deep, and a whole path at each level would take gigabytes.
//! So a path is put together when a message needs it.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::stat::FileId;

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
    /// The identity of the directory, if it is known.
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
