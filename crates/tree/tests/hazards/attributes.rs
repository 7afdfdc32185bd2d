//! Modes, owners, times, attributes; and that nobody else can look in before they are set.

use std::fs::{
    File, FileTimes, Permissions, create_dir_all, hard_link, metadata, set_permissions, write,
};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{XattrFlags, setxattr};
use testfs::{Aspects, each_fs, each_pair, random_bytes, tree_differences};
use tree::Options;

use crate::listener::{Listener, copy_exactly, copy_well};

const FILES: usize = 10_500;

#[test]
fn a_tree_of_ten_thousand_files_is_the_same_in_every_attribute() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        make_tree(&src, FILES);
        copy_well(&src, &dst, &Options::archive());
        let differences = tree_differences(&src, &dst, Aspects::ALL).expect("both can be read");
        assert_eq!(differences, [""; 0], "{kind}");
    });
}

#[test]
fn a_tree_is_the_same_on_another_file_system() {
    each_pair(|from, to| {
        let (src, dst) = (from.join("s"), to.join("t"));
        // One source for all the file systems that it goes to.
        if !src.exists() {
            make_tree(&src, 300);
        }
        copy_well(&src, &dst, &Options::archive());
        let differences = tree_differences(&src, &dst, Aspects::ALL).expect("both can be read");
        assert_eq!(differences, [""; 0], "{} to {}", from.kind, to.kind);
    });
}

/// A tree of `files` files with all that an archive keeps, the same at every run.
fn make_tree(root: &Path, files: usize) {
    let mut random = fastrand::Rng::with_seed(7);
    let root_user = testfs::is_root();
    let mut dirs = vec![root.to_owned()];
    create_dir_all(root).expect("a directory");
    for number in 0..files {
        if number % 50 == 0 {
            let dir = dirs[random.usize(..dirs.len())].join(format!("d{number}"));
            create_dir_all(&dir).expect("a directory");
            dirs.push(dir);
        }
        let dir = &dirs[random.usize(..dirs.len())];
        let path = dir.join(format!("f{number}"));
        match random.u8(..20) {
            0 => symlink(format!("f{}", random.usize(..files)), &path).expect("a link"),
            1 if number > 0 && dir.join(format!("f{}", number - 1)).is_file() => {
                hard_link(dir.join(format!("f{}", number - 1)), &path).expect("a link");
                continue;
            }
            _ => {
                let len = random.usize(..3000);
                write(&path, random_bytes(len, number as u64)).expect("a file");
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
                set_permissions(&path, bits).expect("a mode");
                age(&path, &mut random);
            }
        }
    }
    for dir in dirs.iter().rev() {
        let bits = Permissions::from_mode([0o755, 0o700, 0o555, 0o1777][random.usize(..4)]);
        set_permissions(dir, bits).expect("a mode");
        age(dir, &mut random);
    }
}

fn age(path: &Path, random: &mut fastrand::Rng) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(random.u64(..1 << 60));
    // A file that its owner may not write to can have its times set all the same.
    let file = File::open(path).expect("it can be opened");
    file.set_times(FileTimes::new().set_modified(time).set_accessed(time)).expect("its times");
}

#[test]
fn nobody_can_look_in_before_the_mode_is_set() {
    let dir = tempfile::tempdir().expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    create_dir_all(&src).expect("a directory");
    write(src.join("f"), random_bytes(100_000, 5)).expect("a file");
    set_permissions(src.join("f"), Permissions::from_mode(0o666)).expect("a mode");
    set_permissions(&src, Permissions::from_mode(0o777)).expect("a mode");
    let seen = std::sync::Mutex::new(Vec::new());
    let listener = Listener::with_meanwhile(|| {
        let mode = |path: &Path| metadata(path).expect("what is being made").mode() & 0o7777;
        seen.lock().expect("a list").push((mode(&dst), mode(&dst.join("f"))));
    });
    assert_eq!(copy_exactly(&src, &dst, &Options::archive(), &listener).failures, 0);
    drop(listener);
    let seen = seen.into_inner().expect("a list");
    assert!(!seen.is_empty());
    assert!(seen.iter().all(|modes| *modes == (0o700, 0o600)), "{seen:?}");
    assert_eq!(metadata(&dst).expect("the copy").mode() & 0o7777, 0o777);
    assert_eq!(metadata(dst.join("f")).expect("the copy").mode() & 0o7777, 0o666);
}

