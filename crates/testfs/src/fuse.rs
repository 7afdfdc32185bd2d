//! A file system in this process that lies as it is told: one file to copy from, one to copy to.

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

use crate::nodes::{Change, Node, Nodes, Owner, TTL, introduce, offset_of, tell};
use crate::skip::{skip, test_name};

/// What the file system says of its files, and what it does with them. The default is the truth.
#[derive(Clone, Debug, Default)]
pub struct Lies {
    /// The length in bytes that the source claims to have.
    pub size: Option<u64>,
    /// The blocks of 512 bytes that it claims to have.
    pub blocks: Option<u64>,
    /// SEEK_DATA finds nothing, SEEK_HOLE finds a hole everywhere.
    pub all_hole: bool,
    /// The most bytes that one read returns; past the page cache, which would fill up the rest.
    pub read_bytes_max: Option<usize>,
    /// How long each read of the source takes.
    pub read_takes: Duration,
    /// A read of the source past this offset does not return before the file system is unmounted.
    pub read_hangs_at: Option<u64>,
    /// Every read past this offset fails so.
    pub read_error: Option<(u64, rustix::io::Errno)>,
    /// The source is touched by every read of it.
    pub changes: bool,
    /// Every write past this offset fails so.
    pub write_error: Option<(u64, rustix::io::Errno)>,
    /// The byte that comes to the destination at this offset is another than was written.
    pub wrong_write: Option<u64>,
    /// The source has another byte at this offset once it was read to its end.
    pub wrong_reread: Option<u64>,
    /// What closing the destination returns.
    pub close_error: Option<rustix::io::Errno>,
}

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct LyingFs {
    session: Option<BackgroundSession>,
    hanging: Hanging,
    dir: tempfile::TempDir,
}

impl LyingFs {
    /// Mounts one whose source, of the name `source`, has `content`; `None` after a skip that said
    /// so aloud, where that is impossible.
    ///
    /// # Panics
    /// When no directory can be made to mount it on.
    #[must_use]
    pub fn mount(content: Vec<u8>, lies: Lies) -> Option<LyingFs> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut nodes = Nodes::new();
        let made = nodes.add(
            INodeNo::ROOT,
            OsStr::new(SOURCE),
            Node::File(content),
            (0o644, Owner::here()),
        );
        assert!(made.is_ok_and(|ino| ino == SOURCE_INO), "it is the first");
        let files = Files { nodes, source_reads: 0, source_ended: false };
        let hanging: Hanging = Arc::new(Mutex::new(Some(Vec::new())));
        let liar = Liar { lies, files: Mutex::new(files), hanging: hanging.clone() };
        match fuser::spawn_mount(liar, dir.path(), &Config::default()) {
            Ok(session) => Some(LyingFs { session: Some(session), hanging, dir }),
            Err(error) => {
                skip(&test_name(), &format!("no FUSE file system can be mounted: {error}"));
                None
            }
        }
    }

    /// The path of the file to copy from.
    #[must_use]
    pub fn source(&self) -> PathBuf {
        self.path().join(SOURCE)
    }

    /// Where it is mounted. Any other names can be made there.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for LyingFs {
    fn drop(&mut self) {
        let hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner).take();
        for reply in hanging.into_iter().flatten() {
            reply.error(Errno::EIO);
        }
        // The directory can only be removed when nothing is mounted on it.
        let unmounted = self.session.take().map(BackgroundSession::umount_and_join);
        if let Some(Err(_)) = unmounted {
            // The kernel may let go of the last file a moment after its process has ended.
            let detached = Command::new("umount").arg("-l").arg(self.path()).status();
            if !detached.is_ok_and(|status| status.success()) {
                eprintln!("{} stays mounted", self.path().display());
            }
        }
    }
}

const SOURCE: &str = "source";
const SOURCE_INO: INodeNo = INodeNo(2);

struct Liar {
    lies: Lies,
    files: Mutex<Files>,
    hanging: Hanging,
}

struct Files {
    nodes: Nodes,
    source_reads: u64,
    /// A read has found the source's end.
    source_ended: bool,
}

/// Reads that are not answered. `None` once all are to fail, and the later ones at once: nobody can
/// unmount a file system, or kill a process, while a read hangs in it.
type Hanging = Arc<Mutex<Option<Vec<ReplyData>>>>;

fn error(errno: rustix::io::Errno) -> Errno {
    Errno::from_i32(errno.raw_os_error())
}

impl Liar {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let files = self.files();
        let truth = files.nodes.attr(ino)?;
        if ino != SOURCE_INO {
            return Some(truth);
        }
        let size = self.lies.size.unwrap_or(truth.size);
        let blocks = self.lies.blocks.unwrap_or(size.div_ceil(512));
        let touched = if self.lies.changes { files.source_reads } else { 0 };
        let time = truth.mtime + Duration::from_secs(touched);
        Some(FileAttr {
            size,
            blocks,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            ..truth
        })
    }
}

impl Filesystem for Liar {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.files().nodes.find(parent, name);
        introduce(found.and_then(|ino| self.attr(ino)), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        tell(self.attr(ino), reply);
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
        tell(self.attr(ino), reply);
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
        let made = (mode, Owner::of(request));
        let made = self.files().nodes.add(parent, name, Node::File(Vec::new()), made);
        let flags = FopenFlags::FOPEN_DIRECT_IO;
        match made.map(|ino| self.attr(ino).expect("it was just made")) {
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
        if self.lies.read_hangs_at.is_some_and(|at| offset + u64::from(size) > at) {
            let mut hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner);
            return match &mut *hanging {
                Some(hanging) => hanging.push(reply),
                None => reply.error(Errno::EIO),
            };
        }
        std::thread::sleep(self.lies.read_takes);
        let mut len = offset_of(size.into()).min(self.lies.read_bytes_max.unwrap_or(usize::MAX));
        if let Some((end, errno)) = self.lies.read_error {
            if offset >= end {
                return reply.error(error(errno));
            }
            len = len.min(offset_of(end - offset));
        }
        let mut bytes = files.nodes.read(ino, offset, len).expect("a file").to_vec();
        if let Some(wrong) = self.lies.wrong_reread.filter(|_| files.source_ended) {
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
        if let Some((end, errno)) = self.lies.write_error {
            if offset >= end {
                return reply.error(error(errno));
            }
            len = len.min(offset_of(end - offset));
        }
        let mut data = data[..len].to_vec();
        if let Some(wrong) = self.lies.wrong_write {
            flip(&mut data, offset, wrong);
        }
        match self.files().nodes.write(ino, offset, &data) {
            Ok(()) => reply.written(u32::try_from(len).expect("no request is as long")),
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
        match self.lies.close_error.filter(|_| ino != SOURCE_INO) {
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
        match self.lies.all_hole {
            true if whence == SEEK_HOLE => reply.offset(offset),
            true => reply.error(Errno::ENXIO),
            false => reply.error(Errno::ENOSYS),
        }
    }
}

/// Changes the byte at the offset `wrong` of a file, if it is among `bytes`, which are at `offset`.
fn flip(bytes: &mut [u8], offset: u64, wrong: u64) {
    let index = wrong.checked_sub(offset).map(offset_of);
    if let Some(byte) = index.and_then(|index| bytes.get_mut(index)) {
        *byte ^= 1;
    }
}
