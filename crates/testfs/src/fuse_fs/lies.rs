//! What a file system says that is not so, and how its requests fail.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo};

use super::nodes::Nodes;
use crate::offset::offset_of;

/// The lies and failures. The default is none.
#[derive(Clone, Debug, Default)]
pub struct Lies {
    /// How far the size that stat(2) reports for a file is from its own.
    pub size: Option<WrongSize>,
    /// The size that stat(2) reports for a file until one is read.
    pub size_until_read: Option<u64>,
    /// SEEK_DATA finds no data, and SEEK_HOLE finds a hole at every offset.
    pub all_hole: bool,
    /// stat(2) reports no blocks.
    pub no_blocks: bool,
    /// Directories are listed as files and files as directories.
    pub wrong_types: bool,
    /// Each stat(2) of an open file reports another inode number.
    pub changing_inodes: bool,
    /// What is opened or linked to has another inode number from then on, as a file of overlayfs that is copied up.
    pub opened_inodes: bool,
    /// A file has another inode number for each spelling of its path, as the client of SMB gives with `noserverino`.
    /// That of the last look counts for open files, too.
    pub spelled_inodes: bool,
    /// Each stat(2) of anything reports the same inode number.
    pub one_inode: bool,
    /// Each name is listed twice.
    pub names_twice: bool,
    /// The modification time goes backward by a second with each look at it.
    pub time_backward: bool,
    /// Times are cut to multiples of this.
    pub time_resolution: Option<Duration>,
    /// The time of a change of the inode is reported as that of the last modification.
    pub ctime_is_mtime: bool,
    /// Every file has this owner and these permissions, whatever is set.
    pub owner_and_mode: Option<(u32, u16)>,
    /// The time of a read.
    pub read_time: Duration,
    /// The most bytes that a read returns.
    pub read_bytes_max: Option<usize>,
    /// Every read at or beyond this offset fails with EIO.
    pub read_error_at: Option<u64>,
    /// A read beyond this offset does not return until the file system is unmounted.
    pub read_hangs_at: Option<u64>,
    /// Every read changes the times of all files by a second.
    pub reads_change_times: bool,
    /// At the read of this number the file that is read changes.
    pub changes_at_read: Option<(u64, LengthChange)>,
    /// The most bytes that a write takes.
    pub write_bytes_max: Option<usize>,
    /// The write of this number, and all later ones, fail with ENOSPC, whatever statfs(2) reports.
    pub full_at_write: Option<u64>,
    /// Every write at or beyond this offset fails with this errno.
    pub write_error: Option<(u64, rustix::io::Errno)>,
    /// A wrong byte is stored at this offset.
    pub wrong_byte_at: Option<u64>,
    /// A wrong byte is read at this offset after a file was read to its end.
    pub wrong_reread_at: Option<u64>,
    /// fsync(2) fails with EIO.
    pub fsync_error: bool,
    /// fsync(2) does not return as long as this is so.
    pub holds_fsync: bool,
    /// close(2) fails with this errno.
    pub close_error: Option<rustix::io::Errno>,
    /// Owner, mode and times cannot be set: EPERM.
    pub refuses_attributes: bool,
    /// A file that gets or loses a hard link is modified now, as by a client of NFS that keeps times
    /// itself.
    pub links_change_times: bool,
    /// A file is modified now when it is synced, as by a server of SMB, and at each close after that: s3fs forgets
    /// times that are set in between.
    pub syncs_change_times: bool,
    /// The owner of a file may write to it after a rename, as on a server of SMB.
    pub renames_unprotect: bool,
    /// Of a new file only the descriptor that created it can read, until it is closed: EACCES. So it
    /// is on SMB, where the lock on a file is mandatory.
    pub creator_reads_alone: bool,
}

/// How the reported size of a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongSize {
    /// This is the reported size, and the reported blocks are as many as it needs.
    Is(u64),
    /// So many bytes too few, and at least 0.
    Short(u64),
    /// So many bytes too many.
    Long(u64),
}

/// How the length of a file changes while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthChange {
    /// To half of it.
    Truncated,
    /// Appended to.
    Grown,
}

