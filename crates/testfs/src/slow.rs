//! A FUSE file system of this process whose requests take a set time, so that a variant which is
//! fast elsewhere is slow here, and which lies where it is told to ([`Lies`]).

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BackgroundSession, BsdFileFlags, Config, CopyFileRangeFlags, Errno, FileAttr,
    FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use crate::lies::{Liar, Lies};
use crate::nodes::{Change, Node, Nodes, Owner, offset_of};
use crate::skip::{skip, test_name};

/// The time of requests, and which requests are not supported. All others take only the round trip
/// to this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// The time that each request is on its way, as to a server. Requests travel at the same time.
    pub latency: Duration,
    /// The time of each write, whatever its size. Writes wait for one another, unless there is a latency.
    pub write_time: Duration,
    /// The time for each MiB of a copy_file_range(2), which the file system serves itself. `None`
    /// if it does not support the call.
    pub served_mib_time: Option<Duration>,
    /// Whether reads and writes bypass the page cache.
    pub direct_io: bool,
    /// Number of writes after which writes fail with ENOSPC, whatever statfs(2) reports.
    pub full_after_writes: Option<u64>,
    /// Renames with flags, such as RENAME_NOREPLACE, fail with EINVAL, as on many network file
    /// systems.
    pub no_rename_flags: bool,
    /// Before the first such rename fails, a file with the new name is created, as by another
    /// process. It contains its name.
    pub rename_loses_race: bool,
    /// Hard links fail with this error.
    pub no_hard_links: Option<rustix::io::Errno>,
    /// Names that differ in case are one name.
    pub ignores_case: bool,
    /// Names are stored as text, as UDF does: a file whose name was none is not found by that again.
    pub stores_text: bool,
    /// How long the kernel trusts names and attributes that it has seen, and that a name is missing.
    /// A second mount of the same store may show what was true so long ago, as network file systems
    /// do. Data is read again after each open(2).
    pub caches_for: Duration,
    /// The attribute `system.nfs4_acl` of each file, as clients of NFSv4 show it. Nothing can change it.
    pub nfs4_acl: Option<&'static [u8]>,
}

/// A mounted file system. Dropping it unmounts it.
#[derive(Debug)]
pub struct SlowFs {
    costs: Costs,
    session: Option<BackgroundSession>,
    writes: Arc<AtomicU64>,
    served_bytes: Arc<AtomicU64>,
    nodes: Arc<Mutex<Nodes>>,
    liar: Arc<Mutex<Liar>>,
    hanging: Hanging,
    dir: tempfile::TempDir,
}

/// Reads without a reply. `None` after they were made to fail; later ones fail at once. While a
/// read hangs, the file system cannot be unmounted and the process cannot be killed.
type Hanging = Arc<Mutex<Option<Vec<ReplyData>>>>;

/// The name of the file of [`SlowFs::with_source`].
const SOURCE: &str = "source";

