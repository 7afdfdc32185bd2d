//! A file system in this process on which each write that reaches it takes a fixed time, however many
//! bytes it brings: what is best elsewhere is slow here, and large buffers win.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};

use crate::skip::{skip, test_name};

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct SlowFs {
    session: Option<BackgroundSession>,
    writes: Arc<AtomicU64>,
    dir: tempfile::TempDir,
}

impl SlowFs {
    /// Mounts an empty one on which each write takes `write_takes`; `None` after a skip that said so
    /// aloud, where that is impossible.
    ///
    /// # Panics
    /// When no directory can be made to mount it on.
    #[must_use]
    pub fn mount(write_takes: Duration) -> Option<SlowFs> {
        let dir = tempfile::tempdir().expect("a directory");
        let writes = Arc::new(AtomicU64::new(0));
        let root = Node::Dir(BTreeMap::new());
        let nodes = Nodes { known: HashMap::from([(INodeNo::ROOT.0, root)]), last: 1 };
        let slow = Slow { write_takes, writes: writes.clone(), nodes: Mutex::new(nodes) };
        match fuser::spawn_mount(slow, dir.path(), &Config::default()) {
            Ok(session) => Some(SlowFs { session: Some(session), writes, dir }),
            Err(error) => {
                skip(&test_name(), &format!("no FUSE file system can be mounted: {error}"));
                None
            }
        }
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes that have reached it so far.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }
}

impl Drop for SlowFs {
    fn drop(&mut self) {
        // The directory can only be removed when nothing is mounted on it.
        if let Some(Err(error)) = self.session.take().map(BackgroundSession::umount_and_join) {
            eprintln!("{} stays mounted: {error}", self.path().display());
        }
    }
}

struct Slow {
    write_takes: Duration,
    writes: Arc<AtomicU64>,
    nodes: Mutex<Nodes>,
}

struct Nodes {
    known: HashMap<u64, Node>,
    /// The number that was given last.
    last: u64,
}

enum Node {
    Dir(BTreeMap<OsString, u64>),
    File(Vec<u8>),
}

/// Nothing is cached, so that every call is seen here.
const TTL: Duration = Duration::ZERO;

/// Room that it claims to have, in blocks of 4096 bytes: a GiB.
const BLOCKS: u64 = 1 << 18;

fn offset_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("files of tests fit into memory")
}

impl Slow {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nodes {
    fn find(&self, parent: INodeNo, name: &OsStr) -> Option<u64> {
        match self.known.get(&parent.0) {
            Some(Node::Dir(entries)) => entries.get(name).copied(),
            _ => None,
        }
    }

    fn add(&mut self, parent: INodeNo, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        if self.find(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let Some(Node::Dir(entries)) = self.known.get_mut(&parent.0) else {
            return Err(Errno::ENOENT);
        };
        self.last += 1;
        entries.insert(name.to_owned(), self.last);
        self.known.insert(self.last, node);
        self.attr(INodeNo(self.last)).ok_or(Errno::ENOENT)
    }

    /// Takes the name away. What it stood for stays until the kernel forgets it.
    fn take(&mut self, parent: INodeNo, name: &OsStr) -> Result<u64, Errno> {
        let Some(Node::Dir(entries)) = self.known.get_mut(&parent.0) else {
            return Err(Errno::ENOENT);
        };
        entries.remove(name).ok_or(Errno::ENOENT)
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, size) = match self.known.get(&ino.0)? {
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
}

impl Filesystem for Slow {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let nodes = self.nodes();
        match nodes.find(parent, name).and_then(|ino| nodes.attr(INodeNo(ino))) {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.nodes().attr(ino) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut nodes = self.nodes();
        if let (Some(size), Some(Node::File(bytes))) = (size, nodes.known.get_mut(&ino.0)) {
            bytes.resize(offset_of(size), 0);
        }
        match nodes.attr(ino) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        match self.nodes().add(parent, name, Node::Dir(BTreeMap::new())) {
            Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = FopenFlags::FOPEN_DIRECT_IO;
        match self.nodes().add(parent, name, Node::File(Vec::new())) {
            Ok(attr) => reply.created(&TTL, &attr, Generation(0), FileHandle(0), flags),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.nodes().take(parent, name) {
            Ok(_) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut nodes = self.nodes();
        let found = nodes.find(parent, name).and_then(|ino| nodes.known.get(&ino));
        match found {
            Some(Node::Dir(entries)) if !entries.is_empty() => reply.error(Errno::ENOTEMPTY),
            Some(Node::Dir(_)) => match nodes.take(parent, name) {
                Ok(_) => reply.ok(),
                Err(errno) => reply.error(errno),
            },
            Some(Node::File(_)) => reply.error(Errno::ENOTDIR),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mut nodes = self.nodes();
        let ino = match nodes.take(parent, name) {
            Ok(ino) => ino,
            Err(errno) => return reply.error(errno),
        };
        let Some(Node::Dir(entries)) = nodes.known.get_mut(&newparent.0) else {
            return reply.error(Errno::ENOENT);
        };
        entries.insert(newname.to_owned(), ino);
        reply.ok();
    }

    fn forget(&self, _: &Request, ino: INodeNo, _nlookup: u64) {
        let mut nodes = self.nodes();
        let is_named = nodes.known.values().any(|node| match node {
            Node::Dir(entries) => entries.values().any(|&named| named == ino.0),
            Node::File(_) => false,
        });
        if !is_named && ino != INodeNo::ROOT {
            nodes.known.remove(&ino.0);
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.nodes().known.get(&ino.0) {
            Some(Node::File(bytes)) => {
                let start = offset_of(offset).min(bytes.len());
                let end = start.saturating_add(offset_of(size.into())).min(bytes.len());
                reply.data(&bytes[start..end]);
            }
            _ => reply.error(Errno::EBADF),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        // One thread serves all requests, so that several writers wait for each other.
        std::thread::sleep(self.write_takes);
        let mut nodes = self.nodes();
        let Some(Node::File(bytes)) = nodes.known.get_mut(&ino.0) else {
            return reply.error(Errno::EBADF);
        };
        let start = offset_of(offset);
        let end = start + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(data);
        reply.written(u32::try_from(data.len()).expect("no request is as long"));
    }

    fn fsync(
        &self,
        _: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn flush(
        &self,
        _: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let nodes = self.nodes();
        let Some(Node::Dir(entries)) = nodes.known.get(&ino.0) else {
            return reply.error(Errno::ENOTDIR);
        };
        for (place, (name, &entry)) in entries.iter().enumerate().skip(offset_of(offset)) {
            let kind = match nodes.known.get(&entry) {
                Some(Node::Dir(_)) => FileType::Directory,
                _ => FileType::RegularFile,
            };
            if reply.add(INodeNo(entry), place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, 1 << 20, 1 << 20, 4096, 255, 4096);
    }
}
