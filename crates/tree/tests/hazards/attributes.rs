//! Modes, owners, times, extended attributes; and that no other user has access before they are
//! set.

use std::collections::HashSet;
use std::fs::{
    File, FileTimes, Permissions, create_dir, create_dir_all, hard_link, metadata, set_permissions,
    write,
};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use rustix::fs::{XattrFlags, getxattr, lsetxattr, setxattr};
use testfs::{Aspects, assert_equal_trees, each_fs, each_pair, fixture, random_bytes};
use tree::Options;

use crate::recorder::{Recorder, copy_ok, home, make_files, with_other_thread};

#[test]
fn a_tree_keeps_every_attribute_on_every_file_system() {
    let check = |src: &Path, dst: &Path, what: &str| {
        copy_ok(src, dst, &Options::archive());
        assert_equal_trees(src, dst, Aspects::ALL, what);
    };
    each_pair(|from, to| {
        let (src, dst) = (from.join("s"), to.join("t"));
        // One source for all destinations, with more files than one worker copies alone.
        if !src.exists() {
            make_tree(&src, 700);
            check(&src, &from.join("t"), from.kind.name());
        }
        check(&src, &dst, &format!("{} to {}", from.kind, to.kind));
    });
}

/// A tree of `files` files with every attribute that `-a` keeps, the same in each run.
fn make_tree(root: &Path, files: usize) {
    let mut random = fastrand::Rng::with_seed(7);
    let root_user = testfs::is_root();
    let mut dirs = vec![root.to_owned()];
    create_dir_all(root).expect("created");
    for number in 0..files {
        if number % 50 == 0 {
            let dir = dirs[random.usize(..dirs.len())].join(format!("d{number}"));
            create_dir_all(&dir).expect("created");
            dirs.push(dir);
        }
        let dir = &dirs[random.usize(..dirs.len())];
        let path = dir.join(format!("f{number}"));
        match random.u8(..20) {
            0 => symlink(format!("f{}", random.usize(..files)), &path).expect("linked"),
            1 if number > 0 && dir.join(format!("f{}", number - 1)).is_file() => {
                hard_link(dir.join(format!("f{}", number - 1)), &path).expect("linked");
                continue;
            }
            _ => {
                let len = random.usize(..3000);
                write(&path, random_bytes(len, number as u64)).expect("written");
                if random.u8(..10) == 0 {
                    let value = random_bytes(40, 9);
                    setxattr(&path, "user.test", &value, XattrFlags::empty())
                        .expect("attribute set");
                }
                let mode = [0o644, 0o600, 0o755, 0o444, 0o4755, 0o2711][random.usize(..6)];
                if root_user {
                    let owner = random.u32(..5);
                    lchown(&path, Some(owner), Some(owner + 1)).expect("owner set");
                }
                set_mode(&path, mode);
                age(&path, &mut random);
            }
        }
    }
    for dir in dirs.iter().rev() {
        set_mode(dir, [0o755, 0o700, 0o555, 0o1777][random.usize(..4)]);
        age(dir, &mut random);
    }
}

fn age(path: &Path, random: &mut fastrand::Rng) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(random.u64(..1 << 60));
    // Times can be set on a file that its owner may not write to.
    let file = File::open(path).expect("opened");
    file.set_times(FileTimes::new().set_modified(time).set_accessed(time)).expect("time set");
}

/// Copies, and returns what `look` finds each time that data was moved.
fn seen_meanwhile<T: Send>(
    src: &Path,
    dst: &Path,
    options: &Options,
    look: impl Fn() -> T + Sync,
) -> Vec<T> {
    let seen = Mutex::new(Vec::new());
    let recorder = Recorder::with_meanwhile(|| seen.lock().expect("locked").push(look()));
    recorder.expect_copy(src, dst, options, dst.display());
    drop(recorder);
    let seen = seen.into_inner().expect("a list");
    assert!(!seen.is_empty(), "{}", dst.display());
    seen
}

fn mode(path: &Path) -> u32 {
    metadata(path).expect("looked at").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).expect("mode set");
}

/// Of the modes of a directory and of a file in it.
type IsPrivate = fn(u32, u32) -> bool;

