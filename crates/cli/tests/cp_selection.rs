//! A large file is copied by the engine that is the fastest at the time, whichever that is: strace
//! delays the calls of one engine after the other.

use std::fs::write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testfs::{Aspects, FsKind, fs, random_bytes, skip, stderr, test_name, tree_differences};

/// Enough that the engines are measured.
const BYTES: usize = 160 << 20;

/// What each call is delayed by, in microseconds. A call moves up to 1 MiB, which takes 0.1 ms.
const DELAY_MICROS: u32 = 4000;

/// Bytes of a file among many, and their number: engines are compared across them.
const SHORT_BYTES: usize = 160 << 10;
const SHORT_FILES: usize = 800;

/// Copies `src` with these options while `calls` take longer. Returns the bytes that each engine has moved; none
/// where strace cannot be run.
fn copy_with_slow(calls: &str, options: &[&str], dir: &Path) -> Option<Vec<(String, u64)>> {
    let (src, dst, receipt) = (dir.join("src"), dir.join("dst"), dir.join("receipt"));
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
    command.arg(format!("inject={calls}:delay_exit={DELAY_MICROS}"));
    command.args([env!("CARGO_BIN_EXE_haulage"), "cp", "--reflink=auto", "--receipt"]);
    command.arg(&receipt).args(options).args([&src, &dst]).env("HAULAGE_PROFILE", "");
    let output = command.output().ok().filter(|_| receipt.exists());
    let Some(output) = output else {
        skip(&test_name(), "strace cannot be run here");
        return None;
    };
    assert!(output.status.success(), "{calls}: {}", stderr(&output));
    let aspects = Aspects { mtimes: false, ..Aspects::ALL };
    let differences = tree_differences(&src, &dst, aspects).expect("both can be read");
    assert!(differences.is_empty(), "{calls}: {differences:?}");
    let text = std::fs::read_to_string(&receipt).expect("a receipt");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let entries = lines.filter(|line| line["record"] == "entry");
    let attempts = entries.filter_map(|entry| entry["attempts"].as_array().cloned()).flatten();
    let mut moved: Vec<(String, u64)> = Vec::new();
    for attempt in attempts {
        let variant = attempt["variant"].as_str().expect("a variant");
        let (engine, _) = variant.split_once([':', '@']).unwrap_or((variant, ""));
        let bytes = attempt["bytes"].as_u64().expect("a number");
        match moved.iter_mut().find(|(known, _)| known == engine) {
            Some((_, sum)) => *sum += bytes,
            None => moved.push((engine.to_owned(), bytes)),
        }
    }
    Some(moved)
}

/// Each engine in turn is slow, and copies less than `share` of `bytes`.
fn check_slow_engines(dir: &Path, options: &[&str], bytes: u64, share: f64) {
    for (calls, engine) in [
        ("pread64,pwrite64", "read_write"),
        ("splice", "splice"),
        ("copy_file_range", "copy_file_range"),
    ] {
        let Some(moved) = copy_with_slow(calls, options, dir) else { return };
        let all: u64 = moved.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, bytes, "{calls}: {moved:?}");
        let slow = moved.iter().find(|(known, _)| known == engine).map_or(0, |(_, bytes)| *bytes);
        assert!((slow as f64) < share * all as f64, "{calls}: {moved:?}");
        let dst = dir.join("dst");
        match dst.is_dir() {
            true => std::fs::remove_dir_all(dst).expect("the copy"),
            false => std::fs::remove_file(dst).expect("the copy"),
        }
    }
}

#[test]
fn an_engine_that_is_slow_copies_the_smaller_part() {
    let Some(scratch) = fs(FsKind::Ext4) else { return };
    write(scratch.join("src"), random_bytes(BYTES, 1)).expect("a file");
    check_slow_engines(scratch.path(), &[], BYTES as u64, 0.5);
}

/// One worker has copied a quarter of the files before it compares engines.
#[test]
fn an_engine_that_is_slow_copies_the_smaller_part_of_many_files() {
    let Some(scratch) = fs(FsKind::Ext4) else { return };
    std::fs::create_dir(scratch.join("src")).expect("a directory");
    let bytes = random_bytes(SHORT_BYTES + SHORT_FILES, 2);
    for file in 0..SHORT_FILES {
        let name = scratch.join("src").join(format!("file{file}"));
        write(name, &bytes[file..file + SHORT_BYTES]).expect("a file");
    }
    let all = (SHORT_BYTES * SHORT_FILES) as u64;
    check_slow_engines(scratch.path(), &["-r", "--jobs=1"], all, 0.5);
}
