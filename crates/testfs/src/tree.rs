//! Reads a tree with every attribute that a copy may keep, and compares two trees.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

/// The bytes of content of one hash.
const BLOCK_BYTES: usize = 64 << 10;

/// Levels of a tree that [`Tree::read_permitted`] reads.
const LEVELS: usize = 64;

/// What is compared, besides type, names, content, symlink targets and device numbers.
#[derive(Clone, Copy, Debug)]
pub struct Aspects {
    /// Permission bits with setuid, setgid and sticky, except those of symlinks.
    pub modes: bool,
    /// User and group.
    pub owners: bool,
    /// Modification times in nanoseconds.
    pub mtimes: bool,
    /// Which names are hard links to one file.
    pub hard_links: bool,
    /// Extended attributes, ACLs among them.
    pub xattrs: bool,
    /// Times of the last access, numbers of links, and which ranges of files are data: what
    /// [`Tree::read_permitted`] reads.
    pub usage: bool,
    /// Inodes, and times of the last change, which move with every other attribute.
    pub inodes: bool,
}

impl Aspects {
    /// Only what is always compared.
    pub const CONTENT: Aspects = Aspects {
        modes: false,
        owners: false,
        mtimes: false,
        hard_links: false,
        xattrs: false,
        usage: false,
        inodes: false,
    };
    /// All that `cp -a` keeps.
    pub const ALL: Aspects = Aspects {
        modes: true,
        owners: true,
        mtimes: true,
        hard_links: true,
        xattrs: true,
        ..Aspects::CONTENT
    };
}

/// A file or a tree at the time of reading.
#[derive(Clone, Debug)]
pub struct Tree {
    /// By path below the root; the root itself is the empty path.
    pub entries: BTreeMap<PathBuf, Entry>,
}

/// What one name of a tree stands for.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its type.
    pub kind: FileType,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u32,
    uid: u32,
    gid: u32,
    /// Modification time.
    pub mtime_ns: i128,
    /// Time of the last access before it was read.
    pub atime_ns: i128,
    ctime_ns: i128,
    rdev: u64,
    /// Device and inode, to recognise hard links.
    pub(crate) identity: (u64, u64),
    links: i128,
    /// Its length.
    pub bytes: u64,
    /// A hash per block of a regular file.
    content: Vec<blake3::Hash>,
    /// The ranges of a regular file that are no holes, as [`Tree::read_permitted`] finds them.
    pub data: Vec<(u64, u64)>,
    pub(crate) target: Vec<u8>,
    /// Extended attributes by name.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The differences between the trees at `left` and `right`, one line each.
///
/// # Errors
/// If one of them cannot be read.
pub fn tree_differences(left: &Path, right: &Path, aspects: Aspects) -> io::Result<Vec<String>> {
    Ok(Tree::read(left)?.differences(&Tree::read(right)?, aspects))
}

/// Fails the test `what` unless the trees at `left` and `right` are equal.
///
/// # Panics
/// If they differ, or one of them cannot be read.
#[track_caller]
pub fn assert_equal_trees(left: &Path, right: &Path, aspects: Aspects, what: impl fmt::Display) {
    let found = tree_differences(left, right, aspects).expect("both trees can be read");
    assert!(found.is_empty(), "{what}: {found:#?}");
}

impl Tree {
    /// Reads the tree at `root`. A symlink there is not followed. Paths below it may exceed
    /// PATH_MAX.
    ///
    /// # Errors
    /// The first error of any call.
    pub fn read(root: &Path) -> io::Result<Tree> {
        Reader::default().read(root)
    }

    /// Reads 64 levels of the tree at `root`, with which ranges of files are data. Contents and attributes
    /// that the user may not read are left out.
    ///
    /// # Errors
    /// The first error of any call, except that reading is not permitted.
    pub fn read_permitted(root: &Path) -> io::Result<Tree> {
        Reader { only_permitted: true, ..Reader::default() }.read(root)
    }

