//! Modes, owners, times, extended attributes; and that no other user has access before they are
//! set.

use std::collections::HashSet;
use std::fs::{
    File, FileTimes, Permissions, create_dir_all, hard_link, metadata, set_permissions, write,
};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr, setxattr};
use testfs::{Aspects, FsKind, assert_equal_trees, each_fs, each_pair, random_bytes};
use tree::Options;

use crate::recorder::{Recorder, copy_exactly, copy_ok, with_other_thread};

const FILES: usize = 10_500;

#[test]
fn a_tree_of_ten_thousand_files_keeps_every_attribute() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        // The number does not depend on the file system, and disks take long for so many.
        make_tree(&src, if kind == FsKind::Tmpfs { FILES } else { FILES / 5 });
        copy_ok(&src, &dst, &Options::archive());
        assert_equal_trees(&src, &dst, Aspects::ALL, kind);
    });
}

#[test]
fn a_tree_keeps_its_attributes_on_another_file_system() {
    each_pair(|from, to| {
        let (src, dst) = (from.join("s"), to.join("t"));
        // One source for all destinations.
        if !src.exists() {
            make_tree(&src, 300);
        }
        copy_ok(&src, &dst, &Options::archive());
        assert_equal_trees(&src, &dst, Aspects::ALL, format_args!("{} to {}", from.kind, to.kind));
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
                    setxattr(&path, "user.test", &value, XattrFlags::empty()).expect("an xattr");
                }
                let mode = [0o644, 0o600, 0o755, 0o444, 0o4755, 0o2711][random.usize(..6)];
                let bits = Permissions::from_mode(mode);
                if root_user {
                    let owner = random.u32(..5);
                    lchown(&path, Some(owner), Some(owner + 1)).expect("an owner");
                }
                set_permissions(&path, bits).expect("mode set");
                age(&path, &mut random);
            }
        }
    }
    for dir in dirs.iter().rev() {
        let bits = Permissions::from_mode([0o755, 0o700, 0o555, 0o1777][random.usize(..4)]);
        set_permissions(dir, bits).expect("mode set");
        age(dir, &mut random);
    }
}

fn age(path: &Path, random: &mut fastrand::Rng) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(random.u64(..1 << 60));
    // Times can be set on a file that its owner may not write to.
    let file = File::open(path).expect("it can be opened");
    file.set_times(FileTimes::new().set_modified(time).set_accessed(time)).expect("its times");
}

#[test]
fn no_other_user_has_access_before_the_mode_is_set() {
    // In a new directory the mode of the directory denies access.
    check_privacy(false, |dir, file| dir == 0o700 && file & 0o600 == 0o600);
    // In a pre-existing one the mode of the file does.
    check_privacy(true, |dir, file| (dir, file) == (0o777, 0o600));
}

/// Copies a world-writable file, and checks the modes of the destination and its directory
/// meanwhile.
fn check_privacy(exists: bool, is_private: fn(u32, u32) -> bool) {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    create_dir_all(&src).expect("created");
    write(src.join("f"), random_bytes(100_000, 5)).expect("written");
    set_permissions(src.join("f"), Permissions::from_mode(0o666)).expect("mode set");
    set_permissions(&src, Permissions::from_mode(0o777)).expect("mode set");
    if exists {
        create_dir_all(&dst).expect("created");
        set_permissions(&dst, Permissions::from_mode(0o777)).expect("mode set");
    }
    let seen = Mutex::new(Vec::new());
    let recorder = Recorder::with_meanwhile(|| {
        let mode = |path: &Path| metadata(path).expect("the new file").mode() & 0o7777;
        seen.lock().expect("a list").push((mode(&dst), mode(&dst.join("f"))));
    });
    assert_eq!(copy_exactly(&src, &dst, &Options::archive(), &recorder).failures, 0);
    drop(recorder);
    let seen = seen.into_inner().expect("a list");
    assert!(!seen.is_empty());
    assert!(seen.iter().all(|&(dir, file)| is_private(dir, file)), "{seen:?}");
    assert_eq!(metadata(&dst).expect("looked at").mode() & 0o7777, 0o777);
    assert_eq!(metadata(dst.join("f")).expect("looked at").mode() & 0o7777, 0o666);
}

