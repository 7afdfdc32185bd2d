//! The comparison finds every kind of difference, and none between equal trees.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
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
    assert_eq!(Tree::read(&left).unwrap().len(), 7);
    // Times that `plant` does not set depend on the clock.
    let aspects = Aspects { mtimes: false, ..Aspects::ALL };
    assert_eq!(tree_differences(&left, &right, aspects).unwrap(), Vec::<String>::new());
    assert_eq!(tree_differences(&left, &left, Aspects::ALL).unwrap(), Vec::<String>::new());
}

/// The name, the change of the right tree, and a part of the expected line.
type Case = (&'static str, fn(&Path), &'static str);

#[test]
fn each_difference_is_found() {
    let cases: &[Case] = &[
        ("missing", |root| fs::remove_file(root.join("other")).unwrap(), "other: only left"),
        ("extra", |root| fs::write(root.join("new"), "").unwrap(), "new: only right"),
        ("longer", |root| fs::write(root.join("other"), "x").unwrap(), "other: 0 bytes, 1"),
        ("content", change_a_byte, "dir/file: content differs first between bytes 131072 and"),
        (
            "mode",
            |root| {
                let mode = fs::Permissions::from_mode(0o4700);
                fs::set_permissions(root.join("dir/file"), mode).unwrap();
            },
            ", 4700",
        ),
        (
            "time",
            |root| {
                let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 8);
                fs::File::open(root.join("other")).unwrap().set_modified(time).unwrap();
            },
            "other: mtime 1000000000000000007 ns, 1000000000000000008 ns",
        ),
        (
            "type",
            |root| {
                fs::remove_file(root.join("other")).unwrap();
                fs::create_dir(root.join("other")).unwrap();
            },
            "other: type RegularFile, Directory",
        ),
        (
            "target",
            |root| {
                fs::remove_file(root.join("symlink")).unwrap();
                symlink("elsewhere", root.join("symlink")).unwrap();
            },
            "symlink: points to 'dir/file', to 'elsewhere'",
        ),
        (
            "unlinked",
            |root| {
                fs::remove_file(root.join("dir/link")).unwrap();
                fs::copy(root.join("dir/file"), root.join("dir/link")).unwrap();
            },
            "dir/link: the file of dir/file, of dir/link",
        ),
    ];
    for (case, change, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (left, right) = (dir.path().join("left"), dir.path().join("right"));
        plant(&left);
        plant(&right);
        change(&right);
        let lines = tree_differences(&left, &right, Aspects::ALL).unwrap();
        assert!(lines.iter().any(|line| line.contains(expected)), "{case}: {lines:?}");
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

fn change_a_byte(root: &Path) {
    let mut bytes = fs::read(root.join("dir/file")).unwrap();
    bytes[131_072 + 5] ^= 1;
    let time = fs::metadata(root.join("dir/file")).unwrap().modified().unwrap();
    fs::write(root.join("dir/file"), bytes).unwrap();
    fs::File::open(root.join("dir/file")).unwrap().set_modified(time).unwrap();
}
