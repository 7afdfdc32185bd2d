//! Small trees in a line of text.
//!
//! Items are parted by semicolons; directories above an item are made as needed.
//!
//! | item | what is made |
//! |---|---|
//! | `a=text` | a file that holds `text` |
//! | `a=` | an empty file |
//! | `d/` | a directory |
//! | `s->target` | a symbolic link |
//! | `b==a` | another hard link of `a` |
//! | `p\|` | a fifo |
//! | `n%1:3` | a character device (only root can make one) |
//! | `s%socket` | a socket |
//! | `h~1M@64K,512K` | a file of 1 MiB, all hole but for 4 KiB of random bytes at each offset |
//! | `r#5M:1` | a file of 5 MiB of random bytes with the seed 1 |
//!
//! After an item stand its attributes: `mode=640`, `t=5` (modification time in seconds, with
//! nanoseconds that tell it from a rounded one), `own=1:2`, `acl` (a list that lets user 1 write),
//! `default-acl` (one that a directory gives to what is made in it), `default-acl=750` (one with no more than a
//! mode), `user.k=v` (an extended attribute). [`word`] tells the escapes.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use crate::{Tree, random_bytes};

/// Modification time of what has no `t=`.
const USUAL_SECONDS: i64 = 1_000_000_000;

/// Nanoseconds of every time set here.
const NANOSECONDS: i64 = 123_456_789;

/// Makes the tree `text` in the empty directory `root`; `owner` owns all that names no other.
///
/// # Panics
/// If that fails.
pub fn build(text: &str, root: &Path, owner: Option<u32>) {
    let items = made(text, root);
    if let Some(owner) = owner {
        own_all(root, owner);
    }
    // Directories that no item names have times too.
    set_usual_times(root);
    set_attributes(&items, root);
}

/// Adds the items of `text` to `root`. What has no `t=` has been modified now.
///
/// # Panics
/// If that fails.
pub fn add(text: &str, root: impl AsRef<Path>) {
    set_attributes(&made(text, root.as_ref()), root.as_ref());
}

fn made<'t>(text: &'t str, root: &Path) -> Vec<Item<'t>> {
    let texts = text.split(';').map(str::trim).filter(|item| !item.is_empty());
    texts.map(Item::new).inspect(|item| item.make(root)).collect()
}

fn set_attributes(items: &[Item<'_>], root: &Path) {
    for item in items {
        item.set_ownership_and_xattrs(root);
    }
    for item in items {
        for mode in item.values("mode=") {
            let mode = Permissions::from_mode(u32::from_str_radix(mode, 8).expect("an octal mode"));
            fs::set_permissions(item.path(root), mode).expect("the owner may change modes");
        }
    }
    // From the last to the first, so that a directory's time is not changed by what is in it.
    for item in items.iter().rev() {
        for time in item.values("t=") {
            set_times(&item.path(root), time.parse().expect("parsed"));
        }
    }
}

/// One word: `\s` is a blank, `\n`, `\t` and `\r` are as in C, `\xff` is a byte, `\e` is nothing (so that
/// a word can be empty), and `{}` is the directory `root`.
///
/// # Panics
/// If there is another escape.
#[must_use]
pub fn word(text: &str, root: &Path) -> OsString {
    let text = text.replace("{}", root.to_str().expect("temporary directories have plain names"));
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&letter, after) = rest.split_first().expect("a backslash escapes something");
        rest = after;
        match letter {
            b's' => bytes.push(b' '),
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'e' => (),
            b'\\' => bytes.push(b'\\'),
            b'x' => {
                let (digits, after) = rest.split_at(2);
                let digits = std::str::from_utf8(digits).expect("hexadecimal digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal digits"));
                rest = after;
            }
            other => panic!("no such escape: \\{}", char::from(other)),
        }
    }
    OsString::from_vec(bytes)
}

/// The items of `text` that `tree` does not have as they are written: kind, content and the
/// attributes `mode=` and `t=`. `!a` says that there is no `a`.
///
/// # Panics
/// If other attributes are written.
#[must_use]
pub fn unmet(text: &str, tree: &Tree, root: &Path) -> Vec<String> {
    let items = text.split(';').map(str::trim).filter(|item| !item.is_empty());
    items.filter(|item| !is_met(item, tree, root)).map(|item| format!("not so: {item}")).collect()
}