impl SlowFs {
    /// Mounts an empty one. `None` after a reported skip, if nothing can be mounted.
    ///
    /// # Panics
    /// If no directory can be created to mount it on.
    #[must_use]
    pub fn mount(costs: Costs) -> Option<SlowFs> {
        let (writes, served_bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let nodes = Nodes::new(costs.ignores_case, costs.stores_text);
        let store = (Arc::new(Mutex::new(nodes)), Arc::default());
        SlowFs::mount_store(costs, writes, served_bytes, store)
    }

    /// Mounts one with the file `source` of this content, of which it tells these lies, past the page
    /// cache. `None` after a reported skip, if nothing can be mounted.
    ///
    /// # Panics
    /// If no directory can be created to mount it on.
    #[must_use]
    pub fn with_source(content: Vec<u8>, lies: Lies) -> Option<SlowFs> {
        let served = SlowFs::mount(Costs { direct_io: true, ..Costs::default() })?;
        let (node, attrs) = (Node::File(content), (0o644, Owner::here()));
        let mut nodes = served.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.add(INodeNo::ROOT, OsStr::new(SOURCE), node, attrs).expect("it is the first");
        drop(nodes);
        served.lie(lies);
        Some(served)
    }

    /// Another mount of the same store, with caches of its own, as another host has it. `None` after a
    /// reported skip.
    ///
    /// # Panics
    /// If no directory can be created to mount it on.
    #[must_use]
    pub fn mount_again(&self) -> Option<SlowFs> {
        let (writes, served_bytes) = (self.writes.clone(), self.served_bytes.clone());
        let store = (self.nodes.clone(), self.liar.clone());
        SlowFs::mount_store(self.costs, writes, served_bytes, store)
    }

    fn mount_store(
        costs: Costs,
        writes: Arc<AtomicU64>,
        served_bytes: Arc<AtomicU64>,
        (nodes, liar): (Arc<Mutex<Nodes>>, Arc<Mutex<Liar>>),
    ) -> Option<SlowFs> {
        let dir = tempfile::tempdir().expect("a directory");
        let hanging: Hanging = Arc::new(Mutex::new(Some(Vec::new())));
        let slow = Slow {
            costs,
            hanging: hanging.clone(),
            race_is_due: AtomicBool::new(costs.rename_loses_race),
            writes: writes.clone(),
            served_bytes: served_bytes.clone(),
            nodes: nodes.clone(),
            liar: Arc::clone(&liar),
            in_creation: Mutex::default(),
        };
        let mut config = Config::default();
        if !costs.latency.is_zero() {
            config.n_threads = Some(TRAVELLING_MAX);
        }
        match fuser::spawn_mount(slow, dir.path(), &config) {
            Ok(session) => {
                let session = Some(session);
                Some(SlowFs { costs, session, writes, served_bytes, nodes, liar, hanging, dir })
            }
            Err(error) => {
                skip(&test_name(), &format!("no FUSE file system can be mounted: {error}"));
                None
            }
        }
    }

    /// The mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The path of the file of [`SlowFs::with_source`].
    #[must_use]
    pub fn source(&self) -> PathBuf {
        self.path().join(SOURCE)
    }

    /// Whether a read waits for a reply that does not come.
    #[must_use]
    pub fn hangs(&self) -> bool {
        let hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner);
        hanging.as_ref().is_some_and(|replies| !replies.is_empty())
    }

    /// Lies from now on. The default ends it.
    pub fn lie(&self, lies: Lies) {
        *self.liar.lock().unwrap_or_else(PoisonError::into_inner) = Liar::new(lies);
    }

