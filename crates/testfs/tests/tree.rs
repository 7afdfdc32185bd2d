//! The comparison finds every kind of difference, and none between equal trees.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use testfs::{Aspects, Tree, random_bytes, tree_differences};

/// Creates a tree with every kind of entry that needs no privilege.
fn plant(root: &Path) {
    fs::create_dir(root).unwrap();
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), random_bytes(200_000, 1)).unwrap();
    fs::hard_link(root.join("dir/file"), root.join("dir/link")).unwrap();
    fs::write(root.join("other"), "").unwrap();
    symlink("dir/file", root.join("symlink")).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"not \xff UTF-8")), "x").unwrap();
    for name in ["dir/file", "other", "dir"] {
        let file = fs::File::open(root.join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 7)).unwrap();
    }
}

#[test]
fn equal_trees_do_not_differ() {
    let dir = tempfile::tempdir().unwrap();
    let (left, right) = (dir.path().join("left"), dir.path().join("right"));
    plant(&left);
    plant(&right);
    assert_eq!(Tree::read(&left).unwrap().paths().count(), 7);
    // Times that `plant` does not set depend on the clock.
    let aspects = Aspects { mtimes: false, ..Aspects::ALL };
    assert_eq!(tree_differences(&left, &right, aspects).unwrap(), Vec::<String>::new());
    assert_eq!(tree_differences(&left, &left, Aspects::ALL).unwrap(), Vec::<String>::new());
}

/// Shell commands that change the right tree, and a part of the line that is due then.
const CHANGES: &[(&str, &str)] = &[
    ("rm other", "other: only left"),
    ("touch new", "new: only right"),
    ("printf x >other", "other: 0 bytes, 1"),
    (
        "t=$(stat -c %y dir/file); printf xx | dd of=dir/file bs=1 seek=131077 conv=notrunc; \
         touch -d \"$t\" dir/file",
        "dir/file: content differs first between bytes 131072 and",
    ),
    ("chmod 4700 dir/file", ", 4700"),
    (
        "touch -d @1000000000.000000008 other",
        "other: mtime 1000000000000000007 ns, 1000000000000000008 ns",
    ),
    ("rm other; mkdir other", "other: type RegularFile, Directory"),
    ("ln -sfn elsewhere symlink", "symlink: points to 'dir/file', to 'elsewhere'"),
    ("cp --remove-destination dir/file dir/link", "dir/link: the file of dir/file, of dir/link"),
];

#[test]
fn each_difference_is_found() {
    for (change, due) in CHANGES {
        let dir = tempfile::tempdir().expect("created");
        let (left, right) = (dir.path().join("left"), dir.path().join("right"));
        plant(&left);
        plant(&right);
        let output = Command::new("sh").args(["-ec", change]).current_dir(&right).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{change}: {}", testfs::stderr(&output));
        let lines = tree_differences(&left, &right, Aspects::ALL).expect("both trees can be read");
        assert!(lines.iter().any(|line| line.contains(due)), "{change}: {lines:?}");
    }
}

#[test]
fn extended_attributes_are_compared() {
    testfs::each_fs(|kind, dir| {
        let file = dir.join("file");
        fs::write(&file, "x").unwrap();
        let before = Tree::read(dir).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::setxattr(&file, "user.colour", b"red", flags) {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                testfs::skip(&testfs::test_name(), &format!("{kind} has none here"));
            }
            result => {
                result.unwrap();
                let lines = before.differences(&Tree::read(dir).unwrap(), Aspects::ALL);
                assert_eq!(lines, ["file: xattrs [], [user.colour=red]"], "{kind}");
            }
        }
    });
}