    /// The differences between this tree and `right`, one line each. Empty if they are equal.
    #[must_use]
    pub fn differences(&self, right: &Tree, aspects: Aspects) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, entry) in &self.entries {
            match right.entries.get(path) {
                Some(other) => entry.differences(other, aspects, |what| {
                    lines.push(format!("{}: {what}", shown(path)));
                }),
                None => lines.push(format!("{}: only left", shown(path))),
            }
        }
        for path in right.entries.keys().filter(|path| !self.entries.contains_key(*path)) {
            lines.push(format!("{}: only right", shown(path)));
        }
        if aspects.hard_links {
            let (ours, theirs) = (self.first_links(), right.first_links());
            for (path, first) in &ours {
                if let Some(other) = theirs.get(path).filter(|other| *other != first) {
                    let (first, other) = (shown(first), shown(other));
                    lines.push(format!("{}: the file of {first}, of {other}", shown(path)));
                }
            }
        }
        lines
    }

    /// The paths of all entries below the root, which is the empty path, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.entries.keys().map(PathBuf::as_path)
    }

    /// Whether there is an entry at `path`.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    /// Whether there is a regular file at `path`.
    #[must_use]
    pub fn is_file(&self, path: &Path) -> bool {
        self.entries.get(path).is_some_and(|entry| entry.kind == FileType::RegularFile)
    }

    /// The differences between the entries that this tree and `right` have at `path`. Empty if they are
    /// equal, and if one of them is missing. Hard links are not compared.
    #[must_use]
    pub fn differences_at(&self, right: &Tree, path: &Path, aspects: Aspects) -> Vec<String> {
        let mut found = Vec::new();
        if let (Some(entry), Some(other)) = (self.entries.get(path), right.entries.get(path)) {
            entry.differences(other, aspects, |what| found.push(what));
        }
        found
    }

    /// For each name of a file other than a directory, the first name of the same file.
    fn first_links(&self) -> BTreeMap<&Path, &Path> {
        let mut first: BTreeMap<(u64, u64), &Path> = BTreeMap::new();
        self.entries
            .iter()
            .filter(|(_, entry)| entry.kind != FileType::Directory)
            .map(|(path, entry)| {
                (path.as_path(), *first.entry(entry.identity).or_insert(path.as_path()))
            })
            .collect()
    }
}

/// Reads one tree.
#[derive(Default)]
struct Reader {
    /// Leaves out what the user may not read.
    only_permitted: bool,
    entries: BTreeMap<PathBuf, Entry>,
    /// To read a file by its first name changes the time that it shows under the next.
    atimes_ns: HashMap<(u64, u64), i128>,
}

impl Reader {
    fn read(mut self, root: &Path) -> io::Result<Tree> {
        self.add(rustix::fs::CWD, root.as_os_str(), PathBuf::new())?;
        Ok(Tree { entries: self.entries })
    }

    fn add(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: PathBuf) -> io::Result<()> {
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mut entry = Entry::new(&stat);
        entry.atime_ns = *self.atimes_ns.entry(entry.identity).or_insert(entry.atime_ns);
        entry.xattrs = self.xattrs(dir, name)?;
        match entry.kind {
            FileType::RegularFile => {
                if let Some(file) = self.open(dir, name, OFlags::empty())? {
                    entry.content = block_hashes(&file)?;
                    entry.data = if self.only_permitted { data_ranges(&file)? } else { Vec::new() };
                }
            }
            FileType::Symlink => {
                entry.target = rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes();
            }
            FileType::Directory if self.enters(&path) => {
                if let Some(opened) = self.open(dir, name, OFlags::DIRECTORY)? {
                    for child in Dir::read_from(&opened)? {
                        let child = child?;
                        let name = OsStr::from_bytes(child.file_name().to_bytes());
                        if name != "." && name != ".." {
                            self.add(opened.as_fd(), name, path.join(name))?;
                        }
                    }
                }
            }
            _ => {}
        }
        self.entries.insert(path, entry);
        Ok(())
    }

    /// A copy that comes upon itself goes on until names are too long.
    fn enters(&self, path: &Path) -> bool {
        !self.only_permitted || path.components().count() < LEVELS
    }

    /// `None` for what the user may not read, if that is left out.
    fn open(
        &self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        flags: OFlags,
    ) -> rustix::io::Result<Option<OwnedFd>> {
        let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(dir, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) if self.only_permitted => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn xattrs(
        &self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
    ) -> rustix::io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        // No call takes a directory descriptor and a name. A path in /proc combines the two.
        let path = if dir.as_raw_fd() == rustix::fs::CWD.as_raw_fd() {
            PathBuf::from(name)
        } else {
            Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name)
        };
        let mut names = vec![0; 64 << 10];
        let len = match rustix::fs::llistxattr(&path, &mut names) {
            // EIO is the answer of rclone's mount to what it does not implement.
            Err(Errno::OPNOTSUPP | Errno::IO) => 0,
            len => len?,
        };
        let mut found = BTreeMap::new();
        // NFS 4 restates owner and mode there.
        let is_stored = |name: &&[u8]| !name.is_empty() && *name != b"system.nfs4_acl";
        for name in names[..len].split(|&byte| byte == 0).filter(is_stored) {
            let mut value = vec![0; 64 << 10];
            let len = match rustix::fs::lgetxattr(&path, OsStr::from_bytes(name), &mut value) {
                Err(Errno::ACCESS) if self.only_permitted => 0,
                len => len?,
            };
            value.truncate(len);
            found.insert(name.to_vec(), value);
        }
        Ok(found)
    }
}