#[test]
fn no_other_user_has_access_before_the_mode_is_set() {
    let (_dir, at) = home();
    make_files(&at("s"), &["f"], random_bytes(100_000, 5));
    set_mode(&at("s/f"), 0o666);
    set_mode(&at("s"), 0o777);
    create_dir(at("old")).expect("created");
    set_mode(&at("old"), 0o777);
    // In a new directory the mode of the directory denies access, in a pre-existing one that of the file.
    let private: [(_, IsPrivate); 2] = [
        ("new", |dir, file| dir == 0o700 && file & 0o600 == 0o600),
        ("old", |dir, file| (dir, file) == (0o777, 0o600)),
    ];
    for (name, is_private) in private {
        let dst = at(name);
        let look = || (mode(&dst), mode(&dst.join("f")));
        let seen = seen_meanwhile(&at("s"), &dst, &Options::archive(), look);
        assert!(seen.iter().all(|&(dir, file)| is_private(dir, file)), "{name}: {seen:?}");
        assert_eq!(look(), (0o777, 0o666), "{name}");
    }
}

#[test]
fn a_list_that_is_removed_grants_no_access_before() {
    each_fs(|kind, dir| {
        let (src, to) = (dir.join("s"), dir.join("to"));
        make_files(&src, &["d/f"], random_bytes(100_000, 5));
        fixture::add("to/ default-acl", dir);
        let preserve = tree::Preserve { mode: tree::ModeRule::Fresh, ..<_>::default() };
        let options = Options { preserve, recursive: true, ..Options::default() };
        // A file without an inherited list shows the umask.
        let usual = mode(&src.join("d"));
        let look = || ["t", "t/d", "t/d/f"].map(|name| mode(&to.join(name)) & 0o077);
        let seen = seen_meanwhile(&src, &to.join("t"), &options, look);
        assert!(seen.iter().all(|modes| *modes == [0; 3]), "{kind}: {seen:?}");
        for (name, bits) in [("t", 0o777), ("t/d", 0o777), ("t/d/f", 0o666)] {
            assert_eq!(mode(&to.join(name)), bits & usual, "{kind}: {name}");
            let list = getxattr(to.join(name), "system.posix_acl_access", &mut [0; 256][..]);
            assert!(list.is_err(), "{kind}: {name}");
        }
        std::fs::remove_dir_all(&to).expect("removed");
    });
}

/// A symbolic link has no user attributes, but trusted ones and an owner.
#[test]
fn attributes_of_symbolic_links_are_kept() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "attributes of links are root's");
    }
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        create_dir_all(&src).expect("created");
        for number in 0..4 {
            let link = src.join(format!("l{number}"));
            symlink("target", &link).expect("linked");
            if number % 2 == 0 {
                let set = lsetxattr(&link, "trusted.colour", b"red", XattrFlags::empty());
                set.unwrap_or_else(|errno| panic!("{kind}: {errno}"));
            }
            lchown(&link, Some(number), Some(7)).expect("owner set");
        }
        // Into a new directory, and into an existing one.
        for _ in 0..2 {
            copy_ok(&src, &dst, &Options::archive());
            assert_equal_trees(&src, &dst, Aspects::ALL, kind);
            for number in 0..4 {
                std::fs::remove_file(dst.join(format!("l{number}"))).expect("removed");
            }
        }
    });
}

#[test]
fn files_of_other_threads_get_their_permissions() {
    let (_dir, at) = home();
    let (src, theirs) = (at("s"), at("theirs"));
    write(&src, "some").expect("written");
    write(&theirs, "other").expect("written");
    let usual = metadata(&theirs).expect("looked at").mode();
    let modes = Mutex::new(HashSet::new());
    let make = || {
        std::fs::remove_file(&theirs).expect("removed");
        write(&theirs, "other").expect("written");
        modes.lock().expect("locked").insert(metadata(&theirs).expect("looked at").mode());
    };
    with_other_thread(make, || {
        for number in 0..500 {
            copy_ok(&src, &at(&number.to_string()), &Options::default());
        }
    });
    assert_eq!(modes.into_inner().expect("a set"), HashSet::from([usual]));
}