/// Lies, and how often it did.
#[derive(Debug, Default)]
pub(crate) struct Liar {
    pub(crate) lies: Lies,
    looks: u64,
    reads: u64,
    writes: u64,
    /// The number of capital letters in the name by which each file was looked at last.
    capitals: HashMap<INodeNo, u64>,
    /// What was opened or linked to.
    opened: HashSet<INodeNo>,
    /// Whether a read returned the end of a file.
    has_ended: bool,
    /// Files whose times a sync has changed.
    synced: HashSet<INodeNo>,
}

impl Liar {
    pub(crate) fn new(lies: Lies) -> Liar {
        Liar { lies, ..Liar::default() }
    }

    /// The attributes that a lookup of `name` reports. The kernel knows the file by this inode number.
    pub(crate) fn entry_attr(&mut self, attr: FileAttr, parent: INodeNo, name: &OsStr) -> FileAttr {
        let capitals = name.as_bytes().iter().filter(|byte| byte.is_ascii_uppercase()).count();
        let above = self.capitals.get(&parent).copied().unwrap_or_default();
        self.capitals.insert(attr.ino, above + capitals as u64);
        FileAttr { ino: attr.ino, ..self.attr(attr) }
    }

    pub(crate) fn open(&mut self, ino: INodeNo) {
        self.opened.insert(ino);
    }

    /// The attributes that stat(2) reports.
    pub(crate) fn attr(&mut self, mut attr: FileAttr) -> FileAttr {
        self.looks += 1;
        if attr.kind == FileType::RegularFile {
            match self.lies.size {
                None => {}
                Some(WrongSize::Is(bytes)) => {
                    (attr.size, attr.blocks) = (bytes, bytes.div_ceil(512));
                }
                Some(WrongSize::Short(bytes)) => attr.size = attr.size.saturating_sub(bytes),
                Some(WrongSize::Long(bytes)) => attr.size += bytes,
            }
            if let Some(bytes) = self.lies.size_until_read.filter(|_| self.reads == 0) {
                (attr.size, attr.blocks) = (bytes, bytes.div_ceil(512));
            }
        }
        if self.lies.no_blocks {
            attr.blocks = 0;
        }
        if self.lies.changing_inodes && attr.ino != INodeNo::ROOT {
            attr.ino = INodeNo(attr.ino.0 + 1_000_000 * self.looks);
        }
        if self.lies.opened_inodes && self.opened.contains(&attr.ino) {
            attr.ino = INodeNo(attr.ino.0 + 1_000_000);
        }
        if self.lies.spelled_inodes {
            let capitals = self.capitals.get(&attr.ino).copied().unwrap_or_default();
            attr.ino = INodeNo(attr.ino.0 + 1_000_000 * capitals);
        }
        if self.lies.one_inode {
            attr.ino = INodeNo::ROOT;
        }
        if self.lies.reads_change_times {
            attr.mtime += Duration::from_secs(self.reads);
            attr.ctime += Duration::from_secs(self.reads);
        }
        if self.lies.time_backward {
            attr.mtime -= Duration::from_secs(self.looks);
            attr.ctime -= Duration::from_secs(self.looks);
        }
        if let Some(resolution) = self.lies.time_resolution {
            for time in [&mut attr.atime, &mut attr.mtime, &mut attr.ctime] {
                let since = time.duration_since(UNIX_EPOCH).expect("tests set later times");
                let rest = since.as_nanos() % resolution.as_nanos();
                *time -= Duration::from_nanos(u64::try_from(rest).expect("less than a resolution"));
            }
        }
        if self.lies.ctime_is_mtime {
            attr.ctime = attr.mtime;
        }
        if let Some((uid, perm)) = self.lies.owner_and_mode
            && attr.kind == FileType::RegularFile
        {
            (attr.uid, attr.perm) = (uid, perm);
        }
        attr
    }

    /// How many bytes a read of `len` bytes at `offset` may return.
    pub(crate) fn read_len(&self, offset: u64, len: usize) -> Result<usize, Errno> {
        let len = len.min(self.lies.read_bytes_max.unwrap_or(usize::MAX));
        match self.lies.read_error_at {
            Some(end) if offset >= end => Err(Errno::EIO),
            Some(end) => Ok(len.min(offset_of(end - offset))),
            None => Ok(len),
        }
    }

