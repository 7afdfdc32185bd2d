//! A small tree of files as a value: names, hard links, symbolic links, and how a path leads through them.

use std::collections::BTreeMap;
use std::fmt::Write;

/// One file, whatever names it has: an index into the nodes of its tree.
pub(super) type Id = usize;

/// The working directory, of which every path begins.
pub(super) const ROOT: Id = 0;

/// How many symbolic links a path may lead through, as in the kernel.
const LINKS_MAX: usize = 40;

/// A directory and all below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// Those without a name stay here. A node keeps its index.
    nodes: Vec<Node>,
}

/// What a file is and has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) what: What,
    /// The permission bits.
    pub(super) mode: u32,
    /// Of the last modification.
    pub(super) time: Time,
    /// User and group, which are the same number here.
    pub(super) owner: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    File(Content),
    Directory(BTreeMap<String, Id>),
    Symlink(String),
    Fifo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text(String),
    /// `SPARSE_BYTES`, with data in the middle.
    Sparse(Blocks),
}

/// Whether zeros take space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    Holes,
    Full,
}

/// A modification time. One of this run is later than every one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Time {
    /// Seconds, before the run.
    Before(i64),
    Now,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The directories from the working directory to the one that has the name.
    pub(super) dirs: Vec<Id>,
    pub(super) name: String,
    /// `None` if nothing has the name.
    pub(super) id: Option<Id>,
}

impl Found {
    pub(super) fn parent(&self) -> Id {
        *self.dirs.last().expect("the working directory is always there")
    }
}

/// A directory of a path is missing, or is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoWay;

impl Tree {
    /// With nothing but the working directory.
    pub(super) fn new(root: Node) -> Tree {
        Tree { nodes: vec![root] }
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }

