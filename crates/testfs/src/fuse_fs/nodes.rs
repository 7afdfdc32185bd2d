//! Files and directories in memory, for FUSE file systems of this process.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo, RenameFlags, Request, TimeOrNow};

use crate::offset::offset_of;

/// The inodes of a file system.
#[derive(Debug)]
pub(crate) struct Nodes {
    known: HashMap<u64, Known>,
    /// The last inode number that was assigned.
    last: u64,
    /// Names that differ in case, or in dots at their end, are one name.
    ignores_case: bool,
    /// Bytes that are no text are stored as another character, by which alone the file is found then.
    stores_text: bool,
}

#[derive(Debug)]
struct Known {
    node: Node,
    mode: u32,
    owner: Owner,
    atime: SystemTime,
    mtime: SystemTime,
    ctime: SystemTime,
}

/// The owner of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    uid: u32,
    gid: u32,
}

/// The contents of a node.
#[derive(Debug)]
pub(crate) enum Node {
    /// Inode numbers by name.
    Dir(BTreeMap<OsString, u64>),
    /// The bytes of a file.
    File(Vec<u8>),
}

/// The attributes to set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) atime: Option<TimeOrNow>,
    pub(crate) mtime: Option<TimeOrNow>,
}

/// Cuts a file off, or extends it by zeros. [`Vec::resize`] writes each of them by itself in a debug build,
/// which takes seconds for a file of a GiB, and nothing else is served meanwhile.
fn set_length(bytes: &mut Vec<u8>, len: usize) {
    if len <= bytes.len() {
        return bytes.truncate(len);
    }
    let mut longer = vec![0; len];
    longer[..bytes.len()].copy_from_slice(bytes);
    *bytes = longer;
}

/// The name as FAT has it.
fn without_dots(name: &OsStr) -> &OsStr {
    let bytes = name.as_bytes();
    let kept = bytes.iter().rposition(|&byte| byte != b'.');
    OsStr::from_bytes(&bytes[..kept.map_or(0, |last| last + 1)])
}

impl Nodes {
    /// An empty root directory, owned by this process.
    pub(crate) fn new(ignores_case: bool, stores_text: bool) -> Nodes {
        let root = Known::new(Node::Dir(BTreeMap::new()), 0o755, Owner::here());
        let known = HashMap::from([(INodeNo::ROOT.0, root)]);
        Nodes { known, last: INodeNo::ROOT.0, ignores_case, stores_text }
    }

    pub(crate) fn find(&self, parent: INodeNo, name: &OsStr) -> Option<INodeNo> {
        self.entry(parent, name).map(|(_, &ino)| INodeNo(ino))
    }

    /// The entry that `name` stands for, by its own name.
    fn entry(&self, parent: INodeNo, name: &OsStr) -> Option<(&OsString, &u64)> {
        let Some(Node::Dir(entries)) = self.get(parent) else { return None };
        if self.ignores_case {
            entries.iter().find(|(own, _)| own.eq_ignore_ascii_case(without_dots(name)))
        } else {
            entries.get_key_value(name)
        }
    }

    /// The name that a new entry gets.
    fn stored(&self, name: &OsStr) -> OsString {
        match self.stores_text {
            true => name.to_string_lossy().into_owned().into(),
            false if self.ignores_case => without_dots(name).to_owned(),
            false => name.to_owned(),
        }
    }

    pub(crate) fn get(&self, ino: INodeNo) -> Option<&Node> {
        self.known.get(&ino.0).map(|known| &known.node)
    }

