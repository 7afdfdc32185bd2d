//! A tree as it can be compared: everything of it that a copier may get wrong.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Times from here on are taken for the time of the run: the fixtures' lie before.
const RECENT_SECONDS: i64 = 1_600_000_000;

/// Levels of a tree that are looked at. No case makes as many, but a cp that copies what it has just
/// made goes on until the names are too long.
const LEVELS: usize = 64;

/// Every entry below a directory, the directory itself being the empty name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(pub(crate) BTreeMap<PathBuf, Entry>);

/// All that is compared of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) what: What,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) modified: Time,
    pub(crate) accessed: Time,
    /// The first name in the tree of the same inode.
    pub(crate) same_as: PathBuf,
    pub(crate) links: u64,
    pub(crate) xattrs: BTreeMap<OsString, Vec<u8>>,
}

/// The kind of an entry, with what it holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// The bytes of the file (`None` where they cannot be read), and the stretches of them that are
    /// no holes.
    File(Option<Vec<u8>>, Vec<(u64, u64)>),
    Directory,
    Symlink(PathBuf),
    Fifo,
    Device(u64),
    Other,
}

/// Seconds and nanoseconds, or the time of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Old(i64, i64),
    Recent,
}

impl Snapshot {
    /// The tree below `root`.
    pub(crate) fn of(root: &Path) -> Snapshot {
        let mut entries = BTreeMap::new();
        add(root, Path::new(""), &mut entries, &mut HashMap::new());
        Snapshot(entries)
    }

    /// What differs, a line an entry.
    pub(crate) fn differences(&self, other: &Snapshot) -> Vec<String> {
        let names: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let both = names.into_iter().map(|name| (name, self.0.get(name), other.0.get(name)));
        let unequal = both.filter(|(_, one, two)| one != two);
        unequal.map(|(name, one, two)| format!("{name:?}: {one:?}\n  / {two:?}")).collect()
    }
}

impl What {
    pub(crate) fn is_symlink(&self) -> bool {
        matches!(self, What::Symlink(_))
    }

    /// A symbolic link, an empty file or a directory.
    pub(crate) fn may_stay_unread(&self) -> bool {
        match self {
            What::File(bytes, _) => bytes.as_ref().is_some_and(Vec::is_empty),
            kind => kind.is_symlink() || *kind == What::Directory,
        }
    }

    /// A file that is all hole.
    pub(crate) fn is_hole(&self) -> bool {
        matches!(self, What::File(_, stretches) if stretches.is_empty())
    }
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::File(None, _) => write!(f, "file, unreadable"),
            What::File(Some(bytes), data) => {
                let start = &bytes[..bytes.len().min(40)];
                write!(
                    f,
                    "file of {} bytes \"{}\" data {data:?}",
                    bytes.len(),
                    start.escape_ascii()
                )
            }
            What::Directory => write!(f, "directory"),
            What::Symlink(target) => write!(f, "symlink to {target:?}"),
            What::Fifo => write!(f, "fifo"),
            What::Device(number) => write!(f, "device {number:#x}"),
            What::Other => write!(f, "something else"),
        }
    }
}

fn add(
    path: &Path,
    name: &Path,
    entries: &mut BTreeMap<PathBuf, Entry>,
    inodes: &mut HashMap<(u64, u64), (PathBuf, Time)>,
) {
    let metadata = fs::symlink_metadata(path).expect("the entry is there");
    let kind = metadata.file_type();
    let mut children = Vec::new();
    let what = if kind.is_dir() {
        if name.components().count() < LEVELS {
            let listing = fs::read_dir(path).into_iter().flatten();
            children.extend(listing.map(|child| child.expect("the directory is read").file_name()));
            children.sort();
        }
        What::Directory
    } else if kind.is_symlink() {
        What::Symlink(fs::read_link(path).expect("the link is there"))
    } else if kind.is_fifo() {
        What::Fifo
    } else if kind.is_char_device() || kind.is_block_device() {
        What::Device(metadata.rdev())
    } else if kind.is_file() {
        What::File(fs::read(path).ok(), data_stretches(path))
    } else {
        What::Other
    };
    // Reading the file under its first name, above, changed when it was last accessed.
    let accessed = Time::new(metadata.atime(), metadata.atime_nsec());
    let first = inodes
        .entry((metadata.dev(), metadata.ino()))
        .or_insert_with(|| (name.to_owned(), accessed));
    let (same_as, accessed) = first.clone();
    let entry = Entry {
        mode: metadata.mode() & 0o7777,
        owner: (metadata.uid(), metadata.gid()),
        modified: Time::new(metadata.mtime(), metadata.mtime_nsec()),
        accessed,
        same_as,
        links: metadata.nlink(),
        xattrs: xattrs(path),
        what,
    };
    entries.insert(name.to_owned(), entry);
    for child in children {
        add(&path.join(&child), &name.join(&child), entries, inodes);
    }
}

impl Time {
    fn new(seconds: i64, nanoseconds: i64) -> Time {
        if seconds < RECENT_SECONDS { Time::Old(seconds, nanoseconds) } else { Time::Recent }
    }
}

/// Where the file's data is, by SEEK_DATA and SEEK_HOLE.
fn data_stretches(path: &Path) -> Vec<(u64, u64)> {
    let Ok(file) = fs::File::open(path) else { return Vec::new() };
    let mut stretches = Vec::new();
    let mut at = 0;
    loop {
        let start = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return stretches,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        at = rustix::fs::seek(&file, SeekFrom::Hole(start)).expect("data ends somewhere");
        stretches.push((start, at));
    }
}

fn xattrs(path: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let mut names = vec![0_u8; 4096];
    let Ok(len) = rustix::fs::llistxattr(path, &mut names[..]) else { return BTreeMap::new() };
    names[..len]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let name = std::ffi::OsStr::from_bytes(name);
            let mut value = vec![0_u8; 4096];
            let len = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap_or(0);
            value.truncate(len);
            (name.to_owned(), value)
        })
        .collect()
}
