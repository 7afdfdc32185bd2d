//! Trees with large files: within few descriptors, deeper than what stays open, and while they change.

use std::fs::{create_dir, create_dir_all, write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testfs::{Aspects, assert_equal_trees, random_bytes, skip, stderr, test_name};

use crate::within;

/// Copies `s` to `t` in `dir` with at most `descriptors`.
fn check(descriptors: u32, dir: &Path, args: &str) {
    let limit = format!("--nofile={descriptors}:{descriptors}");
    let words: Vec<&str> = args.split(' ').collect();
    let Some(output) = within(dir, &limit, &words) else { return };
    let case = format!("{descriptors}: {args}");
    assert_eq!(stderr(&output), "", "{case}");
    assert!(output.status.success(), "{case}: {output:?}");
    let (src, dst) = (dir.join("s"), dir.join("t"));
    assert_equal_trees(&src, &dst, Aspects::ALL, case);
    std::fs::remove_dir_all(&dst).expect("removed");
}

/// With few descriptors one worker copies all, and gives no large file away.
#[test]
fn a_tree_with_large_files_is_copied_within_few_descriptors() {
    let dir = tempfile::tempdir().expect("created");
    let large = random_bytes(9 << 20, 1);
    for name in ["a", "b", "c"] {
        let sub = dir.path().join("s").join(name);
        create_dir_all(sub.join("sub")).expect("created");
        for number in 0..150 {
            write(sub.join(format!("f{number}")), "small").expect("written");
        }
        write(sub.join("large"), &large).expect("written");
        write(sub.join("sub/x"), "x").expect("written");
    }
    for descriptors in [64, 80, 100, 256] {
        for args in ["-a s t", "-a --no-cache s t", "-a --durable s t"] {
            check(descriptors, dir.path(), args);
        }
    }
}

/// What an engine keeps from file to file must not be missing where the next directory is opened.
#[test]
fn engines_keep_no_descriptors_that_directories_need() {
    let dir = tempfile::tempdir().expect("created");
    let large = random_bytes(3 << 20, 1);
    let mut path = dir.path().join("s");
    for level in 0..12 {
        create_dir(&path).expect("created");
        write(path.join("large"), &large).expect("written");
        path.push(format!("d{level}"));
    }
    for descriptors in [17, 18, 20, 24, 32, 64] {
        for engine in ["read_write", "splice", "splice:1M@4", "io_uring", "copy_file_range"] {
            check(descriptors, dir.path(), &format!("-a --jobs=4 --engine={engine} s t"));
        }
    }
}

/// Directories far above are closed, unless a worker has a large file of theirs; and the walk comes
/// back to them several times.
#[test]
fn a_deep_tree_with_large_files_in_many_levels_is_copied() {
    /// Levels that stay open with this many descriptors, at least.
    const OPEN: usize = 16;
    const FIRST: usize = 6;
    let dir = tempfile::tempdir().expect("created");
    let large = random_bytes(9 << 20, 1);
    let mut path = dir.path().join("s");
    create_dir(&path).expect("created");
    for level in 1..=FIRST + OPEN + 3 {
        if level == FIRST - 2 {
            for number in 0..6000 {
                create_dir(path.join(format!("z{number}"))).expect("created");
            }
        }
        if level == FIRST + OPEN - 3 {
            for number in 0..3 {
                create_dir_all(path.join(format!("s{number}/x/y"))).expect("created");
            }
        }
        path.push("c");
        create_dir(&path).expect("created");
        if (FIRST - 3..=FIRST).contains(&level) {
            write(path.join("large"), &large).expect("written");
        }
    }
    // The rate stands for a slow medium: the files are pending for long.
    check(1024, dir.path(), "-a --limit-rate=40M s t");
}

/// The last large file is looked at, then copied. What has become a directory meanwhile is copied as
/// one.
#[test]
fn a_large_file_that_has_become_a_directory_is_entered() {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    create_dir(&src).expect("created");
    write(src.join("large"), random_bytes(9 << 20, 1)).expect("written");
    let mut command = Command::new("strace");
    // By its name in a directory, or by its path.
    command.args(["-f", "-qq", "-o", "trace", "-P", "large", "-P"]).arg(src.join("large"));
    // The first call looks at it, the second one is to copy it.
    command.args(["-e", "trace=openat", "-e", "inject=openat:delay_enter=3000000:when=2"]);
    command.args([env!("CARGO_BIN_EXE_haulage"), "cp", "-rT", "--jobs=2", "s", "t"]);
    command.current_dir(dir.path()).env("HAULAGE_PROFILE", "").stderr(Stdio::piped());
    let Ok(running) = command.spawn() else {
        return skip(&test_name(), "strace cannot be run here");
    };
    // It has been looked at when its copy is about to be made.
    let looked = || {
        let trace = std::fs::read_to_string(dir.path().join("trace")).unwrap_or_default();
        trace.contains("openat(")
    };
    let started = Instant::now();
    while !looked() && started.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !looked() {
        let _ = running.wait_with_output();
        return skip(&test_name(), "strace does not follow the file");
    }
    std::thread::sleep(Duration::from_millis(500));
    std::fs::remove_file(src.join("large")).expect("the file");
    create_dir(src.join("large")).expect("created");
    write(src.join("large/inner"), "x").expect("written");
    let output = running.wait_with_output().expect("it ends");
    if output.status.success() {
        assert_eq!(std::fs::read(dst.join("large/inner")).expect("read"), b"x", "{output:?}");
    } else {
        assert!(stderr(&output).contains("large"), "{output:?}");
    }
}
