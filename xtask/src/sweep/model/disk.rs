//! A tree as a value becomes one on a file system, and the other way round.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};

use super::tree::{Blocks, Content, Id, Node, ROOT, Time, Tree, What};

/// Of every time before the run.
const NANOSECONDS: i64 = 123_456_789;
/// Times of the run are later.
const NOW_SECONDS: i64 = 1_000_000_000;

const SPARSE_BYTES: u64 = 256 << 10;
const DATA: [u8; 4096] = [b'x'; 4096];
const DATA_AT: u64 = 64 << 10;

/// Makes `tree` in the existing directory `root`.
pub(super) fn make(tree: &Tree, root: &Path) -> anyhow::Result<()> {
    let mut made: BTreeMap<Id, String> = BTreeMap::new();
    // A directory comes before what is in it.
    for (path, id) in tree.by_path() {
        if id == ROOT {
            continue;
        }
        let full = root.join(&path);
        match made.get(&id) {
            Some(first) => fs::hard_link(root.join(first), &full),
            None => make_one(&tree.node(id).what, &full),
        }
        .with_context(|| full.display().to_string())?;
        made.entry(id).or_insert(path);
    }
    // The other way round, so that a directory changes no more once it has its time.
    for (path, id) in tree.by_path().into_iter().rev() {
        let full = root.join(&path);
        set_attributes(tree.node(id), &full).with_context(|| full.display().to_string())?;
    }
    Ok(())
}

fn make_one(what: &What, path: &Path) -> std::io::Result<()> {
    match what {
        What::Directory(_) => fs::create_dir(path),
        What::Symlink(target) => symlink(target, path),
        What::Fifo => Ok(mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0)?),
        What::File(Content::Text(text)) => fs::write(path, text),
        What::File(Content::Sparse(_)) => {
            let file = File::create(path)?;
            file.set_len(SPARSE_BYTES)?;
            file.write_all_at(&DATA, DATA_AT)
        }
    }
}

fn set_attributes(node: &Node, path: &Path) -> anyhow::Result<()> {
    lchown(path, Some(node.owner), Some(node.owner))?;
    if !matches!(node.what, What::Symlink(_)) {
        fs::set_permissions(path, Permissions::from_mode(node.mode))?;
    }
    let Time::Before(seconds) = node.time else { bail!("it has no time") };
    let time = Timespec { tv_sec: seconds, tv_nsec: NANOSECONDS };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The tree at `root`.
pub(super) fn read(root: &Path) -> anyhow::Result<Tree> {
    let mut tree = Tree::new(read_node(root)?);
    add_below(root, ROOT, &mut tree, &mut BTreeMap::new())?;
    Ok(tree)
}

fn add_below(
    path: &Path,
    dir: Id,
    tree: &mut Tree,
    inodes: &mut BTreeMap<u64, Id>,
) -> anyhow::Result<()> {
    let time = tree.node(dir).time;
    for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().into_string();
        let name = name.map_err(|name| anyhow::anyhow!("a name of bytes: {}", name.display()))?;
        let inode = entry.metadata()?.ino();
        let id = match inodes.get(&inode) {
            Some(id) => *id,
            None => {
                let id = tree.add(read_node(&entry.path())?);
                inodes.insert(inode, id);
                id
            }
        };
        tree.set_name(dir, &name, Some(id));
        if tree.is_directory(id) {
            add_below(&entry.path(), id, tree, inodes)?;
        }
    }
    tree.node_mut(dir).time = time;
    Ok(())
}

fn read_node(path: &Path) -> anyhow::Result<Node> {
    let metadata = path.symlink_metadata().with_context(|| path.display().to_string())?;
    let kind = metadata.file_type();
    let what = if kind.is_dir() {
        What::Directory(BTreeMap::new())
    } else if kind.is_symlink() {
        let target = fs::read_link(path)?;
        What::Symlink(target.to_str().context("a target of bytes")?.to_owned())
    } else if kind.is_fifo() {
        What::Fifo
    } else if kind.is_file() {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        What::File(content(bytes, metadata.blocks() * 512))
    } else {
        bail!("{}: neither file nor directory", path.display());
    };
    let (user, group) = (metadata.uid(), metadata.gid());
    let time = match (metadata.mtime(), metadata.mtime_nsec()) {
        (NOW_SECONDS.., _) => Time::Now,
        (seconds, NANOSECONDS) => Time::Before(seconds),
        // It has lost a part.
        (seconds, _) => Time::Before(-seconds),
    };
    // A group of its own is none of the model.
    let owner = if user == group { user } else { u32::MAX };
    Ok(Node { what, mode: metadata.mode() & 0o7777, time, owner })
}

fn content(bytes: Vec<u8>, space: u64) -> Content {
    let len = bytes.len() as u64;
    let is_data = |at: usize| (DATA_AT..DATA_AT + DATA.len() as u64).contains(&(at as u64));
    let is_sparse = len == SPARSE_BYTES
        && bytes.iter().enumerate().all(|(at, &byte)| byte == if is_data(at) { b'x' } else { 0 });
    match is_sparse {
        true => Content::Sparse(if space < len { Blocks::Holes } else { Blocks::Full }),
        false => Content::Text(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::{parse_items, tree};
    use super::*;

    #[test]
    fn a_tree_is_read_as_it_was_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let text = "a=one mode=600 t=2000; b==a; d/ mode=750 t=3000; d/s->../a t=7; d/p| mode=640; \
                    h~; empty=";
        let own = rustix::process::geteuid().as_raw();
        let due = tree(&parse_items(text).expect("items"), own).expect("a tree");
        make(&due, dir.path()).expect("it is made");
        let found = read(dir.path()).expect("it is read");
        assert_eq!(due.differences(&found), Vec::<String>::new());
        fs::write(dir.path().join("a"), "two").expect("a write");
        let found = read(dir.path()).expect("it is read");
        let text = "is a file of 'two', not a file of 'one'; time Now, not Before(2000)";
        assert_eq!(due.differences(&found), [format!("a: {text}"), format!("b: {text}")]);
    }
}
