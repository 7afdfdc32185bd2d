//! Files and directories in memory, for file systems in this process.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyEntry};

/// What a file system holds.
#[derive(Debug)]
pub(crate) struct Nodes {
    known: HashMap<u64, Node>,
    /// The number that was given last.
    last: u64,
}

/// One of them.
#[derive(Debug)]
pub(crate) enum Node {
    /// Numbers by name.
    Dir(BTreeMap<OsString, u64>),
    /// What it contains.
    File(Vec<u8>),
}

/// Nothing is cached of names and attributes, so that every question comes here.
pub(crate) const TTL: Duration = Duration::ZERO;

/// An offset or a length as a place in memory.
pub(crate) fn offset_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("files of tests fit into memory")
}

impl Nodes {
    /// An empty root.
    pub(crate) fn new() -> Nodes {
        let root = Node::Dir(BTreeMap::new());
        Nodes { known: HashMap::from([(INodeNo::ROOT.0, root)]), last: INodeNo::ROOT.0 }
    }

    pub(crate) fn find(&self, parent: INodeNo, name: &OsStr) -> Option<INodeNo> {
        match self.known.get(&parent.0) {
            Some(Node::Dir(entries)) => entries.get(name).copied().map(INodeNo),
            _ => None,
        }
    }

    pub(crate) fn get(&self, ino: INodeNo) -> Option<&Node> {
        self.known.get(&ino.0)
    }

    pub(crate) fn add(
        &mut self,
        parent: INodeNo,
        name: &OsStr,
        node: Node,
    ) -> Result<INodeNo, Errno> {
        if self.find(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        self.last += 1;
        let ino = INodeNo(self.last);
        self.entries(parent)?.insert(name.to_owned(), ino.0);
        self.known.insert(ino.0, node);
        Ok(ino)
    }

    /// Takes the name away. What it stood for stays until the kernel forgets it.
    pub(crate) fn take(&mut self, parent: INodeNo, name: &OsStr) -> Result<INodeNo, Errno> {
        self.entries(parent)?.remove(name).map(INodeNo).ok_or(Errno::ENOENT)
    }

    /// The same with the name of an empty directory.
    pub(crate) fn take_dir(&mut self, parent: INodeNo, name: &OsStr) -> Result<INodeNo, Errno> {
        match self.find(parent, name).and_then(|ino| self.get(ino)) {
            Some(Node::Dir(entries)) if !entries.is_empty() => Err(Errno::ENOTEMPTY),
            Some(Node::Dir(_)) => self.take(parent, name),
            Some(Node::File(_)) => Err(Errno::ENOTDIR),
            None => Err(Errno::ENOENT),
        }
    }

    /// Gives what `from` stands for the name `to`, in place of what had it.
    pub(crate) fn rename(
        &mut self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
    ) -> Result<(), Errno> {
        let ino = self.take(from.0, from.1)?;
        self.entries(to.0)?.insert(to.1.to_owned(), ino.0);
        Ok(())
    }

    /// Lets go of what has no name any more.
    pub(crate) fn forget(&mut self, ino: INodeNo) {
        let is_named = self.known.values().any(|node| match node {
            Node::Dir(entries) => entries.values().any(|&named| named == ino.0),
            Node::File(_) => false,
        });
        if !is_named && ino != INodeNo::ROOT {
            self.known.remove(&ino.0);
        }
    }

    /// At most `len` bytes of a file from `offset` on.
    pub(crate) fn read(&self, ino: INodeNo, offset: u64, len: usize) -> Result<&[u8], Errno> {
        let Some(Node::File(bytes)) = self.get(ino) else { return Err(Errno::EBADF) };
        let start = offset_of(offset).min(bytes.len());
        Ok(&bytes[start..bytes.len().min(start.saturating_add(len))])
    }

    pub(crate) fn write(&mut self, ino: INodeNo, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let Some(Node::File(bytes)) = self.known.get_mut(&ino.0) else { return Err(Errno::EBADF) };
        let start = offset_of(offset);
        bytes.resize(bytes.len().max(start), 0);
        // What is added is not filled with zeros first: without optimisation that takes many times as long
        // as all else here.
        let (over, added) = data.split_at(data.len().min(bytes.len() - start));
        bytes[start..start + over.len()].copy_from_slice(over);
        bytes.extend_from_slice(added);
        Ok(())
    }

    /// Gives a file another length; a directory keeps its own.
    pub(crate) fn resize(&mut self, ino: INodeNo, len: u64) {
        if let Some(Node::File(bytes)) = self.known.get_mut(&ino.0) {
            bytes.resize(offset_of(len), 0);
        }
    }

    pub(crate) fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, size) = match self.get(ino)? {
            Node::Dir(_) => (FileType::Directory, 0),
            Node::File(bytes) => (FileType::RegularFile, bytes.len() as u64),
        };
        let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        Some(FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm: if kind == FileType::Directory { 0o755 } else { 0o644 },
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn entries(&mut self, dir: INodeNo) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        match self.known.get_mut(&dir.0) {
            Some(Node::Dir(entries)) => Ok(entries),
            _ => Err(Errno::ENOENT),
        }
    }
}

/// Answers a question for attributes.
pub(crate) fn tell(attr: Option<FileAttr>, reply: ReplyAttr) {
    match attr {
        Some(attr) => reply.attr(&TTL, &attr),
        None => reply.error(Errno::ENOENT),
    }
}

/// Answers a question for a name.
pub(crate) fn introduce(attr: Option<FileAttr>, reply: ReplyEntry) {
    match attr {
        Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
        None => reply.error(Errno::ENOENT),
    }
}
