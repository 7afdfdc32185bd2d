//! One file with two names: never truncated, never copied twice.

use std::fs::{create_dir, metadata, read};
use std::os::unix::fs::MetadataExt;

use testfs::fixture;
use tree::{Backup, BackupKind, Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly, copy_into, home, make_files};

#[test]
fn the_same_file_is_recognised_through_a_bind_mount() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "mounting needs root");
    }
    let (_dir, at) = home();
    let (here, there) = (at("here"), at("there"));
    create_dir(&there).expect("created");
    make_files(&here, &["a"], "precious");
    let mounted = std::process::Command::new("mount").arg("--bind").args([&here, &there]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return testfs::skip(&testfs::test_name(), "a directory cannot be mounted twice here");
    }
    let recorder = Recorder::default();
    let options = Options { force: true, ..Options::default() };
    let outcome = copy_exactly(&here.join("a"), &there.join("a"), &options, &recorder);
    let content = read(here.join("a"));
    let unmounted = std::process::Command::new("umount").arg(&there).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(outcome.failures, 1);
    assert_eq!(content.expect("the file"), b"precious");
}

#[test]
fn a_backup_replaces_no_file_of_this_run() {
    let kinds = [BackupKind::Simple, BackupKind::Existing, BackupKind::Numbered];
    for (kind, order) in kinds.iter().flat_map(|kind| [(kind, ["f~", "f"]), (kind, ["f", "f~"])]) {
        let (_dir, at) = home();
        fixture::add("s/f=f; s/f~=f~; t/f=old; t/f~=older", at(""));
        let backup = Some(Backup { kind: *kind, suffix: "~".into() });
        let recorder = Recorder::default();
        let options = Options { backup, ..Options::default() };
        let outcome = copy_into(&order.map(|f| at("s").join(f)), &at("t"), &options, &recorder);
        let held = |name: &str| read(at(name)).expect("read");
        let refuses = *kind != BackupKind::Numbered && order[0] == "f~";
        if refuses {
            let refused = Diagnostic::BackupDestroysCopy { dst: at("t/f"), backup: at("t/f~") };
            assert_eq!(recorder.reported(), [refused], "{kind:?}");
        }
        assert_eq!(outcome.failures, u64::from(refuses), "{kind:?} {order:?}");
        assert_eq!(held("t/f~"), b"f~", "{kind:?} {order:?}");
        assert_eq!(held("t/f"), if refuses { &b"old"[..] } else { b"f" }, "{kind:?} {order:?}");
    }
}

#[test]
fn a_backup_replaces_no_copy_of_another_operand() {
    // Files of the operands, and files of a directory of the first operand.
    for (files, first) in [(&["x/f", "y/f", "t/f"][..], "t"), (&["x/d/f", "x/d/f~", "y/d/f"], "x")]
    {
        let (_dir, at) = home();
        create_dir(at("t")).expect("created");
        for name in files {
            make_files(&at(""), &[name], &name[..1]);
        }
        let backup = Some(Backup { kind: BackupKind::Simple, suffix: "~".into() });
        let options = Options { backup, recursive: true, ..Options::default() };
        let sources = ["x/.", "y/."].map(&at);
        assert_eq!(copy_into(&sources, &at("t"), &options, &<_>::default()).failures, 1);
        let held = |name: &str| read(at("t").join(&files[0][2..]).with_file_name(name)).ok();
        assert_eq!(held("f").as_deref(), Some(&b"x"[..]), "{files:?}");
        assert_eq!(held("f~").as_deref(), Some(first.as_bytes()), "{files:?}");
    }
}

/// Another operand takes the name of the first copy before the second hard link is copied.
#[test]
fn a_hard_link_whose_first_copy_was_renamed_is_copied() {
    let backup = |kind| Some(Backup { kind, suffix: "~".into() });
    let (numbered, simple) = (backup(BackupKind::Numbered), backup(BackupKind::Simple));
    for (backup, atomic, stands, left) in [
        (numbered.clone(), false, false, Some("x.~1~")),
        (numbered, true, true, Some("x.~1~")),
        (simple, false, false, Some("x~")),
        (None, true, false, None),
        (None, true, true, None),
    ] {
        let what = format!("{backup:?}, atomic {atomic}, stands {stands}");
        let (_dir, at) = home();
        fixture::add("a/x=one; b/x=two; c/y==a/x; c/z==a/x; to/", at(""));
        if stands {
            fixture::add("to/y=old", at(""));
        }
        let options = Options { backup, atomic, ..Options::archive() };
        let sources = ["a/.", "b/.", "c/."].map(&at);
        let recorder = Recorder::default();
        let outcome = copy_into(&sources, &at("to"), &options, &recorder);
        assert_eq!((outcome.failures, recorder.reported()), (0, vec![]), "{what}");
        let names = [("x", "two"), ("y", "one"), ("z", "one")].into_iter();
        for (name, content) in names.chain(left.map(|left| (left, "one"))) {
            let copy = read(at("to").join(name)).expect("read");
            assert_eq!(copy, content.as_bytes(), "{what}: {name}");
        }
        let inode = |name: &str| metadata(at(name)).expect("looked at").ino();
        assert_eq!(inode("to/y"), inode("to/z"), "{what}");
    }
}

/// The first copy of a file has the name that another operand gives to the same file.
#[test]
fn a_copy_is_not_removed_to_be_linked_to_itself() {
    for (remove_destination, atomic) in [(false, false), (true, false), (false, true), (true, true)]
    {
        let what = format!("remove {remove_destination}, atomic {atomic}");
        let (_dir, at) = home();
        fixture::add("a/x=content; a/d/y==a/x; to/", at(""));
        let sources = ["a/d/y", "a/.", "a/d/.", "a/x"].map(&at);
        let options = Options { remove_destination, atomic, ..Options::archive() };
        let outcome = copy_into(&sources, &at("to"), &options, &<_>::default());
        assert_eq!(outcome.failures, 0, "{what}");
        let inode = |name: &str| metadata(at(name)).expect("looked at").ino();
        assert_eq!(read(at("to/x")).expect("read"), b"content", "{what}");
        for name in ["to/y", "to/d/y"] {
            assert_eq!(inode("to/x"), inode(name), "{what}: {name}");
        }
    }
}
