//! A large file is copied by the engine that is the fastest at the time, whichever that is: strace
//! delays the calls of one engine after the other.

use std::fs::{read, write};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testfs::{FsKind, fs, random_bytes, skip, stderr, test_name};

/// Enough that the engines are measured.
const BYTES: usize = 160 << 20;

/// What each call is delayed by, in microseconds. A call moves up to 1 MiB, which takes 0.1 ms.
const DELAY_MICROS: u32 = 4000;

/// Copies `src` while `calls` take longer. Returns the bytes that each engine has moved; none where
/// strace cannot be run.
fn copy_with_slow(calls: &str, dir: &Path) -> Option<Vec<(String, u64)>> {
    let (src, dst, receipt) = (dir.join("src"), dir.join("dst"), dir.join("receipt"));
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
    command.arg(format!("inject={calls}:delay_exit={DELAY_MICROS}"));
    command.args([env!("CARGO_BIN_EXE_haulage"), "cp", "--reflink=auto", "--receipt"]);
    command.args([&receipt, &src, &dst]).env("HAULAGE_PROFILE", "");
    let output = command.output().ok().filter(|_| receipt.exists());
    let Some(output) = output else {
        skip(&test_name(), "strace cannot be run here");
        return None;
    };
    assert!(output.status.success(), "{calls}: {}", stderr(&output));
    assert!(read(&src).expect("the source") == read(&dst).expect("the copy"), "{calls}");
    let text = std::fs::read_to_string(&receipt).expect("a receipt");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let entry = lines.into_iter().find(|line| line["record"] == "entry").expect("the file");
    let mut moved: Vec<(String, u64)> = Vec::new();
    for attempt in entry["attempts"].as_array().expect("a list") {
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

#[test]
fn an_engine_that_is_slow_copies_the_smaller_part() {
    let Some(scratch) = fs(FsKind::Ext4) else { return };
    write(scratch.join("src"), random_bytes(BYTES, 1)).expect("a file");
    for (calls, engine) in [
        ("pread64,pwrite64", "read_write"),
        ("splice", "splice"),
        ("copy_file_range", "copy_file_range"),
    ] {
        let Some(moved) = copy_with_slow(calls, scratch.path()) else { return };
        let all: u64 = moved.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, BYTES as u64, "{calls}: {moved:?}");
        let slow = moved.iter().find(|(known, _)| known == engine).map_or(0, |(_, bytes)| *bytes);
        assert!(slow < all / 2, "{calls}: {moved:?}");
        std::fs::remove_file(scratch.join("dst")).expect("the copy");
    }
}
