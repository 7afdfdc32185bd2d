//! A file system in this process on which requests take the time that a test says: what is best
//! elsewhere is slow here.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, CopyFileRangeFlags, Errno, FileHandle, FileType,
    Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::nodes::{Change, Node, Nodes, Owner, TTL, introduce, offset_of, tell};
use crate::skip::{skip, test_name};

/// What requests cost, and which there are not. The rest costs nothing but the way to this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// The time of each write, however many bytes it brings.
    pub write_takes: Duration,
    /// The time of each MiB that it copies itself, asked by copy_file_range(2); `None` where it does not.
    pub served_mib_takes: Option<Duration>,
    /// Whether files are read and written past the page cache.
    pub past_the_cache: bool,
    /// Writes after which it is full, whatever room it claims to have; `None` is never.
    pub full_after_writes: Option<u64>,
    /// Renames with flags, such as RENAME_NOREPLACE, are refused with EINVAL, as many servers do.
    pub renames_without_flags: bool,
    /// When the first of those comes, another has just made a file of that name, which holds its name.
    pub another_is_first: bool,
    /// No file can have two names.
    pub no_links: bool,
}

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct SlowFs {
    session: Option<BackgroundSession>,
    writes: Arc<AtomicU64>,
    served_bytes: Arc<AtomicU64>,
    dir: tempfile::TempDir,
}

impl SlowFs {
    /// Mounts an empty one; `None` after a skip that said so aloud, where that is impossible.
    ///
    /// # Panics
    /// When no directory can be made to mount it on.
    #[must_use]
    pub fn mount(costs: Costs) -> Option<SlowFs> {
        let dir = tempfile::tempdir().expect("a directory");
        let (writes, served_bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let slow = Slow {
            costs,
            first_may_come: AtomicBool::new(costs.another_is_first),
            writes: writes.clone(),
            served_bytes: served_bytes.clone(),
            nodes: Mutex::new(Nodes::new()),
        };
        match fuser::spawn_mount(slow, dir.path(), &Config::default()) {
            Ok(session) => Some(SlowFs { session: Some(session), writes, served_bytes, dir }),
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

    /// Bytes that it has copied itself so far.
    #[must_use]
    pub fn served_bytes(&self) -> u64 {
        self.served_bytes.load(Ordering::Relaxed)
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
    costs: Costs,
    /// Nobody has come first yet.
    first_may_come: AtomicBool,
    writes: Arc<AtomicU64>,
    served_bytes: Arc<AtomicU64>,
    nodes: Mutex<Nodes>,
}

/// Room that it claims to have, in blocks of 4096 bytes: a GiB.
const BLOCKS: u64 = 1 << 18;

impl Slow {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flags(&self) -> FopenFlags {
        if self.costs.past_the_cache {
            FopenFlags::FOPEN_DIRECT_IO
        } else {
            FopenFlags::FOPEN_KEEP_CACHE
        }
    }
}

impl Filesystem for Slow {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let nodes = self.nodes();
        introduce(nodes.find(parent, name).and_then(|ino| nodes.attr(ino)), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        tell(self.nodes().attr(ino), reply);
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut nodes = self.nodes();
        nodes.change(ino, Change { mode, uid, gid, size, atime, mtime });
        tell(nodes.attr(ino), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let mut nodes = self.nodes();
        let made = (mode, Owner::of(request));
        match nodes.add(parent, name, Node::Dir(BTreeMap::new()), made) {
            Ok(ino) => introduce(nodes.attr(ino), reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mut nodes = self.nodes();
        let made = (mode, Owner::of(request));
        let made = nodes.add(parent, name, Node::File(Vec::new()), made);
        match made.map(|ino| nodes.attr(ino).expect("it was just made")) {
            Ok(attr) => {
                reply.created(&TTL, &attr, Generation(0), FileHandle(0), self.flags());
            }
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
        match self.nodes().take_dir(parent, name) {
            Ok(_) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if self.costs.renames_without_flags && !flags.is_empty() {
            if self.first_may_come.swap(false, Ordering::Relaxed) {
                let content = Node::File(newname.as_encoded_bytes().to_vec());
                let made = (0o644, Owner::of(request));
                // Where the name is taken already nobody need come.
                let _ = self.nodes().add(newparent, newname, content, made);
            }
            return reply.error(Errno::EINVAL);
        }
        match self.nodes().rename((parent, name), (newparent, newname), flags) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn link(
        &self,
        _: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let mut nodes = self.nodes();
        if self.costs.no_links {
            return reply.error(Errno::EPERM);
        }
        match nodes.link(ino, newparent, newname) {
            Ok(()) => introduce(nodes.attr(ino), reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, _nlookup: u64) {
        self.nodes().forget(ino);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), self.flags());
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
        match self.nodes().read(ino, offset, offset_of(size.into())) {
            Ok(bytes) => reply.data(bytes),
            Err(errno) => reply.error(errno),
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
        let writes = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.costs.full_after_writes.is_some_and(|last| writes >= last) {
            return reply.error(Errno::ENOSPC);
        }
        // One thread serves all requests, so that several writers wait for each other.
        std::thread::sleep(self.costs.write_takes);
        match self.nodes().write(ino, offset, data) {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("no request is as long")),
            Err(errno) => reply.error(errno),
        }
    }

    fn copy_file_range(
        &self,
        _: &Request,
        ino_in: INodeNo,
        _fh_in: FileHandle,
        offset_in: u64,
        ino_out: INodeNo,
        _fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let Some(mib_takes) = self.costs.served_mib_takes else {
            return reply.error(Errno::ENOSYS);
        };
        let mut nodes = self.nodes();
        // A reply has room for 32 bits.
        let len = offset_of(len.min(1 << 30));
        let bytes = nodes.read(ino_in, offset_in, len).map(<[u8]>::to_vec);
        let written =
            bytes.and_then(|bytes| nodes.write(ino_out, offset_out, &bytes).map(|()| bytes.len()));
        match written {
            Ok(bytes) => {
                self.served_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                std::thread::sleep(mib_takes.mul_f64(bytes as f64 / f64::from(1 << 20)));
                reply.written(u32::try_from(bytes).expect("it was bounded"));
            }
            Err(errno) => reply.error(errno),
        }
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
        let Some(Node::Dir(entries)) = nodes.get(ino) else {
            return reply.error(Errno::ENOTDIR);
        };
        for (place, (name, &entry)) in entries.iter().enumerate().skip(offset_of(offset)) {
            let kind = match nodes.get(INodeNo(entry)) {
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