fn is_met(text: &str, tree: &Tree, root: &Path) -> bool {
    let entry = |name| tree.entries.get(Path::new(&word(name, root)));
    if let Some(name) = text.strip_prefix('!') {
        return entry(name).is_none();
    }
    let item = Item::new(text);
    let Some(found) = entry(item.name) else { return false };
    let is_kind = match item.kind {
        Kind::File(expected) => found.holds(word(expected, root).as_bytes()),
        Kind::Directory => found.kind == FileType::Directory,
        Kind::Fifo => found.kind == FileType::Fifo,
        Kind::Symlink(expected) => {
            found.kind == FileType::Symlink && word(expected, root).as_bytes() == found.target
        }
        Kind::HardLink(other) => entry(other).is_some_and(|it| it.identity == found.identity),
        Kind::Device(_) | Kind::Sparse { .. } | Kind::Random { .. } => false,
    };
    is_kind
        && item.attributes.iter().all(|attribute| match attribute.split_once('=') {
            Some(("mode", mode)) => format!("{:o}", found.mode) == mode,
            Some(("t", seconds)) => {
                let seconds: i128 = seconds.parse().expect("parsed");
                found.mtime_ns == seconds * 1_000_000_000 + i128::from(NANOSECONDS)
            }
            _ => panic!("no fact that is looked at: {attribute}"),
        })
}

/// One item, not yet made.
struct Item<'t> {
    name: &'t str,
    kind: Kind<'t>,
    attributes: Vec<&'t str>,
}

enum Kind<'t> {
    File(&'t str),
    Directory,
    Symlink(&'t str),
    HardLink(&'t str),
    Fifo,
    Device(&'t str),
    Sparse { len: u64, data: Vec<u64> },
    Random { len: u64, seed: u64 },
}

impl<'t> Item<'t> {
    fn new(text: &'t str) -> Item<'t> {
        let mut words = text.split(' ').filter(|word| !word.is_empty());
        let spec = words.next().expect("an item is not empty");
        let (name, kind) = if let Some((name, target)) = spec.split_once("->") {
            (name, Kind::Symlink(target))
        } else if let Some((name, other)) = spec.split_once("==") {
            (name, Kind::HardLink(other))
        } else if let Some((name, content)) = spec.split_once('=') {
            (name, Kind::File(content))
        } else if let Some((name, numbers)) = spec.split_once('%') {
            (name, Kind::Device(numbers))
        } else if let Some(name) = spec.strip_suffix('/') {
            (name, Kind::Directory)
        } else if let Some(name) = spec.strip_suffix('|') {
            (name, Kind::Fifo)
        } else if let Some((name, shape)) = spec.split_once('~') {
            let (len, data) = shape.split_once('@').unwrap_or((shape, ""));
            let data = data.split(',').filter(|at| !at.is_empty()).map(bytes).collect();
            (name, Kind::Sparse { len: bytes(len), data })
        } else if let Some((name, shape)) = spec.split_once('#') {
            let (len, seed) = shape.split_once(':').expect("length:seed");
            (name, Kind::Random { len: bytes(len), seed: bytes(seed) })
        } else {
            panic!("no item: {text}")
        };
        Item { name, kind, attributes: words.collect() }
    }

    fn path(&self, root: &Path) -> PathBuf {
        root.join(word(self.name, root))
    }

    fn make(&self, root: &Path) {
        let path = self.path(root);
        let parent = path.parent().expect("items are below the root");
        fs::create_dir_all(parent).expect("directories above an item can be made");
        let made = match &self.kind {
            Kind::File(content) => fs::write(&path, word(content, root).into_vec()),
            Kind::Directory => fs::create_dir_all(&path),
            Kind::Symlink(target) => symlink(word(target, root), &path),
            Kind::HardLink(other) => fs::hard_link(root.join(word(other, root)), &path),
            Kind::Fifo => make_node(&path, FileType::Fifo, 0),
            Kind::Device("socket") => make_node(&path, FileType::Socket, 0),
            Kind::Device(numbers) => {
                let (major, minor) = numbers.split_once(':').expect("major:minor");
                let number = |text: &str| text.parse().expect("parsed");
                let device = rustix::fs::makedev(number(major), number(minor));
                make_node(&path, FileType::CharacterDevice, device)
            }
            Kind::Sparse { len, data } => make_sparse(&path, *len, data),
            Kind::Random { len, seed } => {
                let len = usize::try_from(*len).expect("it fits into memory");
                fs::write(&path, random_bytes(len, *seed))
            }
        };
        made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    fn set_ownership_and_xattrs(&self, root: &Path) {
        let path = self.path(root);
        for attribute in &self.attributes {
            if let Some(ids) = attribute.strip_prefix("own=") {
                let (user, group) = ids.split_once(':').expect("user:group");
                let number = |text: &str| Some(text.parse().expect("parsed"));
                lchown(&path, number(user), number(group)).expect("root may give files away");
            } else if attribute.starts_with("user.") {
                let (name, value) = attribute.split_once('=').expect("an xattr has a value");
                set_xattr(&path, name, value.as_bytes());
            } else if *attribute == "acl" {
                set_xattr(&path, "system.posix_acl_access", &ACL);
            } else if let Some(mode) = attribute.strip_prefix("default-acl=") {
                set_xattr(&path, "system.posix_acl_default", &plain_acl(mode));
            } else if *attribute == "default-acl" {
                set_xattr(&path, "system.posix_acl_default", &DEFAULT_ACL);
            }
        }
    }

    /// What stands after the word `begin` in the attributes.
    fn values(&self, begin: &str) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter_map(move |word| word.strip_prefix(begin))
    }
}

/// user::rw-, user:1:rw-, group::r--, mask::rw-, other::r--.
const ACL: [u8; 44] = acl([6, 6, 4, 6, 4]);

/// user::rwx, user:1:rwx, group::r-x, mask::rwx, other::---.
const DEFAULT_ACL: [u8; 44] = acl([7, 7, 5, 7, 0]);

/// A list in the kernel's form: a version, then tag, permissions and id of each entry.
const fn acl([owner, user_1, group, mask, other]: [u8; 5]) -> [u8; 44] {
    [
        2, 0, 0, 0, //
        0x01, 0, owner, 0, 0xff, 0xff, 0xff, 0xff, //
        0x02, 0, user_1, 0, 1, 0, 0, 0, //
        0x04, 0, group, 0, 0xff, 0xff, 0xff, 0xff, //
        0x10, 0, mask, 0, 0xff, 0xff, 0xff, 0xff, //
        0x20, 0, other, 0, 0xff, 0xff, 0xff, 0xff,
    ]
}

/// A list in the kernel's form of the three entries that an octal mode has.
fn plain_acl(mode: &str) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, digit) in [1, 4, 0x20].into_iter().zip(mode.bytes()) {
        list.extend([tag, 0, digit - b'0', 0, 0xff, 0xff, 0xff, 0xff]);
    }
    list
}

fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())
        .unwrap_or_else(|error| panic!("{name} of {}: {error}", path.display()));
}

