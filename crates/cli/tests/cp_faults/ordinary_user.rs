//! What an ordinary user may not do.

use std::fs::{Permissions, metadata, read, set_permissions, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use testfs::{is_root, skip, stderr, test_name};

use crate::{as_nobody, open_dir};

#[test]
fn directories_that_may_not_be_written_to_are_filled_first() {
    let dir = open_dir();
    std::fs::create_dir_all(dir.path().join("s/d")).expect("a tree");
    write(dir.path().join("s/d/f"), "1").expect("written");
    for name in ["s/d/f", "s/d", "s"] {
        let mode = if name == "s/d/f" { 0o444 } else { 0o555 };
        set_permissions(dir.path().join(name), Permissions::from_mode(mode)).expect("mode set");
    }
    let Some(output) = as_nobody(dir.path(), &["-a", "s", "t"]) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    for (name, mode) in [("t", 0o555), ("t/d", 0o555), ("t/d/f", 0o444)] {
        let made = metadata(dir.path().join(name)).expect("looked at");
        assert_eq!(made.mode() & 0o7777, mode, "{name}");
    }
    // So that the user of the tests can remove the directory.
    for name in ["s", "s/d", "t", "t/d"] {
        let _ = set_permissions(dir.path().join(name), Permissions::from_mode(0o777));
    }
}

#[test]
fn a_source_that_cannot_be_read_costs_no_destination() {
    let (own, linked) = (&["b"][..], &["b", "c"][..]);
    for (options, names, stdout) in [
        (&["--remove-destination"][..], own, ""),
        (&["-v", "--remove-destination"], own, "'a' -> 'b'\n"),
        (&["-av"], linked, "'a' -> 'b'\n"),
        (&["-bv"], own, "'a' -> 'b'\n"),
        (&["-v", "--backup=numbered"], own, "'a' -> 'b'\n"),
        (&["-b", "--remove-destination"], own, ""),
        (&["-f"], own, ""),
    ] {
        let dir = open_dir();
        write(dir.path().join("a"), "new").expect("written");
        set_permissions(dir.path().join("a"), Permissions::from_mode(0o0)).expect("mode set");
        write(dir.path().join("b"), "old").expect("written");
        // What a backup would have replaced, only to be renamed back itself.
        write(dir.path().join("b~"), "older").expect("written");
        for name in names.iter().filter(|name| **name != "b") {
            std::fs::hard_link(dir.path().join("b"), dir.path().join(name)).expect("linked");
        }
        let args: Vec<&str> = options.iter().copied().chain(["a", "b"]).collect();
        let Some(output) = as_nobody(dir.path(), &args) else { return };
        assert_eq!(output.status.code(), Some(1), "{options:?}");
        assert_eq!(stderr(&output), "cp: cannot open 'a' for reading: Permission denied\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{options:?}");
        let kept = read(dir.path().join("b")).ok();
        assert_eq!(kept.as_deref(), Some(&b"old"[..]), "{options:?}");
        let backup = read(dir.path().join("b~")).ok();
        assert_eq!(backup.as_deref(), Some(&b"older"[..]), "{options:?}");
        let links = metadata(dir.path().join("b")).expect("b").nlink();
        assert_eq!(links, names.len() as u64, "{options:?}");
    }
}

#[test]
fn rights_lent_by_an_owner_are_not_lent_by_another() {
    if !is_root() {
        return skip(&test_name(), "to give files away needs root");
    }
    let dir = open_dir();
    let src = dir.path().join("a");
    write(&src, "1").expect("written");
    chown(&src, Some(4321), Some(4321)).expect("an owner");
    set_permissions(&src, Permissions::from_mode(0o6755)).expect("mode set");
    let Some(output) = as_nobody(dir.path(), &["-p", "a", "b"]) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    let made = metadata(dir.path().join("b")).expect("looked at");
    assert_eq!((made.uid(), made.mode() & 0o7777), (65_534, 0o755));
}

#[test]
fn a_dry_run_knows_whose_files_may_not_be_linked() {
    let dir = open_dir();
    for (name, mode) in [("private", 0o600), ("read", 0o644), ("shared", 0o666), ("lent", 0o4777)] {
        write(dir.path().join(name), name).expect("written");
        set_permissions(dir.path().join(name), Permissions::from_mode(mode)).expect("mode set");
    }
    symlink("shared", dir.path().join("link")).expect("linked");
    for options in [&["-l"][..], &["-lP"], &["-lf"]] {
        for name in ["private", "read", "shared", "lent", "link"] {
            let _ = dry_run_and_real(dir.path(), &[options, &[name, "new"]].concat());
            let _ = std::fs::remove_file(dir.path().join("new"));
        }
    }
}

#[test]
fn a_dry_run_knows_what_may_not_be_replaced() {
    let dir = open_dir();
    write(dir.path().join("new"), "new").expect("written");
    write(dir.path().join("old"), "of another length").expect("written");
    for name in ["new", "old"] {
        set_permissions(dir.path().join(name), Permissions::from_mode(0o444)).expect("mode set");
    }
    for options in [&["--atomic"][..], &["--resume"], &["--durable"]] {
        let real = [options, &["new", "old"]].concat();
        let Some(said) = dry_run_and_real(dir.path(), &real) else { return };
        assert!(said.contains("'old': Permission denied"), "{said}");
    }
}

/// What an ordinary user's copy says, which is what the dry run before it says. `None` after a reported skip.
fn dry_run_and_real(dir: &Path, real: &[&str]) -> Option<String> {
    let dry = [&["--dry-run"], real].concat();
    let [dry, real_output] = [as_nobody(dir, &dry)?, as_nobody(dir, real)?];
    assert_eq!(stderr(&dry), stderr(&real_output), "{real:?}");
    assert_eq!(dry.status.code(), real_output.status.code(), "{real:?}");
    Some(stderr(&real_output))
}