    /// Changes the file that is read, if it is time.
    pub(crate) fn change(&mut self, nodes: &mut Nodes, ino: INodeNo) {
        self.reads += 1;
        let Some((_, change)) = self.lies.changes_at_read.filter(|(at, _)| *at == self.reads)
        else {
            return;
        };
        let len = nodes.attr(ino).map_or(0, |attr| attr.size);
        let len = match change {
            LengthChange::Truncated => len / 2,
            LengthChange::Grown => len + 5000,
        };
        nodes.change(ino, super::nodes::Change { size: Some(len), ..Default::default() });
    }

    pub(crate) fn read_hangs(&self, end: u64) -> bool {
        self.lies.read_hangs_at.is_some_and(|at| end > at)
    }

    /// What a read returns instead of these bytes of a file.
    pub(crate) fn read_bytes<'d>(&mut self, offset: u64, bytes: &'d [u8]) -> Cow<'d, [u8]> {
        let wrong = self.lies.wrong_reread_at.filter(|_| self.has_ended);
        self.has_ended |= bytes.is_empty();
        with_wrong_byte(offset, bytes, wrong)
    }

    /// What is stored of the data of a write.
    pub(crate) fn written<'d>(
        &mut self,
        offset: u64,
        data: &'d [u8],
    ) -> Result<Cow<'d, [u8]>, Errno> {
        self.writes += 1;
        if self.lies.full_at_write.is_some_and(|at| self.writes >= at) {
            return Err(Errno::ENOSPC);
        }
        let mut len = data.len().min(self.lies.write_bytes_max.unwrap_or(usize::MAX));
        if let Some((end, errno)) = self.lies.write_error {
            if offset >= end {
                return Err(error(errno));
            }
            len = len.min(offset_of(end - offset));
        }
        Ok(with_wrong_byte(offset, &data[..len], self.lies.wrong_byte_at))
    }

    pub(crate) fn fsync(&self) -> Result<(), Errno> {
        if self.lies.fsync_error { Err(Errno::EIO) } else { Ok(()) }
    }

    pub(crate) fn close(&self) -> Result<(), Errno> {
        self.lies.close_error.map_or(Ok(()), |errno| Err(error(errno)))
    }

    /// Whether a sync of the file changes its times.
    pub(crate) fn sync_changes_times(&mut self, ino: INodeNo) -> bool {
        if self.lies.syncs_change_times {
            self.synced.insert(ino);
        }
        self.lies.syncs_change_times
    }

    /// Whether a close of the file changes its times.
    pub(crate) fn close_changes_times(&self, ino: INodeNo) -> bool {
        self.synced.contains(&ino)
    }

    pub(crate) fn seek(&self, offset: i64, whence: i32) -> Result<i64, Errno> {
        const SEEK_HOLE: i32 = 4;
        match self.lies.all_hole {
            true if whence == SEEK_HOLE => Ok(offset),
            true => Err(Errno::ENXIO),
            false => Err(Errno::ENOSYS),
        }
    }

    /// How often a directory lists each name.
    pub(crate) fn times_named(&self) -> usize {
        if self.lies.names_twice { 2 } else { 1 }
    }

    /// The type that a directory lists for a name.
    pub(crate) fn kind(&self, kind: FileType) -> FileType {
        match (self.lies.wrong_types, kind) {
            (true, FileType::Directory) => FileType::RegularFile,
            (true, _) => FileType::Directory,
            (false, kind) => kind,
        }
    }
}

/// A bit of the byte at offset `wrong` of a file is another one, if `bytes`, which are at `offset`,
/// include it.
fn with_wrong_byte(offset: u64, bytes: &[u8], wrong: Option<u64>) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(bytes);
    let index = wrong.and_then(|at| at.checked_sub(offset)).map(offset_of);
    if let Some(index) = index.filter(|index| *index < bytes.len()) {
        bytes.to_mut()[index] ^= 1;
    }
    bytes
}

fn error(errno: rustix::io::Errno) -> Errno {
    Errno::from_i32(errno.raw_os_error())
}
