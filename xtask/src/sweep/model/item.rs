//! The text form of a tree, in which a finding names it: items with semicolons between them.
//!
//! `a=text` is a file, `h~` a sparse one, `d/` a directory, `s->target` a symbolic link, `b==a` another name of
//! the file `a`, and `p|` a fifo. `mode=640`, `t=2000` (seconds) and `own=1` may follow. Directories above an
//! item are made as they are needed.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, bail};

use super::tree::{Blocks, Content, Node, ROOT, Time, Tree, What};

/// What an item has if it does not say otherwise.
const SECONDS: i64 = 1000;
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// One file of a tree that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) mode: Option<u32>,
    pub(super) seconds: Option<i64>,
    pub(super) owner: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text(String),
    Sparse,
    Directory,
    Symlink(String),
    /// Another name of the item with this path.
    HardLink(String),
    Fifo,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Item { path, kind, mode, seconds, owner } = self;
        match kind {
            Kind::Text(text) => write!(f, "{path}={text}"),
            Kind::Sparse => write!(f, "{path}~"),
            Kind::Directory => write!(f, "{path}/"),
            Kind::Symlink(target) => write!(f, "{path}->{target}"),
            Kind::HardLink(other) => write!(f, "{path}=={other}"),
            Kind::Fifo => write!(f, "{path}|"),
        }?;
        mode.map_or(Ok(()), |mode| write!(f, " mode={mode:o}"))?;
        seconds.map_or(Ok(()), |seconds| write!(f, " t={seconds}"))?;
        owner.map_or(Ok(()), |owner| write!(f, " own={owner}"))
    }
}

impl Item {
    fn parse(text: &str) -> anyhow::Result<Item> {
        let mut words = text.split_whitespace();
        let spec = words.next().context("an item is not empty")?;
        let (path, kind) = if let Some((path, target)) = spec.split_once("->") {
            (path, Kind::Symlink(target.to_owned()))
        } else if let Some((path, other)) = spec.split_once("==") {
            (path, Kind::HardLink(other.to_owned()))
        } else if let Some((path, text)) = spec.split_once('=') {
            (path, Kind::Text(text.to_owned()))
        } else if let Some(path) = spec.strip_suffix('/') {
            (path, Kind::Directory)
        } else if let Some(path) = spec.strip_suffix('~') {
            (path, Kind::Sparse)
        } else if let Some(path) = spec.strip_suffix('|') {
            (path, Kind::Fifo)
        } else {
            bail!("'{text}' is no item of a tree");
        };
        let mut item = Item { path: path.to_owned(), kind, mode: None, seconds: None, owner: None };
        for word in words {
            let (name, value) = word.split_once('=').with_context(|| format!("'{word}'"))?;
            match name {
                "mode" => item.mode = Some(u32::from_str_radix(value, 8)?),
                "t" => item.seconds = Some(value.parse()?),
                "own" => item.owner = Some(value.parse()?),
                _ => bail!("'{word}' is no attribute"),
            }
        }
        Ok(item)
    }

    /// The node, in a tree of which `owner` owns all that names no other. `None` for a hard link.
    fn node(&self, owner: u32) -> Option<Node> {
        let (what, mode) = match &self.kind {
            Kind::Text(text) => (What::File(Content::Text(text.clone())), FILE_MODE),
            Kind::Sparse => (What::File(Content::Sparse(Blocks::Holes)), FILE_MODE),
            Kind::Directory => (What::Directory(BTreeMap::new()), DIRECTORY_MODE),
            Kind::Symlink(target) => (What::Symlink(target.clone()), 0o777),
            Kind::Fifo => (What::Fifo, FILE_MODE),
            Kind::HardLink(_) => return None,
        };
        let (mode, time) = (self.mode.unwrap_or(mode), self.seconds.unwrap_or(SECONDS));
        let owner = self.owner.unwrap_or(owner);
        Some(Node { what, mode, time: Time::Before(time), owner })
    }
}

pub(super) fn parse_items(text: &str) -> anyhow::Result<Vec<Item>> {
    let items = text.split(';').map(str::trim).filter(|item| !item.is_empty());
    items.map(Item::parse).collect()
}

pub(super) fn text_of(items: &[Item]) -> String {
    items.iter().map(Item::to_string).collect::<Vec<_>>().join("; ")
}

/// The tree of `items`, of which `owner` owns all that names no other.
///
/// # Errors
/// If an item is below what is no directory or has the name of another, or a hard link is of nothing.
pub(super) fn tree(items: &[Item], owner: u32) -> anyhow::Result<Tree> {
    let directory = || Node {
        what: What::Directory(BTreeMap::new()),
        mode: DIRECTORY_MODE,
        time: Time::Before(SECONDS),
        owner,
    };
    let mut tree = Tree::new(directory());
    for item in items {
        let (above, name) = item.path.rsplit_once('/').unwrap_or(("", &item.path));
        let mut dir = ROOT;
        for part in above.split('/').filter(|part| !part.is_empty()) {
            let known = tree.names(dir).into_iter().find(|(name, _)| name == part);
            dir = known.map(|(_, id)| id).unwrap_or_else(|| {
                let id = tree.add(directory());
                tree.set_name(dir, part, Some(id));
                id
            });
            if !tree.is_directory(dir) {
                bail!("'{item}' is not below a directory");
            }
        }
        if tree.names(dir).iter().any(|(known, _)| known == name) {
            bail!("'{item}' is there already");
        }
        let id = match &item.kind {
            Kind::HardLink(other) => {
                let found = tree.find(other, false).ok().and_then(|found| found.id);
                found.filter(|id| tree.is_file(*id)).with_context(|| format!("'{item}'"))?
            }
            _ => tree.add(item.node(owner).context("it is no hard link")?),
        };
        tree.set_name(dir, name, Some(id));
    }
    // To name something in a directory has changed the directory.
    let times = tree.by_path().into_iter().filter(|(_, id)| tree.is_directory(*id));
    for (path, id) in times.collect::<Vec<_>>() {
        let own = items.iter().find(|item| item.path == path).and_then(|item| item.seconds);
        tree.node_mut(id).time = Time::Before(own.unwrap_or(SECONDS));
    }
    Ok(tree)
}

/// The tree of a text, for tests.
#[cfg(test)]
pub(super) fn tree_of(text: &str) -> anyhow::Result<Tree> {
    tree(&parse_items(text)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_read_as_it_is_written() {
        let text = "a=one mode=600 t=2000 own=1; d/ mode=700; d/s->../a; b==a; d/p|; h~; e=";
        let items = parse_items(text).expect("items");
        assert_eq!(text_of(&items), text);
        assert!(tree(&items, 0).is_ok());
        for wrong in ["a", "a=one colour=red", "a=one mode=9"] {
            assert!(parse_items(wrong).is_err(), "{wrong}");
        }
        for wrong in ["a=; a/b=", "b==a", "a=; a/", "d/a=; d/"] {
            assert!(tree(&parse_items(wrong).expect("items"), 0).is_err(), "{wrong}");
        }
    }
}
