//! The trees of a copy, and what lies outside it: made, looked at, searched.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, XattrFlags, makedev, mknodat, openat};

/// The directories of every tree.
pub(crate) const DIRECTORIES: [&str; 4] = ["a", "b", "a/c", "a/c/e"];

/// What every file outside begins with.
pub(crate) const SECRET: &str = "SECRET";

/// Makes the tree `root`, whose files begin with `content`. With `special` there are fifos and
/// devices.
pub(crate) fn make_tree(root: &Path, content: &str, special: bool) -> io::Result<()> {
    let outside = content == SECRET;
    fs::create_dir_all(root)?;
    for directory in DIRECTORIES.map(|name| root.join(name)) {
        fs::create_dir(&directory)?;
        for name in ["f0", "f1", "f2"] {
            fs::write(directory.join(name), format!("{content} {name}"))?;
        }
        fs::hard_link(directory.join("f0"), directory.join("h0"))?;
        symlink("f0", directory.join("l"))?;
        if special {
            make_node(&directory.join("p"), FileType::Fifo, 0)?;
            make_node(&directory.join("n"), FileType::CharacterDevice, makedev(1, 3))?;
        }
        set_attribute(&directory, content)?;
        set_attribute(&directory.join("f1"), content)?;
        let (uid, mode) = if outside { (77, 0o600) } else { (1234, 0o4755) };
        chown(directory.join("f2"), Some(uid), Some(4321))?;
        fs::set_permissions(directory.join("f2"), fs::Permissions::from_mode(mode))?;
    }
    let mode = if outside { 0o700 } else { 0o2751 };
    fs::set_permissions(root.join("a/c"), fs::Permissions::from_mode(mode))
}

fn make_node(path: &Path, kind: FileType, device: u64) -> io::Result<()> {
    Ok(mknodat(CWD, path, kind, Mode::from_raw_mode(0o644), device)?)
}

fn set_attribute(path: &Path, value: &str) -> io::Result<()> {
    Ok(rustix::fs::lsetxattr(path, c"user.origin", value.as_bytes(), XattrFlags::empty())?)
}

/// Everything about one file that a copy could change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    path: PathBuf,
    inode: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    links: u64,
    bytes: u64,
    mtime: (i64, i64),
    /// Moves with every change of attributes, extended ones among them.
    ctime: (i64, i64),
    content: Option<String>,
}

/// Looks at `root` and at everything in it.
pub(crate) fn look(root: &Path) -> Vec<Seen> {
    let mut seen = Vec::new();
    each_below(root, &mut |path, metadata| {
        let content = metadata.is_file().then(|| fs::read(path).expect("a file outside"));
        seen.push(Seen {
            path: path.to_owned(),
            inode: metadata.ino(),
            mode: metadata.mode(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            links: metadata.nlink(),
            bytes: metadata.size(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
            content: content.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        });
    });
    seen.sort_by(|one, other| one.path.cmp(&other.path));
    seen
}

/// What is in one list only, of two that differ.
pub(crate) fn differences(before: &[Seen], after: &[Seen]) -> String {
    let lost = before.iter().filter(|seen| !after.contains(seen)).map(|seen| format!("- {seen:?}"));
    let new = after.iter().filter(|seen| !before.contains(seen)).map(|seen| format!("+ {seen:?}"));
    lost.chain(new).collect::<Vec<_>>().join("\n")
}

/// A file below `root` that holds what only files outside do, in its data or its attributes.
pub(crate) fn find_secret(root: &Path) -> Option<PathBuf> {
    let mut found = None;
    each_below(root, &mut |path, metadata| {
        let held = metadata.is_file() && {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(CWD, path, flags, Mode::empty()).expect("a file of the copy");
            io::read_to_string(fs::File::from(file)).is_ok_and(|text| text.starts_with(SECRET))
        };
        let mut value = [0; 64];
        let marked = !metadata.file_type().is_fifo()
            && rustix::fs::lgetxattr(path, c"user.origin", &mut value)
                .is_ok_and(|len| &value[..len] == SECRET.as_bytes());
        if held || marked {
            found = Some(path.to_owned());
        }
    });
    found
}

/// Calls `tell` for `root` and everything below, following no link.
fn each_below(root: &Path, tell: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let metadata = fs::symlink_metadata(root).expect("nobody changes it now");
    tell(root, &metadata);
    if metadata.is_dir() {
        for entry in fs::read_dir(root).expect("listed") {
            each_below(&entry.expect("an entry").path(), tell);
        }
    }
}