    /// What it really has, by path: the content of each file, and `None` for a directory.
    #[must_use]
    pub fn contents(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).contents()
    }

    /// Number of inodes, with those that have no name and that a kernel still knows.
    #[must_use]
    pub fn inodes(&self) -> usize {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Number of writes so far.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Bytes of served copy_file_range(2) calls so far.
    #[must_use]
    pub fn served_bytes(&self) -> u64 {
        self.served_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for SlowFs {
    fn drop(&mut self) {
        // No request is held back any more.
        self.lie(Lies::default());
        let hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner).take();
        for reply in hanging.into_iter().flatten() {
            reply.error(Errno::EIO);
        }
        // The directory can be removed only when nothing is mounted on it.
        if let Some(Err(error)) = self.session.take().map(BackgroundSession::umount_and_join) {
            // The kernel may release the last file shortly after its process has ended.
            let detached = Command::new("umount").arg("-l").arg(self.path()).status();
            if !detached.is_ok_and(|status| status.success()) {
                eprintln!("{} stays mounted: {error}", self.path().display());
            }
        }
    }
}

struct Slow {
    costs: Costs,
    hanging: Hanging,
    /// Whether the file of [`Costs::rename_loses_race`] is still to be created.
    race_is_due: AtomicBool,
    writes: Arc<AtomicU64>,
    served_bytes: Arc<AtomicU64>,
    nodes: Arc<Mutex<Nodes>>,
    liar: Arc<Mutex<Liar>>,
    /// The files that are open in the descriptors which created them.
    in_creation: Mutex<HashSet<INodeNo>>,
}

/// The handle of a descriptor that created its file. Others have handle 0.
const CREATOR: FileHandle = FileHandle(1);

/// Requests that are on their way at the same time at most.
const TRAVELLING_MAX: usize = 64;

/// The free blocks of 4096 bytes that statfs(2) reports: 1 GiB.
const BLOCKS: u64 = 1 << 18;

impl Slow {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request has arrived.
    fn travel(&self) {
        std::thread::sleep(self.costs.latency);
    }

    fn liar(&self) -> MutexGuard<'_, Liar> {
        self.liar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flags(&self) -> FopenFlags {
        match self.costs {
            Costs { direct_io: true, .. } => FopenFlags::FOPEN_DIRECT_IO,
            Costs { caches_for, .. } if !caches_for.is_zero() => FopenFlags::empty(),
            _ => FopenFlags::FOPEN_KEEP_CACHE,
        }
    }

    fn in_creation(&self) -> MutexGuard<'_, HashSet<INodeNo>> {
        self.in_creation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a change of the hard links of a file.
    fn end_link(&self, nodes: &mut Nodes, ino: INodeNo) {
        if self.liar().links_change_times() {
            nodes.change(ino, Change::MODIFIED_NOW);
        }
    }

    fn reply_attr(&self, attr: Option<FileAttr>, reply: ReplyAttr) {
        match attr {
            Some(attr) => reply.attr(&self.costs.caches_for, &attr),
            None => reply.error(Errno::ESTALE),
        }
    }

    fn reply_entry(&self, attr: Option<FileAttr>, reply: ReplyEntry) {
        match attr {
            Some(attr) => reply.entry(&self.costs.caches_for, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }
}

/// Answers with the length of `value` if `size` is 0, as the kernel asks for it.
fn reply_xattr(value: &[u8], size: u32, reply: ReplyXattr) {
    let len = u32::try_from(value.len()).expect("tests have short attributes");
    match size {
        0 => reply.size(len),
        _ if size < len => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}

impl Filesystem for Slow {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.travel();
        let nodes = self.nodes();
        let attr = nodes.find(parent, name).and_then(|ino| nodes.attr(ino));
        if attr.is_none()
            && !self.costs.caches_for.is_zero()
            && let Some(none) = nodes.attr(INodeNo::ROOT)
        {
            // The kernel remembers that there is no such name.
            let none = FileAttr { ino: INodeNo(0), ..none };
            return reply.entry(&self.costs.caches_for, &none, Generation(0));
        }
        self.reply_entry(attr.map(|attr| self.liar().entry_attr(attr, name)), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.travel();
        let attr = self.nodes().attr(ino);
        self.reply_attr(attr.map(|attr| self.liar().attr(attr)), reply);
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
        self.travel();
        // Lengths are data.
        if size.is_none() && self.liar().refuses_attributes() {
            return reply.error(Errno::EPERM);
        }
        let mut nodes = self.nodes();
        nodes.change(ino, Change { mode, uid, gid, size, atime, mtime });
        self.reply_attr(nodes.attr(ino).map(|attr| self.liar().attr(attr)), reply);
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
        self.travel();
        let mut nodes = self.nodes();
        let attrs = (mode, Owner::of(request));
        match nodes.add(parent, name, Node::Dir(BTreeMap::new()), attrs) {
            Ok(ino) => self.reply_entry(nodes.attr(ino), reply),
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
        self.travel();
        let mut nodes = self.nodes();
        let attrs = (mode, Owner::of(request));
        let created = nodes.add(parent, name, Node::File(Vec::new()), attrs);
        match created.map(|ino| nodes.attr(ino).expect("it was just created")) {
            Ok(attr) => {
                self.liar().entry_attr(attr, name);
                self.in_creation().insert(attr.ino);
                let (ttl, flags) = (&self.costs.caches_for, self.flags());
                reply.created(ttl, &attr, Generation(0), CREATOR, flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.travel();
        let mut nodes = self.nodes();
        match nodes.remove(parent, name) {
            Ok(ino) => {
                self.end_link(&mut nodes, ino);
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.travel();
        match self.nodes().remove_dir(parent, name) {
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
        self.travel();
        if self.costs.no_rename_flags && !flags.is_empty() {
            if self.race_is_due.swap(false, Ordering::Relaxed) {
                let content = Node::File(newname.as_encoded_bytes().to_vec());
                let attrs = (0o644, Owner::of(request));
                // If the name exists already, nothing has to be created.
                let _ = self.nodes().add(newparent, newname, content, attrs);
            }
            return reply.error(Errno::EINVAL);
        }
        let unprotects = self.liar().renames_unprotect();
        let mut nodes = self.nodes();
        if let Err(errno) = nodes.rename((parent, name), (newparent, newname), flags) {
            return reply.error(errno);
        }
        if unprotects
            && let Some(ino) = nodes.find(newparent, newname)
            && let Some(attr) = nodes.attr(ino)
        {
            let mode = Some(u32::from(attr.perm) | 0o200);
            nodes.change(ino, Change { mode, ..Change::default() });
        }
        reply.ok();
    }

    fn link(
        &self,
        _: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        self.travel();
        let mut nodes = self.nodes();
        if let Some(errno) = self.costs.no_hard_links {
            return reply.error(Errno::from_i32(errno.raw_os_error()));
        }
        match nodes.link(ino, newparent, newname) {
            Ok(()) => {
                self.end_link(&mut nodes, ino);
                self.reply_entry(nodes.attr(ino), reply);
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// ESTALE for a file that was removed through another mount.
    fn access(&self, _: &Request, ino: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        match self.nodes().attr(ino) {
            Some(_) => reply.ok(),
            None => reply.error(Errno::ESTALE),
        }
    }

    fn listxattr(&self, _: &Request, _: INodeNo, size: u32, reply: ReplyXattr) {
        match self.costs.nfs4_acl {
            Some(_) => reply_xattr(b"system.nfs4_acl\0", size, reply),
            None => reply.error(Errno::ENOSYS),
        }
    }

    fn getxattr(&self, _: &Request, _: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        match self.costs.nfs4_acl {
            Some(list) if name == "system.nfs4_acl" => reply_xattr(list, size, reply),
            Some(_) => reply.error(Errno::ENODATA),
            None => reply.error(Errno::ENOSYS),
        }
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if fh == CREATOR {
            self.in_creation().remove(&ino);
        }
        reply.ok();
    }

    fn forget(&self, _: &Request, ino: INodeNo, _nlookup: u64) {
        self.nodes().forget(ino);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.travel();
        match self.nodes().attr(ino) {
            Some(_) => reply.opened(FileHandle(0), self.flags()),
            None => reply.error(Errno::ESTALE),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.travel();
        // Without a lock, so that the lies can change meanwhile.
        let read_time = self.liar().read_time();
        std::thread::sleep(read_time);
        let (mut nodes, mut liar) = (self.nodes(), self.liar());
        let is_creator = fh == CREATOR || !self.in_creation().contains(&ino);
        if liar.creator_reads_alone() && !is_creator {
            return reply.error(Errno::EACCES);
        }
        liar.change(&mut nodes, ino);
        if liar.read_hangs(offset + u64::from(size)) {
            let mut hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner);
            return match &mut *hanging {
                Some(hanging) => hanging.push(reply),
                None => reply.error(Errno::EIO),
            };
        }
        let len = match liar.read_len(offset, offset_of(size.into())) {
            Ok(len) => len,
            Err(errno) => return reply.error(errno),
        };
        match nodes.read(ino, offset, len) {
            Ok(bytes) => reply.data(&liar.read_bytes(offset, bytes)),
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
        self.travel();
        let writes = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.costs.full_after_writes.is_some_and(|last| writes >= last) {
            return reply.error(Errno::ENOSPC);
        }
        std::thread::sleep(self.costs.write_time);
        let data = match self.liar().written(offset, data) {
            Ok(data) => data,
            Err(errno) => return reply.error(errno),
        };
        match self.nodes().write(ino, offset, &data) {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("shorter than 4 GiB")),
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
        let Some(mib_time) = self.costs.served_mib_time else {
            return reply.error(Errno::ENOSYS);
        };
        let mut nodes = self.nodes();
        // The count in the reply has 32 bits.
        let len = offset_of(len.min(1 << 30));
        let bytes = nodes.read(ino_in, offset_in, len).map(<[u8]>::to_vec);
        let written =
            bytes.and_then(|bytes| nodes.write(ino_out, offset_out, &bytes).map(|()| bytes.len()));
        match written {
            Ok(bytes) => {
                self.served_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                std::thread::sleep(mib_time.mul_f64(bytes as f64 / f64::from(1 << 20)));
                reply.written(u32::try_from(bytes).expect("it is at most 1 GiB"));
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn fsync(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        while self.liar().holds_fsync() {
            std::thread::sleep(Duration::from_millis(2));
        }
        if self.liar().sync_changes_times(ino) {
            self.nodes().change(ino, Change::MODIFIED_NOW);
        }
        match self.liar().fsync() {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.travel();
        if self.liar().close_changes_times(ino) {
            self.nodes().change(ino, Change::MODIFIED_NOW);
        }
        match self.liar().close() {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn lseek(
        &self,
        _: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.liar().seek(offset, whence) {
            Ok(offset) => reply.offset(offset),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.travel();
        let nodes = self.nodes();
        let Some(Node::Dir(entries)) = nodes.get(ino) else {
            return reply.error(Errno::ENOTDIR);
        };
        let liar = self.liar();
        let shown = entries.iter().flat_map(|entry| std::iter::repeat_n(entry, liar.times_named()));
        for (place, (name, &entry)) in shown.enumerate().skip(offset_of(offset)) {
            let kind = match nodes.get(INodeNo(entry)) {
                Some(Node::Dir(_)) => FileType::Directory,
                _ => FileType::RegularFile,
            };
            if reply.add(INodeNo(entry), place as u64 + 1, liar.kind(kind), name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.travel();
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, 1 << 20, 1 << 20, 4096, 255, 4096);
    }
}
