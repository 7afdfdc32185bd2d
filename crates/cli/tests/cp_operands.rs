//! Many operands are shared among workers, and it is as if they were copied one after another.

use std::fs::write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;

use testfs::{Aspects, assert_equal_trees, random_bytes, skip, stderr, test_name};

use crate::{HAULAGE, as_nobody, check, check_success, fixture, shell};

const FILES: usize = 200;

/// Files, and a target in which some names lead back to them.
fn make(dir: &Path) {
    for number in 0..FILES {
        write(dir.join(format!("f{number}")), random_bytes(number * 7, 1)).expect("written");
    }
    fixture::add("x/f60=1; x/other=22; x/F61=333; x/again==f120; t/old/", dir);
    // What goes to these names is written to files that are operands as well.
    fixture::add("t/f70->../f130; t/f80==f140", dir);
    // A source that the operand before it makes, and one that never is.
    fixture::add("late->t/f90; never->nowhere", dir);
}

fn operands() -> Vec<String> {
    let mut operands: Vec<String> = (0..FILES).map(|number| format!("f{number}")).collect();
    for (at, name) in [
        (190, "f5"),
        (180, "x/F61"),
        (170, "old"),
        (160, "x"),
        (150, "missing"),
        (125, "x/again"),
        (100, "never"),
        (91, "late"),
        (75, "x/f60"),
        (50, "x/other"),
    ] {
        operands.insert(at, name.into());
    }
    operands
}

/// Runs `program` in a tree of its own, which it makes in `dir`.
fn run(program: &str, options: &str, dir: &Path) -> Output {
    make(dir);
    let mut command = testfs::command(program);
    command.arg0("cp").args(options.split_whitespace()).args(operands()).arg("t");
    command.current_dir(dir).env("LC_ALL", "C").output().expect("ran")
}

#[test]
fn many_operands_are_copied_as_gnu_copies_them() {
    for options in ["", "-p", "-a", "-L --preserve=links", "-u", "-f"] {
        let dirs = [(); 2].map(|()| tempfile::tempdir().expect("created"));
        let gnu = run("/bin/cp", options, dirs[0].path());
        let refused = stderr(&gnu).contains("will not overwrite just-created");
        // With -u what was just made is up to date.
        if !refused && options != "-u" {
            return skip(&test_name(), "/bin/cp is not GNU's");
        }
        let ours = run(HAULAGE, &format!("--jobs=8 {options}"), dirs[1].path());
        check(&ours, gnu.status.code().expect("it ends"), &stderr(&gnu), options);
        // Each tree was made at its own time.
        let aspects = Aspects { mtimes: false, ..Aspects::ALL };
        assert_equal_trees(dirs[0].path(), dirs[1].path(), aspects, options);
    }
}

#[test]
fn failures_during_the_copy_are_reported_in_operand_order() {
    let dir = tempfile::tempdir().expect("created");
    make(dir.path());
    // So long that a thread which met a short one first would speak up before its turn.
    fixture::add("f0#3M:1; new/", &dir);
    // Nobody may write more than 1024 bytes to a file.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" cp --jobs=8 f{0..199} new";
    let output = shell(&dir, script).output().expect("ran");
    let said = stderr(&output);
    let number = |line: &str| {
        let name = line.split_once("'new/f").map(|(_, rest)| rest.split('\'').next())??;
        name.parse::<usize>().ok()
    };
    let mut numbers: Vec<usize> = said.lines().filter_map(number).collect();
    numbers.dedup();
    let long = (0..FILES).filter(|number| *number == 0 || number * 7 > 1024);
    assert!(long.eq(numbers), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

/// The list of a file that its owner may not write takes the right to set what comes after it.
#[test]
fn an_ordinary_user_keeps_attributes_beside_an_access_control_list() {
    testfs::each_fs(|kind, dir| {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o777)).expect("mode set");
        let owner = if testfs::is_root() { "own=65534:65534" } else { "" };
        fixture::add(&format!("src=content user.a=value acl mode=444 {owner}"), dir);
        let output = as_nobody(dir, "-a src dst");
        check_success(&output, kind);
        let mut value = [0; 9];
        let len = rustix::fs::getxattr(dir.join("dst"), "user.a", &mut value).expect("kept");
        assert_eq!(&value[..len], b"value", "{kind}");
    });
}
