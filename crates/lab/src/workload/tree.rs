//! Compares the destination of a command with the source: names, kinds and bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::cached_source::CachedSource;
use crate::error::Error;
use crate::page_cache::prover;
use crate::scratch::WorkDir;
use crate::trial::digest::Digests;

/// A file, or a directory with all below it, by paths from its root; that of the root is empty.
#[derive(Debug)]
pub(crate) struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
    digests: Digests,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    File { bytes: u64 },
    Other,
}

impl Tree {
    /// That of a source.
    pub(crate) fn of(cached: &CachedSource) -> Result<Tree, Error> {
        let entries = entries_of(cached.source.path())?;
        Ok(Tree { entries, digests: Digests::of(&cached.source, &cached.load)? })
    }

    /// The files of the tree in the order of the source, which is that of their paths.
    fn files(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.entries.iter().filter_map(|(name, entry)| match entry {
            Entry::File { bytes } => Some((name.as_path(), *bytes)),
            Entry::Directory | Entry::Other => None,
        })
    }

    /// Makes the same tree at `root`, below `dir`, with zeros in every file, and has it written to
    /// the medium.
    pub(crate) fn make_zeros(&self, dir: &WorkDir, root: &Path) -> Result<(), Error> {
        for (name, entry) in &self.entries {
            let path = below(root, name);
            match entry {
                Entry::Directory => {
                    std::fs::create_dir(&path).map_err(Error::path("cannot create", &path))?;
                }
                Entry::File { bytes } => {
                    let open = File::options().read(true).write(true).create_new(true).open(&path);
                    let fd = OwnedFd::from(open.map_err(Error::path("cannot create", &path))?);
                    dir.fill_zeros(&path.to_string_lossy(), &fd, *bytes)?;
                }
                Entry::Other => {}
            }
        }
        rustix::fs::syncfs(dir.dir()).map_err(Error::path("cannot sync", dir.path()))
    }

    /// Bytes of the files at `root` in the page cache; `None` where that cannot be told, or a file
    /// is not there.
    pub(crate) fn resident_bytes(&self, root: &Path) -> Option<u64> {
        let resident = |(name, bytes): (&Path, u64)| {
            let file = File::open(below(root, name)).ok()?;
            prover::resident_bytes(file.as_fd(), bytes).ok()
        };
        self.files().map(resident).sum()
    }

    /// How `root` differs from this tree; `None` when it is equal.
    pub(crate) fn difference(&self, root: &Path) -> Result<Option<String>, Error> {
        if root.symlink_metadata().is_err() {
            return Ok(Some("it made no destination".to_owned()));
        }
        let found = entries_of(root)?;
        let shown = |name: &Path| below(Path::new("{dst}"), name).display().to_string();
        for (name, entry) in &self.entries {
            match (found.get(name), entry) {
                (Some(Entry::File { .. }), Entry::File { .. }) => {}
                (Some(found), entry) if found == entry => {}
                (Some(_), _) => return Ok(Some(format!("'{}' is of another kind", shown(name)))),
                (None, _) => return Ok(Some(format!("'{}' is missing", shown(name)))),
            }
        }
        if let Some(name) = found.keys().find(|name| !self.entries.contains_key(*name)) {
            return Ok(Some(format!("'{}' is not in the source", shown(name))));
        }
        for (index, (name, bytes)) in self.files().enumerate() {
            let path = below(root, name);
            let file = File::open(&path).map_err(Error::path("cannot open", &path))?;
            let difference = self.digests.difference(index, bytes, file.as_fd());
            if let Some(how) = difference.map_err(Error::path("cannot read", &path))? {
                return Ok(Some(format!("'{}' {how}", shown(name))));
            }
        }
        Ok(None)
    }
}

/// A path below a root. Joining the empty path would add a slash.
fn below(root: &Path, name: &Path) -> PathBuf {
    if name.as_os_str().is_empty() { root.to_owned() } else { root.join(name) }
}

fn entries_of(root: &Path) -> Result<BTreeMap<PathBuf, Entry>, Error> {
    let mut entries = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(name) = left.pop() {
        let path = below(root, &name);
        let metadata = path.symlink_metadata().map_err(Error::path("cannot stat", &path))?;
        let entry = if metadata.is_dir() {
            let failed = || Error::path("cannot list", &path);
            for child in std::fs::read_dir(&path).map_err(failed())? {
                left.push(name.join(child.map_err(failed())?.file_name()));
            }
            Entry::Directory
        } else if metadata.is_file() {
            Entry::File { bytes: metadata.len() }
        } else {
            Entry::Other
        };
        entries.insert(name, entry);
    }
    Ok(entries)
}