    pub(super) fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id]
    }

    /// Adds a node that has no name yet.
    pub(super) fn add(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The names of a directory; none of anything else.
    pub(super) fn names(&self, dir: Id) -> Vec<(String, Id)> {
        match &self.nodes[dir].what {
            What::Directory(names) => names.iter().map(|(name, id)| (name.clone(), *id)).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn is_directory(&self, id: Id) -> bool {
        matches!(self.nodes[id].what, What::Directory(_))
    }

    pub(super) fn is_symlink(&self, id: Id) -> bool {
        matches!(self.nodes[id].what, What::Symlink(_))
    }

    pub(super) fn is_file(&self, id: Id) -> bool {
        matches!(self.nodes[id].what, What::File(_))
    }

    /// How many names a file has.
    pub(super) fn links(&self, id: Id) -> usize {
        let names = self.nodes.iter().filter_map(|node| match &node.what {
            What::Directory(names) => Some(names.values().filter(|named| **named == id).count()),
            _ => None,
        });
        names.sum()
    }

    /// Whether `id` is `dir` or below it.
    pub(super) fn is_within(&self, id: Id, dir: Id) -> bool {
        id == dir || self.names(dir).iter().any(|(_, child)| self.is_within(id, *child))
    }

    /// Sets or removes a name, which changes the directory.
    pub(super) fn set_name(&mut self, dir: Id, name: &str, id: Option<Id>) {
        let node = &mut self.nodes[dir];
        let What::Directory(names) = &mut node.what else { panic!("{dir} is no directory") };
        match id {
            Some(id) => names.insert(name.to_owned(), id),
            None => names.remove(name),
        };
        node.time = Time::Now;
    }

    /// Where `path` leads. A symbolic link at its end is passed through if `follows`.
    pub(super) fn find(&self, path: &str, follows: bool) -> Result<Found, NoWay> {
        self.walk(vec![ROOT], path, follows, LINKS_MAX)
    }

    fn walk(
        &self,
        mut dirs: Vec<Id>,
        path: &str,
        follows: bool,
        links_left: usize,
    ) -> Result<Found, NoWay> {
        let (path, wants_directory) = match path.trim_end_matches('/') {
            short if short.len() < path.len() => (short, true),
            _ => (path, false),
        };
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let here = *dirs.last().ok_or(NoWay)?;
            let is_last = parts.peek().is_none();
            let id = match part {
                "" | "." => here,
                ".." => {
                    dirs.pop();
                    let above = *dirs.last().ok_or(NoWay)?;
                    if is_last {
                        return Ok(Found { dirs, name: ".".to_owned(), id: Some(above) });
                    }
                    continue;
                }
                name => {
                    let What::Directory(names) = &self.nodes[here].what else { return Err(NoWay) };
                    let found = Found {
                        dirs: dirs.clone(),
                        name: name.to_owned(),
                        id: names.get(name).copied(),
                    };
                    match found.id {
                        None if is_last => return Ok(found),
                        None => return Err(NoWay),
                        Some(id) => match &self.nodes[id].what {
                            What::Symlink(target) if !is_last || follows || wants_directory => {
                                let left = links_left.checked_sub(1).ok_or(NoWay)?;
                                let there = self.walk(dirs, target, true, left)?;
                                if is_last {
                                    return self.checked(there, wants_directory);
                                }
                                dirs = there.dirs;
                                if there.name != "." {
                                    dirs.push(there.id.ok_or(NoWay)?);
                                }
                                continue;
                            }
                            _ if is_last => return self.checked(found, wants_directory),
                            _ => id,
                        },
                    }
                }
            };
            if !self.is_directory(id) {
                return Err(NoWay);
            }
            if is_last {
                return Ok(Found { dirs, name: ".".to_owned(), id: Some(id) });
            }
            if id != here {
                dirs.push(id);
            }
        }
        Err(NoWay)
    }

    /// A path that ends with a slash leads to a directory or nowhere.
    fn checked(&self, found: Found, wants_directory: bool) -> Result<Found, NoWay> {
        match found.id {
            Some(id) if wants_directory && !self.is_directory(id) => Err(NoWay),
            _ => Ok(found),
        }
    }

    /// What of `found` is not as in this tree, a line each.
    pub(super) fn differences(&self, found: &Tree) -> Vec<String> {
        let (own, others) = (self.by_path(), found.by_path());
        let mut lines = Vec::new();
        for (path, id) in &own {
            match others.get(path) {
                None => lines.push(format!("{path}: missing")),
                Some(other) => {
                    let (node, other_node) = (&self.nodes[*id], &found.nodes[*other]);
                    if let Some(line) = node.difference(other_node) {
                        lines.push(format!("{path}: {line}"));
                    }
                    let first = |names: &BTreeMap<String, Id>, id: Id| {
                        let same = names.iter().find(|(_, named)| **named == id);
                        same.map(|(path, _)| path.clone()).unwrap_or_default()
                    };
                    let (due, is) = (first(&own, *id), first(&others, *other));
                    if due != is {
                        lines.push(format!("{path}: is the same file as {is}, not as {due}"));
                    }
                }
            }
        }
        let more = others.keys().filter(|path| !own.contains_key(*path));
        lines.extend(more.map(|path| format!("{path}: should not be there")));
        lines
    }

    /// Every path, in order.
    pub(super) fn by_path(&self) -> BTreeMap<String, Id> {
        let mut paths = BTreeMap::from([(".".to_owned(), ROOT)]);
        self.add_below(ROOT, "", &mut paths);
        paths
    }

    fn add_below(&self, dir: Id, prefix: &str, paths: &mut BTreeMap<String, Id>) {
        for (name, id) in self.names(dir) {
            let path = format!("{prefix}{name}");
            self.add_below(id, &format!("{path}/"), paths);
            paths.insert(path, id);
        }
    }
}

impl Node {
    /// What of `other` is not as in this one. Names in a directory are not looked at.
    fn difference(&self, other: &Node) -> Option<String> {
        let mut words = String::new();
        let mut tell = |name: &str, due: String, is: String| {
            if due != is {
                let _ = write!(words, " {name} {is}, not {due};");
            }
        };
        tell("is", self.what.described(), other.what.described());
        let is_symlink = matches!(self.what, What::Symlink(_));
        // A symbolic link has no mode of its own.
        if !is_symlink {
            tell("mode", format!("{:o}", self.mode), format!("{:o}", other.mode));
        }
        tell("time", format!("{:?}", self.time), format!("{:?}", other.time));
        tell("owner", self.owner.to_string(), other.owner.to_string());
        (!words.is_empty()).then(|| words.trim().trim_end_matches(';').to_owned())
    }
}

impl What {
    /// In words.
    fn described(&self) -> String {
        match self {
            What::Directory(_) => "a directory".to_owned(),
            What::Fifo => "a fifo".to_owned(),
            What::Symlink(target) => format!("a link to '{target}'"),
            What::File(Content::Text(text)) => format!("a file of '{text}'"),
            What::File(Content::Sparse(Blocks::Holes)) => "the sparse file".to_owned(),
            What::File(Content::Sparse(_)) => "the sparse file without holes".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tree_of;

    #[test]
    fn paths_lead_through_links() {
        let tree = tree_of("d/a=one; d/up->../b; b=two; s->d; gone->nothing; loop->loop; d/d/")
            .expect("a tree");
        let lead = |path: &str, follows: bool| {
            let found = tree.find(path, follows).ok()?;
            let paths = tree.by_path();
            Some(found.id.map(|id| {
                let first = paths.iter().find(|(_, named)| **named == id);
                first.expect("it has a name").0.clone()
            }))
        };
        let some = |path: &str| Some(Some(path.to_owned()));
        for (path, follows, due) in [
            ("d/a", true, some("d/a")),
            ("./d//a", true, some("d/a")),
            ("s/a", true, some("d/a")),
            ("s", false, some("s")),
            ("s", true, some("d")),
            ("s/", false, some("d")),
            ("d/up", true, some("b")),
            ("s/up", true, some("b")),
            ("d/d/..", true, some("d")),
            ("d/d/../a", true, some("d/a")),
            (".", true, some(".")),
            ("d/.", true, some("d")),
            ("gone", true, Some(None)),
            ("gone", false, some("gone")),
            ("new", true, Some(None)),
            ("loop", true, None),
            ("b/", true, None),
            ("b/x", true, None),
            ("no/x", true, None),
            ("..", true, None),
        ] {
            assert_eq!(lead(path, follows), due, "{path}");
        }
    }

    #[test]
    fn a_difference_is_told() {
        let tree = |text| tree_of(text).expect("a tree");
        let one = tree("a=one; b==a; d/ mode=755");
        for (text, due) in [
            ("a=one; b==a; d/ mode=755", ""),
            ("a=two; b==a; d/ mode=755", "a: is a file of 'two', not a file of 'one'"),
            ("a=one; b=one; d/ mode=755", "b: is the same file as b, not as a"),
            ("a=one; b==a; d/ mode=700", "d: mode 700, not 755"),
            ("a=one; b==a", "d: missing"),
            ("a=one; b==a; d/; c|", "c: should not be there"),
        ] {
            assert_eq!(one.differences(&tree(text)).first().map_or("", |line| line), due, "{text}");
        }
    }
}