impl Entry {
    /// Whether it has this content.
    pub(crate) fn holds(&self, content: &[u8]) -> bool {
        let hashes = content.chunks(BLOCK_BYTES).map(blake3::hash);
        self.kind == FileType::RegularFile && self.content.iter().copied().eq(hashes)
    }

    fn new(stat: &Stat) -> Entry {
        Entry {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            atime_ns: nanoseconds(stat.st_atime, stat.st_atime_nsec),
            ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            rdev: stat.st_rdev,
            identity: (stat.st_dev, stat.st_ino),
            links: stat.st_nlink.into(),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            content: Vec::new(),
            data: Vec::new(),
            target: Vec::new(),
            xattrs: BTreeMap::new(),
        }
    }

    fn differences(&self, other: &Entry, aspects: Aspects, mut found: impl FnMut(String)) {
        if self.kind != other.kind {
            return found(format!("type {:?}, {:?}", self.kind, other.kind));
        }
        if self.kind == FileType::RegularFile && self.bytes != other.bytes {
            found(format!("{} bytes, {}", self.bytes, other.bytes));
        }
        let unequal = self.content.iter().zip(&other.content).position(|(a, b)| a != b);
        if let Some(block) = unequal {
            let (from, to) = (block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
            found(format!("content differs first between bytes {from} and {to}"));
        }
        if self.target != other.target {
            let (target, other) = (self.target.escape_ascii(), other.target.escape_ascii());
            found(format!("points to '{target}', to '{other}'"));
        }
        let is_device = matches!(self.kind, FileType::BlockDevice | FileType::CharacterDevice);
        if is_device && self.rdev != other.rdev {
            found(format!("device {:#x}, {:#x}", self.rdev, other.rdev));
        }
        // A symlink's own mode means nothing and cannot be set.
        if aspects.modes && self.kind != FileType::Symlink && self.mode != other.mode {
            found(format!("mode {:04o}, {:04o}", self.mode, other.mode));
        }
        if aspects.owners && (self.uid, self.gid) != (other.uid, other.gid) {
            found(format!("owner {}:{}, {}:{}", self.uid, self.gid, other.uid, other.gid));
        }
        if aspects.mtimes && self.mtime_ns != other.mtime_ns {
            found(format!("mtime {} ns, {} ns", self.mtime_ns, other.mtime_ns));
        }
        if aspects.xattrs && self.xattrs != other.xattrs {
            found(format!("xattrs {}, {}", shown_xattrs(self), shown_xattrs(other)));
        }
        let usage = |entry: &Entry| (entry.atime_ns, entry.links, entry.data.clone());
        if aspects.usage && usage(self) != usage(other) {
            found(format!("atime, links, data: {:?}, {:?}", usage(self), usage(other)));
        }
        let inode = |entry: &Entry| (entry.identity, entry.ctime_ns);
        if aspects.inodes && inode(self) != inode(other) {
            found(format!("inode, ctime: {:?}, {:?}", inode(self), inode(other)));
        }
    }
}

fn block_hashes(file: &OwnedFd) -> rustix::io::Result<Vec<blake3::Hash>> {
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut hashes = Vec::new();
    let mut at = 0;
    loop {
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match rustix::io::pread(file, &mut buffer[filled..], at + filled as u64)? {
                0 => break,
                got => filled += got,
            }
        }
        if filled == 0 {
            return Ok(hashes);
        }
        hashes.push(blake3::hash(&buffer[..filled]));
        at += filled as u64;
    }
}

/// Where the data of a file is, by SEEK_DATA and SEEK_HOLE.
fn data_ranges(file: &OwnedFd) -> rustix::io::Result<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    loop {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => return Ok(ranges),
            start => start?,
        };
        at = rustix::fs::seek(file, SeekFrom::Hole(start))?;
        ranges.push((start, at));
    }
}

fn nanoseconds(seconds: i64, nanoseconds: impl Into<i128>) -> i128 {
    i128::from(seconds) * 1_000_000_000 + nanoseconds.into()
}

fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return ".".to_owned();
    }
    path.as_os_str().as_bytes().escape_ascii().to_string()
}

fn shown_xattrs(entry: &Entry) -> String {
    let items: Vec<String> = entry
        .xattrs
        .iter()
        .map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii()))
        .collect();
    format!("[{}]", items.join(" "))
}
