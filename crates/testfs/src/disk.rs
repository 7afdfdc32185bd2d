//! A disk whose writes and flushes are logged, so that its content after a loss of power at any
//! moment can be made. A FUSE file system of this process serves its one file; a loop device on it is
//! the disk.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::offset::offset_of;
use crate::session::{lock, unmount};

/// The unit of content, and the most that a disk writes as a whole.
pub const BLOCK_BYTES: usize = 4096;

/// The content of a disk. Clones share their blocks.
#[derive(Clone, Debug, Default)]
pub struct Content {
    bytes: u64,
    /// Blocks by number. All others are zero.
    blocks: BTreeMap<u64, Arc<[u8]>>,
}

/// What reached the disk.
#[derive(Clone, Debug)]
pub enum Event {
    /// Bytes were written at an offset.
    Write {
        /// In bytes.
        offset: u64,
        /// What was written.
        data: Arc<[u8]>,
    },
    /// So many bytes from this offset on became zero.
    Zero {
        /// In bytes.
        offset: u64,
        /// In bytes.
        len: u64,
    },
    /// All that was written before is on the medium.
    Flush,
}

/// A served disk. Dropping it frees the loop device and unmounts the file system that serves it.
#[derive(Debug)]
pub struct LoggedDisk {
    device: Option<PathBuf>,
    session: Option<BackgroundSession>,
    state: Arc<Mutex<State>>,
    dir: tempfile::TempDir,
}

#[derive(Debug)]
struct State {
    content: Content,
    log: Vec<Event>,
}

impl Content {
    /// The content of an image.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(image: &Path) -> io::Result<Content> {
        let file = File::open(image)?;
        let bytes = file.metadata()?.len();
        let mut content = Content { bytes, blocks: BTreeMap::new() };
        let mut at = 0;
        // ENXIO: there is no more data.
        while let Ok(data) = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at)) {
            let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(data))?;
            let mut bytes = vec![0; offset_of(hole - data)];
            file.read_exact_at(&mut bytes, data)?;
            content.write(data, &bytes);
            at = hole;
        }
        Ok(content)
    }

    /// Makes an image of it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, image: &Path) -> io::Result<()> {
        let file = File::create(image)?;
        file.set_len(self.bytes)?;
        for (number, block) in &self.blocks {
            file.write_all_at(block, number * BLOCK_BYTES as u64)?;
        }
        Ok(())
    }

    /// Makes what `event` says.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Write { offset, data } => self.write(*offset, data),
            Event::Zero { offset, len } => self.zero(*offset, *len),
            Event::Flush => {}
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let (number, skip) = (at / BLOCK_BYTES as u64, offset_of(at % BLOCK_BYTES as u64));
            let (piece, after) = rest.split_at(rest.len().min(BLOCK_BYTES - skip));
            let block = if piece.len() == BLOCK_BYTES {
                piece.into()
            } else {
                let mut block = self.block(number).to_vec();
                block[skip..skip + piece.len()].copy_from_slice(piece);
                block.into()
            };
            self.blocks.insert(number, block);
            (at, rest) = (at + piece.len() as u64, after);
        }
    }

    fn zero(&mut self, offset: u64, len: u64) {
        let unit = BLOCK_BYTES as u64;
        let (end, mut at) = (offset + len, offset);
        while at < end {
            let next = (at / unit + 1) * unit;
            if at.is_multiple_of(unit) && next <= end {
                self.blocks.remove(&(at / unit));
            } else {
                self.write(at, &vec![0; offset_of(next.min(end) - at)]);
            }
            at = next;
        }
    }

    fn block(&self, number: u64) -> &[u8] {
        const ZEROS: &[u8] = &[0; BLOCK_BYTES];
        self.blocks.get(&number).map_or(ZEROS, |block| block)
    }

    fn bytes_at(&self, offset: u64, len: usize) -> Vec<u8> {
        let len = len.min(offset_of(self.bytes.saturating_sub(offset)));
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = offset + bytes.len() as u64;
            let (number, skip) = (at / BLOCK_BYTES as u64, offset_of(at % BLOCK_BYTES as u64));
            let block = self.block(number);
            bytes.extend_from_slice(&block[skip..BLOCK_BYTES.min(skip + len - bytes.len())]);
        }
        bytes
    }
}

