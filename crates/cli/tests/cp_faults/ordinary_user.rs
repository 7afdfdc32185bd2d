//! What an ordinary user may not do.

use std::fs::{Permissions, metadata, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use testfs::{is_root, skip, stderr, stdout, test_name};

use crate::{as_nobody, check, check_content, check_success, open_dir_with};

#[test]
fn directories_that_may_not_be_written_to_are_filled_first() {
    let dir = open_dir_with("s/d/f=1 mode=444; s/d/ mode=555; s/ mode=555");
    check_success(&as_nobody(&dir, "-a s t"), "");
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
    for (options, names, said) in [
        ("--remove-destination", 1, ""),
        ("-v --remove-destination", 1, "'a' -> 'b'\n"),
        ("-av", 2, "'a' -> 'b'\n"),
        ("-bv", 1, "'a' -> 'b'\n"),
        ("-v --backup=numbered", 1, "'a' -> 'b'\n"),
        ("-b --remove-destination", 1, ""),
        ("-f", 1, ""),
    ] {
        // What a backup would have replaced, only to be renamed back itself.
        let dir = open_dir_with("a=new mode=0; b=old; b~=older");
        if names == 2 {
            std::fs::hard_link(dir.path().join("b"), dir.path().join("c")).expect("linked");
        }
        let output = as_nobody(&dir, &format!("{options} a b"));
        check(&output, 1, "cp: cannot open 'a' for reading: Permission denied\n", options);
        assert_eq!(stdout(&output), said, "{options}");
        check_content(dir.path().join("b"), "old", options);
        check_content(dir.path().join("b~"), "older", options);
        assert_eq!(metadata(dir.path().join("b")).expect("looked at").nlink(), names, "{options}");
    }
}

#[test]
fn rights_lent_by_an_owner_are_not_lent_by_another() {
    if !is_root() {
        return skip(&test_name(), "to give files away needs root");
    }
    let dir = open_dir_with("a=1 own=4321:4321 mode=6755");
    check_success(&as_nobody(&dir, "-p a b"), "");
    let made = metadata(dir.path().join("b")).expect("looked at");
    assert_eq!((made.uid(), made.mode() & 0o7777), (65_534, 0o755));
}

#[test]
fn a_dry_run_knows_what_may_not_be_linked_or_replaced() {
    let dir = open_dir_with(
        "private=1 mode=600; read=1 mode=644; shared=1 mode=666; lent=1 mode=4777; link->shared; \
         source=new mode=444; old=of\\sanother\\slength mode=444",
    );
    for options in ["-l", "-lP", "-lf"] {
        for name in ["private", "read", "shared", "lent", "link"] {
            dry_run_and_real(dir.path(), &format!("{options} {name} new"));
            let _ = std::fs::remove_file(dir.path().join("new"));
        }
    }
    for option in ["--atomic", "--resume", "--durable"] {
        let said = dry_run_and_real(dir.path(), &format!("{option} source old"));
        assert!(said.contains("'old': Permission denied"), "{option}: {said}");
    }
}

/// What an ordinary user's copy says, which is what the dry run before it says.
fn dry_run_and_real(dir: &Path, line: &str) -> String {
    let [dry, real] = ["--dry-run", ""].map(|option| as_nobody(dir, &format!("{option} {line}")));
    check(&dry, real.status.code().expect("it ends"), &stderr(&real), line);
    stderr(&real)
}