fn make_node(path: &Path, kind: FileType, device: u64) -> std::io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o644), device)?)
}

fn make_sparse(path: &Path, len: u64, data: &[u64]) -> std::io::Result<()> {
    let file = fs::File::create(path)?;
    file.set_len(len)?;
    data.iter().try_for_each(|&at| file.write_all_at(&random_bytes(4096, at), at))
}

fn bytes(text: &str) -> u64 {
    let digits = text.trim_end_matches(['K', 'M']);
    let shift = match &text[digits.len()..] {
        "K" => 10,
        "M" => 20,
        _ => 0,
    };
    digits.parse::<u64>().expect("parsed") << shift
}

fn own_all(path: &Path, owner: u32) {
    lchown(path, Some(owner), Some(owner)).expect("root may give files away");
    for_each_child(path, &mut |child| own_all(child, owner));
}

fn set_usual_times(path: &Path) {
    for_each_child(path, &mut set_usual_times);
    set_times(path, USUAL_SECONDS);
}

fn for_each_child(path: &Path, act: &mut dyn FnMut(&Path)) {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        // A directory without permissions is entered by root alone.
        for child in fs::read_dir(path).into_iter().flatten() {
            act(&child.expect("the directory is being read").path());
        }
    }
}

fn set_times(path: &Path, seconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: NANOSECONDS };
    // The time of last access comes later, or the first read of the file would change it.
    let last_access = Timespec { tv_sec: seconds + 1_000_000, tv_nsec: NANOSECONDS };
    let times = Timestamps { last_access, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        .expect("the owner may change times");
}
