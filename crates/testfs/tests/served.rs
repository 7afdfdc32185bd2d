//! The in-process file system stores attributes and contents, and renames with the supported flags.

use std::fs::{File, Permissions, create_dir, hard_link, metadata, read, rename, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use testfs::{Costs, SlowFs};

#[test]
fn attributes_are_stored_and_directories_are_touched() {
    let Some(served) = SlowFs::mount(Costs::default()) else { return };
    let file = served.path().join("file");
    let before = metadata(served.path()).expect("the root").ctime_nsec();
    write(&file, "x").expect("a file");
    let after = metadata(served.path()).expect("the root").ctime_nsec();
    assert_ne!(before, after);
    std::fs::set_permissions(&file, Permissions::from_mode(0o4640)).expect("a mode");
    std::os::unix::fs::chown(&file, Some(12), Some(34)).expect("an owner");
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 7);
    File::options().write(true).open(&file).expect("it").set_modified(time).expect("a time");
    let found = metadata(&file).expect("its attributes");
    assert_eq!((found.uid(), found.gid()), (12, 34));
    assert_eq!(found.modified().expect("a time"), time);
    // A change of owner clears these bits.
    assert_eq!(found.mode() & 0o7777, 0o640);
}

#[test]
fn renames_replace_except_with_noreplace() {
    for without_flags in [false, true] {
        let costs = Costs { no_rename_flags: without_flags, ..Costs::default() };
        let Some(served) = SlowFs::mount(costs) else { return };
        let [a, b, c] = ["a", "b", "c"].map(|name| served.path().join(name));
        write(&a, "a").expect("a file");
        write(&b, "b").expect("a file");
        let carefully = |from, to| renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
        // The kernel detects an existing name by itself.
        assert_eq!(carefully(&a, &b), Err(Errno::EXIST));
        let due = if without_flags { Err(Errno::INVAL) } else { Ok(()) };
        assert_eq!(carefully(&a, &c), due);
        let from = if without_flags { &a } else { &c };
        rename(from, &b).expect("a rename");
        assert_eq!(read(&b).expect("a file"), b"a");
        assert!(!from.exists());
        create_dir(&a).expect("a directory");
        write(a.join("x"), "").expect("a file");
        create_dir(served.path().join("empty")).expect("a directory");
        let refused = rename(served.path().join("empty"), &a).expect_err("something is in it");
        assert_eq!(refused.raw_os_error(), Some(Errno::NOTEMPTY.raw_os_error()));
    }
}

#[test]
fn hard_links_work_unless_unsupported() {
    for no_hard_links in [None, Some(rustix::io::Errno::PERM)] {
        let Some(served) = SlowFs::mount(Costs { no_hard_links, ..Costs::default() }) else {
            return;
        };
        let [a, b] = ["a", "b"].map(|name| served.path().join(name));
        write(&a, "a").expect("a file");
        let linked = hard_link(&a, &b);
        assert_eq!(linked.is_err(), no_hard_links.is_some());
        assert_eq!(
            metadata(&a).expect("a file").nlink(),
            if no_hard_links.is_some() { 1 } else { 2 }
        );
        assert_eq!(read(&b).is_ok_and(|content| content == b"a"), no_hard_links.is_none());
    }
}