impl Event {
    /// The parts that a disk writes as a whole each, of which some may be lost with the power.
    #[must_use]
    pub fn parts(&self) -> Vec<Event> {
        let Event::Write { offset, data } = self else { return vec![self.clone()] };
        // Requests of a file system begin and end at the bounds of blocks, or are within one.
        let parts = data.chunks(BLOCK_BYTES).enumerate().map(|(index, part)| Event::Write {
            offset: offset + (index * BLOCK_BYTES) as u64,
            data: part.into(),
        });
        parts.collect()
    }
}

impl LoggedDisk {
    /// Serves a disk with `content`. Only root can.
    ///
    /// # Errors
    /// Why no FUSE file system can be mounted, or no loop device set up.
    pub fn serve(content: Content) -> io::Result<LoggedDisk> {
        let dir = tempfile::tempdir()?;
        let state = Arc::new(Mutex::new(State { content, log: Vec::new() }));
        let served = Served { state: state.clone() };
        let session = Some(fuser::spawn_mount(served, dir.path(), &Config::default())?);
        let mut disk = LoggedDisk { device: None, session, state, dir };
        // Without direct I/O the loop device would keep what is written in the page cache of the
        // file, and its order would be that of the writeback.
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--direct-io=on"]).arg(disk.dir.path().join(NAME));
        let output = losetup.env("PATH", sbin_path()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(io::Error::other(format!("losetup: {said}")));
        }
        disk.device = Some(String::from_utf8_lossy(&output.stdout).trim().into());
        Ok(disk)
    }

    /// The block device.
    ///
    /// # Panics
    /// Never: a disk that is served has one.
    #[must_use]
    pub fn device(&self) -> &Path {
        self.device.as_deref().expect("it is set up")
    }

    /// Number of events so far.
    #[must_use]
    pub fn logged(&self) -> usize {
        lock(&self.state).log.len()
    }

    /// All events so far, in order.
    #[must_use]
    pub fn log(&self) -> Vec<Event> {
        lock(&self.state).log.clone()
    }
}

impl Drop for LoggedDisk {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            let detached =
                Command::new("losetup").arg("-d").arg(device).env("PATH", sbin_path()).status();
            if !detached.is_ok_and(|status| status.success()) {
                eprintln!("{} stays in use", device.display());
            }
        }
        // The device lets go of the file when nothing has the device open any more.
        unmount(self.session.take(), self.dir.path());
    }
}

/// On Debian losetup and mkfs are in directories that only root's PATH has.
fn sbin_path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The name of the file.
const NAME: &str = "disk";
const INO: INodeNo = INodeNo(2);

/// Nothing but this process changes the file, and it never changes its attributes.
const TTL: Duration = Duration::from_hours(1);

struct Served {
    state: Arc<Mutex<State>>,
}

impl Served {
    fn attr(&self, ino: INodeNo) -> FileAttr {
        let is_disk = ino == INO;
        let size = if is_disk { lock(&self.state).content.bytes } else { 0 };
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: if is_disk { FileType::RegularFile } else { FileType::Directory },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&TTL, &self.attr(INO), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attr(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        reply.data(&lock(&self.state).content.bytes_at(offset, offset_of(size.into())));
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
        self.happened(Event::Write { offset, data: data.into() });
        reply.written(u32::try_from(data.len()).expect("requests are shorter than 4 GiB"));
    }

    /// Sent by the loop device for a discard and for a request to write zeros.
    fn fallocate(
        &self,
        _: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const PUNCH_HOLE: i32 = 2;
        const ZERO_RANGE: i32 = 16;
        if mode & (PUNCH_HOLE | ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        self.happened(Event::Zero { offset, len: length });
        reply.ok();
    }

    /// Sent by the loop device for a flush of the disk.
    fn fsync(
        &self,
        _: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.happened(Event::Flush);
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
}

impl Served {
    fn happened(&self, event: Event) {
        let mut state = lock(&self.state);
        state.content.apply(&event);
        state.log.push(event);
    }
}
