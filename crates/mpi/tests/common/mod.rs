//! A tree with everything that `cp -a` keeps.

use std::ffi::OsStr;
use std::fs::{File, FileTimes, Permissions, create_dir, hard_link, set_permissions, write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use testfs::{Aspects, assert_equal_trees, random_bytes};

/// Names in one directory.
pub(crate) const FLAT_FILES: usize = 1000;

const CHAIN_LEVELS: usize = 150;

pub(crate) fn make_tree(root: &Path, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    create_dir(root).expect("created");
    make_flat(&root.join("flat"));
    make_bushes(&root.join("bushes"), 3, &mut random);
    make_chain(&root.join("chain"));
    make_links(root);
    make_special(&root.join("special"));
    let large = File::create(root.join("large")).expect("created");
    large.write_all_at(&random_bytes(10 << 20, seed), 0).expect("written");
    set_times(root, 1_000_000_000);
}

fn make_flat(dir: &Path) {
    create_dir(dir).expect("created");
    for number in 0..FLAT_FILES {
        write(dir.join(format!("file {number}")), format!("content {number}")).expect("written");
    }
    set_times(dir, 1_100_000_000);
}

/// Directories of random sizes below each other.
fn make_bushes(dir: &Path, levels: u32, random: &mut fastrand::Rng) {
    create_dir(dir).expect("created");
    for number in 0..random.usize(0..12) {
        let bytes = random.usize(0..20_000);
        let path = dir.join(format!("f{number}"));
        write(&path, random_bytes(bytes, number as u64)).expect("written");
        set_permissions(&path, Permissions::from_mode(random.u32(0o400..0o1000)))
            .expect("mode set");
        set_times(&path, 1_200_000_000 + number as u64);
    }
    if levels > 0 {
        for number in 0..random.usize(1..6) {
            make_bushes(&dir.join(format!("d{number}")), levels - 1, random);
        }
    }
    set_permissions(dir, Permissions::from_mode(random.u32(0o500..0o1000) | 0o500))
        .expect("mode set");
    set_times(dir, 1_300_000_000 + u64::from(levels));
}

fn make_chain(top: &Path) {
    create_dir(top).expect("created");
    let mut dir = top.to_owned();
    for level in 0..CHAIN_LEVELS {
        dir.push("d");
        create_dir(&dir).expect("created");
        write(dir.join("f"), format!("level {level}")).expect("written");
    }
    while dir.starts_with(top) {
        set_times(&dir, 1_400_000_000);
        dir.pop();
    }
}

/// Names of the same files in different directories.
fn make_links(root: &Path) {
    let (first, second) = (root.join("links a"), root.join("links b"));
    create_dir(&first).expect("created");
    create_dir(&second).expect("created");
    for number in 0..200 {
        let path = first.join(number.to_string());
        write(&path, random_bytes(300, number)).expect("written");
        hard_link(&path, second.join(format!("x{number}"))).expect("linked");
        if number % 3 == 0 {
            hard_link(&path, root.join(format!("flat/linked {number}"))).expect("linked");
        }
    }
}

fn make_special(dir: &Path) {
    create_dir(dir).expect("created");
    symlink("nowhere", dir.join("dangling")).expect("linked");
    symlink("../flat", dir.join("to a directory")).expect("linked");
    mknodat(CWD, dir.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).expect("created");
    write(dir.join(OsStr::from_bytes(b"not \xff UTF-8\n")), "x").expect("written");
    let sparse = File::create(dir.join("sparse")).expect("created");
    sparse.set_len(24 << 20).expect("length set");
    sparse.write_all_at(&[1; 4096], 12 << 20).expect("written");
    let tagged = dir.join("tagged");
    write(&tagged, "x").expect("written");
    // Not every file system has attributes; then there is nothing to keep.
    let _ = setxattr(&tagged, "user.colour", b"blue", XattrFlags::empty());
    let _ = setxattr(dir, "user.shape", b"round", XattrFlags::empty());
    // user::rw- user:1234:r-- group::r-- mask::r-- other::---
    let acl = [
        &[2, 0, 0, 0][..],
        &[1, 0, 6, 0, 255, 255, 255, 255],
        &[2, 0, 4, 0, 0xd2, 4, 0, 0],
        &[4, 0, 4, 0, 255, 255, 255, 255],
        &[16, 0, 4, 0, 255, 255, 255, 255],
        &[32, 0, 0, 0, 255, 255, 255, 255],
    ]
    .concat();
    let _ = setxattr(&tagged, "system.posix_acl_access", &acl, XattrFlags::empty());
    if testfs::is_root() {
        std::os::unix::fs::chown(&tagged, Some(4321), Some(1234)).expect("an owner");
        let mode = Mode::from_raw_mode(0o600);
        // A container may not make devices.
        let _ = mknodat(CWD, dir.join("null"), FileType::CharacterDevice, mode, 0x103);
    }
    set_times(dir, 1_500_000_000);
}

fn set_times(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, 123_456_789);
    let times = FileTimes::new().set_modified(time).set_accessed(time);
    File::open(path).and_then(|file| file.set_times(times)).expect("times are set");
}

pub(crate) fn assert_equal(src: &Path, dst: &Path, shown: &str) {
    assert_equal_trees(src, dst, Aspects::ALL, shown);
}

/// What a comparison of two trees does not see.
pub(crate) fn assert_holes_are_kept(root: &Path) {
    let sparse = root.join("special/sparse").metadata().expect("looked at");
    assert!(sparse.blocks() * 512 < 8 << 20, "{} blocks", sparse.blocks());
}

/// A directory in memory, where creating thousands of files takes no time, or an ordinary one.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("a directory")
}
