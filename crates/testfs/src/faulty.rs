//! A FUSE file system of this process that injects faults: wrong sizes, short reads, errors.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::nodes::{Change, Node, Nodes, Owner, TTL, offset_of, reply_attr, reply_entry};
use crate::skip::{skip, test_name};

/// The faults to inject. The default is none.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The size in bytes that stat(2) reports for the source.
    pub size: Option<u64>,
    /// The blocks of 512 bytes that stat(2) reports for it.
    pub blocks: Option<u64>,
    /// SEEK_DATA finds no data, and SEEK_HOLE finds a hole at every offset.
    pub all_hole: bool,
    /// The most bytes that one read returns. Reads bypass the page cache, which would fill in the
    /// rest.
    pub read_bytes_max: Option<usize>,
    /// A read of the source beyond this offset does not return until the file system is unmounted.
    pub read_hangs_at: Option<u64>,
    /// Every read at or beyond this offset fails with this errno.
    pub read_error: Option<(u64, rustix::io::Errno)>,
    /// Every read of the source changes its times.
    pub changes_while_read: bool,
    /// Every write at or beyond this offset fails with this errno.
    pub write_error: Option<(u64, rustix::io::Errno)>,
    /// The destination stores a wrong byte at this offset.
    pub wrong_write: Option<u64>,
    /// The source has a wrong byte at this offset after it was read to its end.
    pub wrong_reread: Option<u64>,
    /// The errno of closing the destination.
    pub close_error: Option<rustix::io::Errno>,
}

/// A mounted file system. Dropping it unmounts it.
#[derive(Debug)]
pub struct FaultyFs {
    session: Option<BackgroundSession>,
    hanging: Hanging,
    dir: tempfile::TempDir,
}

impl FaultyFs {
    /// Mounts one whose file `source` has `content`. `None` after a reported skip, if nothing can
    /// be mounted.
    ///
    /// # Panics
    /// If no directory can be created to mount it on.
    #[must_use]
    pub fn mount(content: Vec<u8>, faults: Faults) -> Option<FaultyFs> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut nodes = Nodes::new(false, false);
        let created = nodes.add(
            INodeNo::ROOT,
            OsStr::new(SOURCE),
            Node::File(content),
            (0o644, Owner::here()),
        );
        assert!(created.is_ok_and(|ino| ino == SOURCE_INO), "it is the first");
        let files = Files { nodes, source_reads: 0, source_ended: false };
        let hanging: Hanging = Arc::new(Mutex::new(Some(Vec::new())));
        let faulty = Faulty { faults, files: Mutex::new(files), hanging: hanging.clone() };
        match fuser::spawn_mount(faulty, dir.path(), &Config::default()) {
            Ok(session) => Some(FaultyFs { session: Some(session), hanging, dir }),
            Err(error) => {
                skip(&test_name(), &format!("no FUSE file system can be mounted: {error}"));
                None
            }
        }
    }

    /// The path of the source.
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

    /// The mount point. Other files can be created there.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for FaultyFs {
    fn drop(&mut self) {
        let hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner).take();
        for reply in hanging.into_iter().flatten() {
            reply.error(Errno::EIO);
        }
        // The directory can be removed only when nothing is mounted on it.
        let unmounted = self.session.take().map(BackgroundSession::umount_and_join);
        if let Some(Err(_)) = unmounted {
            // The kernel may release the last file shortly after its process has ended.
            let detached = Command::new("umount").arg("-l").arg(self.path()).status();
            if !detached.is_ok_and(|status| status.success()) {
                eprintln!("{} stays mounted", self.path().display());
            }
        }
    }
}

const SOURCE: &str = "source";
const SOURCE_INO: INodeNo = INodeNo(2);

struct Faulty {
    faults: Faults,
    files: Mutex<Files>,
    hanging: Hanging,
}

struct Files {
    nodes: Nodes,
    source_reads: u64,
    /// Whether a read returned the end of the source.
    source_ended: bool,
}

/// Reads without a reply. `None` after they were made to fail; later ones fail at once. While a
/// read hangs, the file system cannot be unmounted and the process cannot be killed.
type Hanging = Arc<Mutex<Option<Vec<ReplyData>>>>;

