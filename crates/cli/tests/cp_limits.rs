//! Trees with large files: within few descriptors, deeper than what stays open, and while they change.

use std::fs::{create_dir_all, write};
use std::path::Path;

use testfs::{Aspects, assert_equal_trees, random_bytes, skip, stderr, test_name};

use crate::{check_content, dir_with, fixture, shell, strace, within};

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
    for descriptors in [17, 20, 32, 64] {
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
    let level = |number| dir.path().join("s").join("c/".repeat(number));
    let wide = (0..6000).map(|number| level(FIRST - 3).join(format!("z{number}")));
    let beside = (0..3).map(|number| level(FIRST + OPEN - 4).join(format!("s{number}/x/y")));
    for dir in wide.chain(beside).chain([level(FIRST + OPEN + 3)]) {
        create_dir_all(dir).expect("created");
    }
    let large = random_bytes(9 << 20, 1);
    for number in FIRST - 3..=FIRST {
        write(level(number).join("large"), &large).expect("written");
    }
    // The rate stands for a slow medium: the files are pending for long.
    check(1024, dir.path(), "-a --limit-rate=40M s t");
}

/// The last large file is looked at, then copied. What has become a directory meanwhile is copied as
/// one.
#[test]
fn a_large_file_that_has_become_a_directory_is_entered() {
    let dir = dir_with("s/large#9M:1");
    let large = dir.path().join("s/large");
    // The first call looks at it. The second one is to copy it, and waits.
    let script = "for i in {1..999}; do grep -qs openat trace && sleep .5 && rm s/large && \
                  mkdir s/large && echo -n x >s/large/inner && break; sleep .01; done";
    let mut other = shell(&dir, script).spawn().expect("started");
    // By its name in a directory, or by its path.
    let traced = format!("-P large -P {} -e trace=openat", large.display());
    let options = format!("{traced} -e inject=openat:delay_enter=3000000:when=2");
    let output = strace(&dir, &options, "-rT --jobs=2 s t");
    other.wait().expect("ended");
    let Some(output) = output else { return };
    if !large.is_dir() {
        return skip(&test_name(), "strace does not follow the file");
    }
    if output.status.success() {
        check_content(dir.path().join("t/large/inner"), "x", stderr(&output));
    } else {
        assert!(stderr(&output).contains("large"), "{output:?}");
    }
}
