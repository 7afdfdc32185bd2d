//! Many operands are shared among workers, and it is as if they were copied one after another.

use std::fs::{create_dir, hard_link, write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use testfs::{Aspects, assert_equal_trees, random_bytes, skip, test_name};

const FILES: usize = 200;

/// Files, and a target in which some names lead back to them.
fn make(dir: &Path) {
    for name in ["x", "t", "t/old"] {
        create_dir(dir.join(name)).expect("created");
    }
    for number in 0..FILES {
        write(dir.join(format!("f{number}")), random_bytes(number * 7, 1)).expect("written");
    }
    for name in ["x/f60", "x/other", "x/F61"] {
        write(dir.join(name), name).expect("written");
    }
    hard_link(dir.join("f120"), dir.join("x/again")).expect("linked");
    // What goes to these names is written to files that are operands as well.
    symlink("../f130", dir.join("t/f70")).expect("linked");
    hard_link(dir.join("f140"), dir.join("t/f80")).expect("linked");
    // A source that the operand before it makes, and one that never is.
    symlink("t/f90", dir.join("late")).expect("linked");
    symlink("nowhere", dir.join("never")).expect("linked");
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

/// Runs `program` in a tree of its own, of which it returns the whole.
fn run(program: &str, before: &[&str], options: &[&str], dir: &Path) -> (Output, PathBuf) {
    make(dir);
    let mut command = testfs::command(program);
    command.arg0("cp").args(before).args(options).args(operands()).arg("t").current_dir(dir);
    (command.env("LC_ALL", "C").output().expect("it starts"), dir.to_owned())
}

#[test]
fn many_operands_are_copied_as_gnu_copies_them() {
    for options in [&[][..], &["-p"], &["-a"], &["-L", "--preserve=links"], &["-u"], &["-f"]] {
        let dirs = [(); 2].map(|()| tempfile::tempdir().expect("created"));
        let (gnu, theirs) = run("/bin/cp", &[], options, dirs[0].path());
        let refused =
            String::from_utf8_lossy(&gnu.stderr).contains("will not overwrite just-created");
        // With -u what was just made is up to date.
        if !refused && options != ["-u"] {
            return skip(&test_name(), "/bin/cp is not GNU's");
        }
        let haulage = env!("CARGO_BIN_EXE_haulage");
        let (said, ours) = run(haulage, &["--jobs=8"], options, dirs[1].path());
        let text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(text(&said), text(&gnu), "{options:?}");
        assert_eq!(said.status.code(), gnu.status.code(), "{options:?}");
        // Each tree was made at its own time.
        let aspects = Aspects { mtimes: false, ..Aspects::ALL };
        assert_equal_trees(&theirs, &ours, aspects, format_args!("{options:?}"));
    }
}

#[test]
fn failures_during_the_copy_are_reported_in_operand_order() {
    let dir = tempfile::tempdir().expect("created");
    make(dir.path());
    // So long that a thread which met a short one first would speak up before its turn.
    write(dir.path().join("f0"), random_bytes(3 << 20, 1)).expect("written");
    create_dir(dir.path().join("new")).expect("created");
    // Nobody may write more than 512 bytes to a file.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" cp --jobs=8 \"$@\" new";
    let output = testfs::command("/bin/sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_haulage")])
        .args((0..FILES).map(|number| format!("f{number}")))
        .current_dir(dir.path())
        .env("LC_ALL", "C")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = |line: &str| {
        let name = line.split_once("'new/f").map(|(_, rest)| rest.split('\'').next())??;
        name.parse::<usize>().ok()
    };
    let numbers: Vec<usize> = said.lines().filter_map(number).collect();
    let long = (0..FILES).filter(|number| *number == 0 || number * 7 > 512);
    assert!(long.eq(deduplicated(&numbers)), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

fn deduplicated(numbers: &[usize]) -> Vec<usize> {
    let mut numbers = numbers.to_vec();
    numbers.dedup();
    numbers
}

/// The list of a file that its owner may not write takes the right to set what comes after it.
#[test]
fn an_ordinary_user_keeps_attributes_beside_an_access_control_list() {
    testfs::each_fs(|kind, dir| {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o777)).expect("mode set");
        let src = dir.join("src");
        std::fs::write(&src, "content").expect("written");
        let none = rustix::fs::XattrFlags::empty();
        let entries = [(1_u16, u32::MAX), (2, 1001), (4, u32::MAX), (16, u32::MAX), (32, u32::MAX)];
        let entry = |(tag, id): (u16, u32)| {
            [&tag.to_le_bytes()[..], &4_u16.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let list = [2_u32.to_le_bytes().to_vec(), entries.map(entry).concat()].concat();
        rustix::fs::setxattr(&src, "user.a", b"value", none).expect("set");
        rustix::fs::setxattr(&src, "system.posix_acl_access", &list, none).expect("set");
        if testfs::is_root() {
            std::os::unix::fs::chown(&src, Some(65534), Some(65534)).expect("given");
        }
        let Some(output) = crate::as_nobody(dir, &["-a", "src", "dst"]) else { return };
        assert!(output.status.success(), "{kind}: {}", testfs::stderr(&output));
        let mut value = [0; 9];
        let len = rustix::fs::getxattr(dir.join("dst"), "user.a", &mut value).expect("kept");
        assert_eq!(&value[..len], b"value", "{kind}");
    });
}