    pub(crate) fn add(
        &mut self,
        parent: INodeNo,
        name: &OsStr,
        node: Node,
        (mode, owner): (u32, Owner),
    ) -> Result<INodeNo, Errno> {
        if self.find(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        self.last += 1;
        let ino = INodeNo(self.last);
        let stored = self.stored(name);
        self.entries(parent)?.insert(stored, ino.0);
        self.known.insert(ino.0, Known::new(node, mode & 0o7777, owner));
        Ok(ino)
    }

    /// Adds a hard link to a file.
    pub(crate) fn link(
        &mut self,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<(), Errno> {
        if self.find(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let stored = self.stored(name);
        self.entries(parent)?.insert(stored, ino.0);
        self.known.get_mut(&ino.0).ok_or(Errno::ENOENT)?.ctime = SystemTime::now();
        Ok(())
    }

    /// Removes a name. The inode stays until the kernel forgets it.
    pub(crate) fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<INodeNo, Errno> {
        let (own, _) = self.entry(parent, name).ok_or(Errno::ENOENT)?;
        let own = own.clone();
        self.entries(parent)?.remove(&own).map(INodeNo).ok_or(Errno::ENOENT)
    }

    /// Removes the name of an empty directory.
    pub(crate) fn remove_dir(&mut self, parent: INodeNo, name: &OsStr) -> Result<INodeNo, Errno> {
        match self.find(parent, name).and_then(|ino| self.get(ino)) {
            Some(Node::Dir(entries)) if !entries.is_empty() => Err(Errno::ENOTEMPTY),
            Some(Node::Dir(_)) => self.remove(parent, name),
            Some(Node::File(_)) => Err(Errno::ENOTDIR),
            None => Err(Errno::ENOENT),
        }
    }

    /// Renames `from` to `to`. An existing `to` is replaced if `flags` allow it.
    pub(crate) fn rename(
        &mut self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if !RenameFlags::RENAME_NOREPLACE.contains(flags) {
            return Err(Errno::EINVAL);
        }
        let ino = self.find(from.0, from.1).ok_or(Errno::ENOENT)?;
        match self.find(to.0, to.1).and_then(|existing| self.get(existing)) {
            Some(_) if !flags.is_empty() => return Err(Errno::EEXIST),
            Some(Node::Dir(entries)) if !entries.is_empty() => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        let replaced = self.entry(to.0, to.1).map(|(own, _)| own.clone());
        let stored = replaced.unwrap_or_else(|| self.stored(to.1));
        self.entries(to.0)?.insert(stored, ino.0);
        self.remove(from.0, from.1)?;
        self.known.get_mut(&ino.0).ok_or(Errno::ENOENT)?.ctime = SystemTime::now();
        Ok(())
    }

    /// The content of each file by its path, and `None` for each directory below the root.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut dirs = vec![(PathBuf::new(), INodeNo::ROOT.0)];
        while let Some((path, dir)) = dirs.pop() {
            let Some(Node::Dir(entries)) = self.get(INodeNo(dir)) else { continue };
            for (name, &ino) in entries {
                let path = path.join(name);
                match self.get(INodeNo(ino)) {
                    Some(Node::File(bytes)) => drop(found.insert(path, Some(bytes.clone()))),
                    Some(Node::Dir(_)) => {
                        found.insert(path.clone(), None);
                        dirs.push((path, ino));
                    }
                    None => {}
                }
            }
        }
        found
    }

    /// Number of inodes, with those without names that were not forgotten yet.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Drops an inode without names.
    pub(crate) fn forget(&mut self, ino: INodeNo) {
        if self.names_of(ino) == 0 && ino != INodeNo::ROOT {
            self.known.remove(&ino.0);
        }
    }

    fn names_of(&self, ino: INodeNo) -> usize {
        let names = self.known.values().map(|known| match &known.node {
            Node::Dir(entries) => entries.values().filter(|&&named| named == ino.0).count(),
            Node::File(_) => 0,
        });
        names.sum()
    }

    /// At most `len` bytes of a file from `offset` on.
    pub(crate) fn read(&self, ino: INodeNo, offset: u64, len: usize) -> Result<&[u8], Errno> {
        let Some(Node::File(bytes)) = self.get(ino) else { return Err(Errno::EBADF) };
        let start = offset_of(offset).min(bytes.len());
        Ok(&bytes[start..bytes.len().min(start.saturating_add(len))])
    }

    pub(crate) fn write(&mut self, ino: INodeNo, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let known = self.known.get_mut(&ino.0).ok_or(Errno::EBADF)?;
        let Node::File(bytes) = &mut known.node else { return Err(Errno::EBADF) };
        let start = offset_of(offset);
        if bytes.len() < start {
            set_length(bytes, start);
        }
        // The added bytes are not zeroed first: in a debug build that takes many times as long as
        // the rest of a write.
        let (over, added) = data.split_at(data.len().min(bytes.len() - start));
        bytes[start..start + over.len()].copy_from_slice(over);
        bytes.extend_from_slice(added);
        known.touch();
        Ok(())
    }

    /// Sets attributes. The size of a directory stays.
    pub(crate) fn change(&mut self, ino: INodeNo, change: Change) {
        let Some(known) = self.known.get_mut(&ino.0) else { return };
        if let (Node::File(bytes), Some(len)) = (&mut known.node, change.size) {
            set_length(bytes, offset_of(len));
            known.touch();
        }
        known.mode = change.mode.map_or(known.mode, |mode| mode & 0o7777);
        known.owner.uid = change.uid.unwrap_or(known.owner.uid);
        known.owner.gid = change.gid.unwrap_or(known.owner.gid);
        known.atime = change.atime.map_or(known.atime, time_of);
        known.mtime = change.mtime.map_or(known.mtime, time_of);
        known.ctime = SystemTime::now();
    }

    /// Sets the times of a change of content.
    pub(crate) fn modify(&mut self, ino: INodeNo) {
        if let Some(known) = self.known.get_mut(&ino.0) {
            known.touch();
        }
    }

    pub(crate) fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let known = self.known.get(&ino.0)?;
        let (kind, size, names) = match &known.node {
            Node::Dir(_) => (FileType::Directory, 0, 1),
            Node::File(bytes) => (FileType::RegularFile, bytes.len() as u64, self.names_of(ino)),
        };
        Some(FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: known.atime,
            mtime: known.mtime,
            ctime: known.ctime,
            crtime: known.ctime,
            kind,
            perm: u16::try_from(known.mode).expect("it is masked"),
            nlink: u32::try_from(names).expect("tests create few"),
            uid: known.owner.uid,
            gid: known.owner.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// The entries of a directory, to change them.
    fn entries(&mut self, dir: INodeNo) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        let known = self.known.get_mut(&dir.0).ok_or(Errno::ENOENT)?;
        known.touch();
        match &mut known.node {
            Node::Dir(entries) => Ok(entries),
            Node::File(_) => Err(Errno::ENOTDIR),
        }
    }
}

impl Known {
    fn new(node: Node, mode: u32, owner: Owner) -> Known {
        let now = SystemTime::now();
        Known { node, mode, owner, atime: now, mtime: now, ctime: now }
    }

    /// Sets the times of a change of content.
    fn touch(&mut self) {
        self.mtime = SystemTime::now();
        self.ctime = self.mtime;
    }
}

impl Owner {
    /// The owner of this process.
    pub(crate) fn here() -> Owner {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Owner { uid: uid.as_raw(), gid: gid.as_raw() }
    }

    /// The owner of the process that made the request.
    pub(crate) fn of(request: &Request) -> Owner {
        Owner { uid: request.uid(), gid: request.gid() }
    }
}

fn time_of(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}