#[test]
fn access_control_lists_are_kept_and_none_is_inherited() {
    use rustix::fs::{getxattr, removexattr};
    each_fs(|kind, dir| {
        let (src, to) = (dir.join("s"), dir.join("to"));
        create_dir_all(src.join("d")).expect("created");
        create_dir_all(&to).expect("created");
        write(src.join("plain"), "1").expect("written");
        write(src.join("listed"), "1").expect("written");
        let access = acl(7);
        setxattr(src.join("listed"), "system.posix_acl_access", &access, XattrFlags::empty())
            .expect("an access control list");
        // New files here inherit a list that the sources do not have.
        setxattr(&to, "system.posix_acl_default", &acl(7), XattrFlags::empty())
            .expect("a default list");
        let options = Options {
            preserve: tree::Preserve {
                mode: tree::ModeRule::Preserve,
                ..tree::Preserve::default()
            },
            recursive: true,
            ..Options::default()
        };
        copy_ok(&src, &to.join("t"), &options);
        let list = |name: &str, which: &str| {
            let mut buffer = [0; 256];
            getxattr(to.join("t").join(name), which, &mut buffer[..])
                .ok()
                .map(|len| buffer[..len].to_vec())
        };
        assert_eq!(
            list("listed", "system.posix_acl_access").as_deref(),
            Some(&access[..]),
            "{kind}"
        );
        assert_eq!(list("plain", "system.posix_acl_access"), None, "{kind}");
        assert_eq!(list("d", "system.posix_acl_default"), None, "{kind}");
        assert_eq!(list("", "system.posix_acl_default"), None, "{kind}");
        removexattr(&to, "system.posix_acl_default").expect("it was there");
    });
}

#[test]
fn a_copy_grants_nothing_that_a_default_list_withholds() {
    use rustix::fs::{CWD, FileType, mknodat};
    each_fs(|kind, dir| {
        let (src, to) = (dir.join("s"), dir.join("to"));
        create_dir_all(src.join("d")).expect("created");
        write(src.join("d/f"), "1").expect("written");
        write(src.join("g"), "1").expect("written");
        mknodat(CWD, src.join("p"), FileType::Fifo, 0o666.into(), 0).expect("created");
        for name in ["", "d", "d/f", "g", "p"] {
            set_permissions(src.join(name), Permissions::from_mode(0o777)).expect("mode set");
        }
        // The permissions in the last entry, that of others.
        let mut list = acl(7);
        let at = list.len() - 6;
        list[at] = 0;
        for (ownership, xattr, exists) in [
            (true, tree::Keep::No, false),
            (true, tree::Keep::No, true),
            (false, tree::Keep::IfPossible, false),
            (false, tree::Keep::IfPossible, true),
        ] {
            create_dir_all(if exists { to.join("t") } else { to.clone() }).expect("created");
            let gives = if exists { to.join("t") } else { to.clone() };
            setxattr(&gives, "system.posix_acl_default", &list, XattrFlags::empty())
                .expect("a default list");
            let preserve = tree::Preserve { ownership, xattr, ..<_>::default() };
            let options = Options { preserve, recursive: true, ..Options::default() };
            copy_ok(&src, &to.join("t"), &options);
            for name in ["d", "d/f", "g", "p"] {
                let mode = metadata(to.join("t").join(name)).expect("looked at").mode();
                assert_eq!(mode & 0o007, 0, "{kind}: {name} {mode:o}, {ownership} {exists}");
            }
            std::fs::remove_dir_all(&to).expect("removed");
        }
    });
}