fn error(errno: rustix::io::Errno) -> Errno {
    Errno::from_i32(errno.raw_os_error())
}

impl Faulty {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let files = self.files();
        let real = files.nodes.attr(ino)?;
        if ino != SOURCE_INO {
            return Some(real);
        }
        let size = self.faults.size.unwrap_or(real.size);
        let blocks = self.faults.blocks.unwrap_or(size.div_ceil(512));
        let touched = if self.faults.changes_while_read { files.source_reads } else { 0 };
        let time = real.mtime + Duration::from_secs(touched);
        Some(FileAttr { size, blocks, atime: time, mtime: time, ctime: time, crtime: time, ..real })
    }
}

impl Filesystem for Faulty {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.files().nodes.find(parent, name);
        reply_entry(found.and_then(|ino| self.attr(ino)), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply_attr(self.attr(ino), reply);
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
        if ino != SOURCE_INO {
            self.files().nodes.change(ino, Change { mode, uid, gid, size, atime, mtime });
        }
        reply_attr(self.attr(ino), reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
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
        let attrs = (mode, Owner::of(request));
        let created = self.files().nodes.add(parent, name, Node::File(Vec::new()), attrs);
        let flags = FopenFlags::FOPEN_DIRECT_IO;
        match created.map(|ino| self.attr(ino).expect("it was just created")) {
            Ok(attr) => reply.created(&TTL, &attr, Generation(0), FileHandle(0), flags),
            Err(errno) => reply.error(errno),
        }
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
        let mut files = self.files();
        if ino != SOURCE_INO {
            return match files.nodes.read(ino, offset, offset_of(size.into())) {
                Ok(bytes) => reply.data(bytes),
                Err(errno) => reply.error(errno),
            };
        }
        files.source_reads += 1;
        if self.faults.read_hangs_at.is_some_and(|at| offset + u64::from(size) > at) {
            let mut hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner);
            return match &mut *hanging {
                Some(hanging) => hanging.push(reply),
                None => reply.error(Errno::EIO),
            };
        }
        let mut len = offset_of(size.into()).min(self.faults.read_bytes_max.unwrap_or(usize::MAX));
        if let Some((end, errno)) = self.faults.read_error {
            if offset >= end {
                return reply.error(error(errno));
            }
            len = len.min(offset_of(end - offset));
        }
        let mut bytes = files.nodes.read(ino, offset, len).expect("a file").to_vec();
        if let Some(wrong) = self.faults.wrong_reread.filter(|_| files.source_ended) {
            flip(&mut bytes, offset, wrong);
        }
        files.source_ended |= bytes.is_empty();
        reply.data(&bytes);
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
        let mut len = data.len();
        if let Some((end, errno)) = self.faults.write_error {
            if offset >= end {
                return reply.error(error(errno));
            }
            len = len.min(offset_of(end - offset));
        }
        let mut data = data[..len].to_vec();
        if let Some(wrong) = self.faults.wrong_write {
            flip(&mut data, offset, wrong);
        }
        match self.files().nodes.write(ino, offset, &data) {
            Ok(()) => reply.written(u32::try_from(len).expect("requests are shorter than 4 GiB")),
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
        match self.faults.close_error.filter(|_| ino != SOURCE_INO) {
            Some(errno) => reply.error(error(errno)),
            None => reply.ok(),
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
        const SEEK_HOLE: i32 = 4;
        match self.faults.all_hole {
            true if whence == SEEK_HOLE => reply.offset(offset),
            true => reply.error(Errno::ENXIO),
            false => reply.error(Errno::ENOSYS),
        }
    }
}

/// Flips a bit of the byte at offset `wrong` of a file, if `bytes`, which are at `offset`, include
/// it.
fn flip(bytes: &mut [u8], offset: u64, wrong: u64) {
    let index = wrong.checked_sub(offset).map(offset_of);
    if let Some(byte) = index.and_then(|index| bytes.get_mut(index)) {
        *byte ^= 1;
    }
}
