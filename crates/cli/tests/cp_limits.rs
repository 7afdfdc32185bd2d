//! Trees with large files: within few descriptors, deeper than what stays open, and while they change.

use std::fs::{create_dir, create_dir_all, write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testfs::{Aspects, assert_equal_trees, random_bytes, skip, stderr, test_name};

use crate::{HAULAGE, check_content, dir_with, fixture, within};

/// Copies `s` to `t` in `dir` with at most `descriptors`.
fn check(descriptors: u32, dir: &Path, line: &str) {
    let limit = format!("--nofile={descriptors}:{descriptors}");
    let Some(output) = within(dir, &limit, line) else { return };
    let case = format!("{descriptors}: {line}");
    crate::check(&output, 0, "", &case);
    let (src, dst) = (dir.join("s"), dir.join("t"));
    assert_equal_trees(&src, &dst, Aspects::ALL, case);
    std::fs::remove_dir_all(&dst).expect("removed");
}

/// With few descriptors one worker copies all, and gives no large file away.
#[test]
fn a_tree_with_large_files_is_copied_within_few_descriptors() {
    let dir = tempfile::tempdir().expect("created");
    for name in ["s/a", "s/b", "s/c"] {
        fixture::add(&format!("{name}/sub/x=x; {name}/large#9M:1"), &dir);
        for number in 0..150 {
            write(dir.path().join(name).join(format!("f{number}")), "small").expect("written");
        }
    }
    for descriptors in [64, 80, 100, 256] {
        for options in ["-a", "-a --no-cache", "-a --durable"] {
            check(descriptors, dir.path(), &format!("{options} s t"));
        }
    }
}

/// What an engine keeps from file to file must not be missing where the next directory is opened.
#[test]
fn engines_keep_no_descriptors_that_directories_need() {
    let dir = tempfile::tempdir().expect("created");
    for level in 0..12 {
        fixture::add(&format!("s/{}large#3M:1", "d/".repeat(level)), &dir);
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
    let dir = dir_with("s/large#9M:1");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    let mut command = Command::new("strace");
    // By its name in a directory, or by its path.
    command.args(["-f", "-qq", "-o", "trace", "-P", "large", "-P"]).arg(src.join("large"));
    // The first call looks at it, the second one is to copy it.
    command.args(["-e", "trace=openat", "-e", "inject=openat:delay_enter=3000000:when=2"]);
    command.args([HAULAGE, "cp", "-rT", "--jobs=2", "s", "t"]);
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
    fixture::add("s/large/inner=x", &dir);
    let output = running.wait_with_output().expect("it ends");
    if output.status.success() {
        check_content(dst.join("large/inner"), "x", stderr(&output));
    } else {
        assert!(stderr(&output).contains("large"), "{output:?}");
    }
}