#[test]
fn a_list_that_is_removed_grants_no_access_before() {
    use rustix::fs::getxattr;
    each_fs(|kind, dir| {
        let (src, to) = (dir.join("s"), dir.join("to"));
        create_dir_all(src.join("d")).expect("created");
        write(src.join("d/f"), random_bytes(100_000, 5)).expect("written");
        create_dir_all(&to).expect("created");
        setxattr(&to, "system.posix_acl_default", &acl(7), XattrFlags::empty())
            .expect("a default list");
        let preserve = tree::Preserve { mode: tree::ModeRule::Fresh, ..<_>::default() };
        let options = Options { preserve, recursive: true, ..Options::default() };
        // A file without an inherited list shows the umask.
        let usual = metadata(src.join("d")).expect("looked at").mode();
        let names = ["t", "t/d", "t/d/f"];
        let seen = Mutex::new(Vec::new());
        let recorder = Recorder::with_meanwhile(|| {
            let modes =
                names.map(|name| metadata(to.join(name)).expect("the new file").mode() & 0o077);
            seen.lock().expect("a list").push(modes);
        });
        assert_eq!(copy_exactly(&src, &to.join("t"), &options, &recorder).failures, 0, "{kind}");
        drop(recorder);
        let seen = seen.into_inner().expect("a list");
        assert!(!seen.is_empty() && seen.iter().all(|modes| *modes == [0; 3]), "{kind}: {seen:?}");
        for (name, bits) in [("t", 0o777), ("t/d", 0o777), ("t/d/f", 0o666)] {
            let mode = metadata(to.join(name)).expect("looked at").mode() & 0o7777;
            assert_eq!(mode, bits & usual, "{kind}: {name}");
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
            lchown(&link, Some(number), Some(7)).expect("an owner");
        }
        let owners = |dir: &Path| {
            let of = |number| dir.join(format!("l{number}")).symlink_metadata().expect("looked at");
            (0..4).map(of).map(|link| (link.uid(), link.gid(), link.mtime())).collect::<Vec<_>>()
        };
        let colours = |dir: &Path| {
            let of = |number| {
                let mut value = [0; 8];
                let path = dir.join(format!("l{number}"));
                lgetxattr(path, "trusted.colour", &mut value).map(|len| value[..len].to_vec())
            };
            (0..4).map(of).collect::<Vec<_>>()
        };
        // Into a new directory, and into an existing one.
        for _ in 0..2 {
            copy_ok(&src, &dst, &Options::archive());
            assert_eq!(owners(&dst), owners(&src), "{kind}");
            assert_eq!(colours(&dst), colours(&src), "{kind}");
            for number in 0..4 {
                std::fs::remove_file(dst.join(format!("l{number}"))).expect("removed");
            }
        }
    });
}

/// A list with one named user, in the form of the kernel.
fn acl(user: u32) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    let mut entry = |tag: u16, permissions: u16, id: u32| {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    };
    entry(0x01, 6, u32::MAX);
    entry(0x02, 6, user);
    entry(0x04, 4, u32::MAX);
    entry(0x10, 6, u32::MAX);
    entry(0x20, 4, u32::MAX);
    bytes
}

#[test]
fn files_of_other_threads_get_their_permissions() {
    let dir = tempfile::tempdir().expect("created");
    let (src, theirs) = (dir.path().join("s"), dir.path().join("theirs"));
    write(&src, "some").expect("written");
    write(&theirs, "other").expect("written");
    let usual = metadata(&theirs).expect("looked at").mode();
    let modes = Mutex::new(HashSet::new());
    let make = || {
        std::fs::remove_file(&theirs).expect("it was made");
        write(&theirs, "other").expect("written");
        modes.lock().expect("a set").insert(metadata(&theirs).expect("looked at").mode());
    };
    with_other_thread(make, || {
        for at in 0..2000 {
            copy_ok(&src, &dir.path().join(at.to_string()), &Options::default());
        }
    });
    assert_eq!(modes.into_inner().expect("a set"), HashSet::from([usual]));
}
