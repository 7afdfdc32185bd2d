//! A file system in this process that lies as it is told: one file to copy from, one to copy to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

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
        let files = Files { made: None, source_reads: 0, source_ended: false };
        let hanging: Hanging = Arc::new(Mutex::new(Some(Vec::new())));
        let liar = Liar { content, lies, files: Mutex::new(files), hanging: hanging.clone() };
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

    /// Where it is mounted. Any other single name can be made there, once.
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
const MADE_INO: INodeNo = INodeNo(3);

struct Liar {
    content: Vec<u8>,
    lies: Lies,
    files: Mutex<Files>,
    hanging: Hanging,
}

struct Files {
    /// The file that was made here, with its name.
    made: Option<(Box<OsStr>, Vec<u8>)>,
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

fn offset_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("files of tests fit into memory")
}

impl Liar {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let files = self.files();
        let (kind, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0),
            SOURCE_INO => {
                (FileType::RegularFile, self.lies.size.unwrap_or(self.content.len() as u64))
            }
            MADE_INO => (FileType::RegularFile, files.made.as_ref()?.1.len() as u64),
            _ => return None,
        };
        let blocks = self.lies.blocks.filter(|_| ino == SOURCE_INO);
        let touched = if self.lies.changes && ino == SOURCE_INO { files.source_reads } else { 0 };
        let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000 + touched);
        Some(FileAttr {
            ino,
            size,
            blocks: blocks.unwrap_or(size.div_ceil(512)),
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

/// Nothing is cached, so that every lie is told anew.
const TTL: Duration = Duration::ZERO;

impl Filesystem for Liar {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let is_made = self.files().made.as_ref().is_some_and(|(made, _)| **made == *name);
        let ino = match name == SOURCE {
            true => SOURCE_INO,
            false if is_made => MADE_INO,
            false => return reply.error(Errno::ENOENT),
        };
        match self.attr(ino) {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
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
        if let (Some(size), Some((_, bytes))) = (size, &mut self.files().made) {
            bytes.resize(offset_of(size), 0);
        }
        match self.attr(ino) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn create(
        &self,
        _: &Request,
        _parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        self.files().made = Some((name.into(), Vec::new()));
        let attr = self.attr(MADE_INO).expect("it was just made");
        let flags = FopenFlags::FOPEN_DIRECT_IO;
        reply.created(&TTL, &attr, Generation(0), FileHandle(0), flags);
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
        if ino == MADE_INO {
            let bytes = files.made.as_ref().map_or(&[][..], |(_, bytes)| bytes);
            return reply.data(part(bytes, offset, offset_of(size.into())));
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
        let mut bytes = part(&self.content, offset, len).to_vec();
        if let Some(wrong) = self.lies.wrong_reread.filter(|_| files.source_ended) {
            flip(&mut bytes, offset, wrong);
        }
        files.source_ended |= bytes.is_empty();
        reply.data(&bytes);
    }

    fn write(
        &self,
        _: &Request,
        _ino: INodeNo,
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
        let mut files = self.files();
        let Some((_, bytes)) = &mut files.made else { return reply.error(Errno::EBADF) };
        let start = offset_of(offset);
        bytes.resize(bytes.len().max(start + len), 0);
        bytes[start..start + len].copy_from_slice(&data[..len]);
        if let Some(wrong) = self.lies.wrong_write {
            flip(&mut bytes[start..start + len], offset, wrong);
        }
        reply.written(u32::try_from(len).expect("no request is as long"));
    }

    fn flush(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        match self.lies.close_error.filter(|_| ino == MADE_INO) {
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

fn part(bytes: &[u8], offset: u64, len: usize) -> &[u8] {
    let start = offset_of(offset).min(bytes.len());
    &bytes[start..bytes.len().min(start.saturating_add(len))]
}
