//! The requests of the kernel, and how they are answered.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, FileType,
    Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::costs::Costs;
use super::lies::Liar;
use super::nodes::{Change, Node, Nodes, Owner};
use super::store::{Hanging, Store};
use crate::offset::offset_of;
use crate::session::lock;

/// Answers the requests of one mount.
pub(super) struct Requests {
    costs: Costs,
    store: Arc<Store>,
    hanging: Hanging,
    /// Whether the file of [`Costs::rename_loses_race`] is still to be created.
    race_is_due: AtomicBool,
    /// The files that are open in the descriptors which created them.
    in_creation: Mutex<HashSet<INodeNo>>,
}

/// The handle of a descriptor that created its file. Others have handle 0.
const CREATOR: FileHandle = FileHandle(1);

/// The free blocks of 4096 bytes that statfs(2) reports: 1 GiB.
const BLOCKS: u64 = 1 << 18;

impl Requests {
    pub(super) fn new(costs: Costs, store: Arc<Store>, hanging: Hanging) -> Requests {
        let race_is_due = AtomicBool::new(costs.rename_loses_race);
        Requests { costs, store, hanging, race_is_due, in_creation: Mutex::default() }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        lock(&self.store.nodes)
    }

    /// Waits until a request has arrived.
    fn travel(&self) {
        let count = self.store.travelling.fetch_add(1, Ordering::Relaxed) + 1;
        self.store.most_travelling.fetch_max(count, Ordering::Relaxed);
        std::thread::sleep(self.costs.latency);
        self.store.travelling.fetch_sub(1, Ordering::Relaxed);
    }

    fn liar(&self) -> MutexGuard<'_, Liar> {
        lock(&self.store.liar)
    }

    fn flags(&self) -> FopenFlags {
        match self.costs {
            Costs { direct_io: true, .. } => FopenFlags::FOPEN_DIRECT_IO,
            Costs { caches_for, .. } if !caches_for.is_zero() => FopenFlags::empty(),
            _ => FopenFlags::FOPEN_KEEP_CACHE,
        }
    }

    fn in_creation(&self) -> MutexGuard<'_, HashSet<INodeNo>> {
        lock(&self.in_creation)
    }

    /// Ends a change of the hard links of a file.
    fn end_link(&self, nodes: &mut Nodes, ino: INodeNo) {
        self.liar().open(ino);
        if self.liar().lies.links_change_times {
            nodes.modify(ino);
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

fn reply_ended(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
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

impl Filesystem for Requests {
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
        self.reply_entry(attr.map(|attr| self.liar().entry_attr(attr, parent, name)), reply);
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
        if size.is_none() && self.liar().lies.refuses_attributes {
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
                self.liar().entry_attr(attr, parent, name);
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
        let removed = nodes.remove(parent, name);
        reply_ended(removed.map(|ino| self.end_link(&mut nodes, ino)), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.travel();
        reply_ended(self.nodes().remove_dir(parent, name).map(drop), reply);
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
        let unprotects = self.liar().lies.renames_unprotect;
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
        reply_ended(self.nodes().attr(ino).map(drop).ok_or(Errno::ESTALE), reply);
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

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.liar().open(ino);
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.travel();
        self.liar().open(ino);
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
        let read_time = self.liar().lies.read_time;
        std::thread::sleep(read_time);
        let (mut nodes, mut liar) = (self.nodes(), self.liar());
        let is_creator = fh == CREATOR || !self.in_creation().contains(&ino);
        if liar.lies.creator_reads_alone && !is_creator {
            return reply.error(Errno::EACCES);
        }
        liar.change(&mut nodes, ino);
        if liar.read_hangs(offset + u64::from(size)) {
            let mut hanging = lock(&self.hanging);
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
        self.store.writes.fetch_add(1, Ordering::Relaxed);
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
                self.store.served_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
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
        while self.liar().lies.holds_fsync {
            std::thread::sleep(Duration::from_millis(2));
        }
        if self.liar().sync_changes_times(ino) {
            self.nodes().modify(ino);
        }
        reply_ended(self.liar().fsync(), reply);
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
            self.nodes().modify(ino);
        }
        reply_ended(self.liar().close(), reply);
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