#[test]
fn access_control_lists_are_kept_and_none_is_inherited() {
    use rustix::fs::{getxattr, removexattr};
    each_fs(|kind, dir| {
        let (src, to) = (dir.join("s"), dir.join("to"));
        create_dir_all(src.join("d")).expect("a directory");
        create_dir_all(&to).expect("a directory");
        write(src.join("plain"), "1").expect("a file");
        write(src.join("listed"), "1").expect("a file");
        let access = acl(7);
        setxattr(src.join("listed"), "system.posix_acl_access", &access, XattrFlags::empty())
            .expect("an access control list");
        // What is made here would get a list that the sources do not have.
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
        copy_well(&src, &to.join("t"), &options);
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
fn nobody_can_look_in_by_a_list_of_the_directory() {
    each_fs(|kind, dir| {
        let (src, to) = (dir.join("s"), dir.join("to"));
        create_dir_all(src.join("d")).expect("a directory");
        create_dir_all(&to).expect("a directory");
        for (name, mode) in [("d/plain", 0o640), ("d/listed", 0o664)] {
            write(src.join(name), random_bytes(100_000, 5)).expect("a file");
            set_permissions(src.join(name), Permissions::from_mode(mode)).expect("a mode");
        }
        set_list(&src.join("d/listed"), "system.posix_acl_access", &acl(7));
        set_list(&to, "system.posix_acl_default", &acl(8));
        let seen = std::sync::Mutex::new(Vec::new());
        let listener = Listener::with_meanwhile(|| {
            for name in ["t", "t/d", "t/d/plain", "t/d/listed"] {
                if let Ok(made) = metadata(to.join(name)) {
                    seen.lock().expect("a list").push((name, made.mode() & 0o7777));
                }
            }
        });
        let options = Options::archive();
        assert_eq!(copy_exactly(&src, &to.join("t"), &options, &listener).failures, 0, "{kind}");
        drop(listener);
        let seen = seen.into_inner().expect("a list");
        assert!(seen.iter().any(|(name, _)| *name == "t/d"), "{kind}: {seen:?}");
        // The group's bits are the mask of the list that was inherited. One file is whole already
        // when the other is being copied.
        let done = [("t/d/plain", 0o640), ("t/d/listed", 0o664)];
        let private =
            |(name, mode): &(&str, u32)| mode & 0o077 == 0 || done.contains(&(*name, *mode));
        assert!(seen.iter().all(private), "{kind}: {seen:?}");
        let list = |path: &Path| {
            let mut buffer = [0; 256];
            let len = rustix::fs::getxattr(path, "system.posix_acl_access", &mut buffer[..]);
            len.ok().map(|len| buffer[..len].to_vec())
        };
        assert_eq!(list(&to.join("t/d/plain")), None, "{kind}");
        assert_eq!(list(&to.join("t/d/listed")), Some(acl(7)), "{kind}");
        let differences = tree_differences(&src, &to.join("t"), Aspects::ALL);
        assert_eq!(differences.expect("both can be read"), [""; 0], "{kind}");
    });
}

#[test]
fn a_list_that_cannot_be_kept_opens_nothing_to_the_group() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "mounting needs root");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (src, to) = (dir.path().join("s"), dir.path().join("to"));
    create_dir_all(&to).expect("a directory");
    // It keeps no lists.
    let mount = ["-t", "ramfs", "ramfs"];
    let mounted = std::process::Command::new("mount").args(mount).arg(&to).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return testfs::skip(&testfs::test_name(), "no ramfs can be mounted here");
    }
    let mut made = Vec::new();
    for (group, mode) in [(0, 0o604), (4, 0o644), (6, 0o664)] {
        write(&src, "1").expect("a file");
        set_list(&src, "system.posix_acl_access", &acl_with_group(7, group));
        assert_eq!(metadata(&src).expect("the source").mode() & 0o7777, 0o664);
        for existing in [false, true] {
            let dst = to.join(format!("{group}"));
            assert_eq!(dst.exists(), existing);
            let listener = Listener::default();
            let outcome = copy_exactly(&src, &dst, &Options::archive(), &listener);
            made.push((outcome.failures, mode, metadata(&dst).map(|made| made.mode() & 0o7777)));
        }
    }
    let unmounted = std::process::Command::new("umount").arg(&to).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    for (failures, expected, mode) in made {
        assert_eq!((failures, mode.expect("the copy")), (1, expected));
    }
}

fn set_list(path: &Path, which: &str, list: &[u8]) {
    setxattr(path, which, list, XattrFlags::empty()).expect("an access control list");
}

/// A list with one named user, in the form that the kernel gives it.
fn acl(user: u32) -> Vec<u8> {
    acl_with_group(user, 4)
}

/// The same with these permissions for the owning group.
fn acl_with_group(user: u32, group: u16) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    let mut entry = |tag: u16, permissions: u16, id: u32| {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    };
    entry(0x01, 6, u32::MAX);
    entry(0x02, 6, user);
    entry(0x04, group, u32::MAX);
    entry(0x10, 6, u32::MAX);
    entry(0x20, 4, u32::MAX);
    bytes
}
