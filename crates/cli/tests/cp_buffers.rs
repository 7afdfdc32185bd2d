//! Where the memory begins that `haulage cp` reads into and writes from, as strace shows it.

use std::fs::{File, create_dir, write};
use std::path::Path;

use testfs::{random_bytes, stderr};

use crate::strace;

/// A multiple of every buffer, so that no read begins inside of one.
const BYTES: usize = 4 << 20;

/// Other reads and writes of the program, as of /proc, are shorter.
const COUNT_MIN: usize = 32 << 10;

/// Runs `haulage cp ARGS` in `dir` under strace. The offsets from the start of a page at which reads
/// and writes of `files` began, or all long ones without `files`, each once; none where strace cannot
/// be run.
fn offsets(dir: &Path, args: &[&str], files: &[&str]) -> Option<Vec<usize>> {
    let calls = "read,write,pread64,pwrite64";
    let mut options =
        vec!["-e".into(), format!("trace={calls}"), "-e".into(), format!("raw={calls}")];
    options.extend(files.iter().map(|file| format!("-P{}", dir.join(file).display())));
    let output = strace(dir, &options, args)?;
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    let trace = std::fs::read_to_string(dir.join("trace")).expect("strace's output");
    let count_min = if files.is_empty() { COUNT_MIN } else { 0 };
    let mut offsets: Vec<usize> = trace
        .lines()
        .filter_map(buffer_of_call)
        .filter(|&(_, count)| count >= count_min)
        .map(|(address, _)| address % rustix::param::page_size())
        .collect();
    assert!(!offsets.is_empty(), "{args:?}: {trace}");
    offsets.sort_unstable();
    offsets.dedup();
    Some(offsets)
}

/// Address and length of the buffer in `PID read(0xFD, 0xADDRESS, 0xCOUNT…`; none of a line that ends
/// a call.
fn buffer_of_call(line: &str) -> Option<(usize, usize)> {
    let (call, args) = line.split_once('(')?;
    let is_copy = ["read", "write", "pread64", "pwrite64"].iter().any(|name| call.ends_with(name));
    let mut numbers = args.split([',', ')', ' ']).filter(|word| !word.is_empty()).map(|word| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        usize::from_str_radix(digits, 16).ok()
    });
    let (_, address, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
    is_copy.then_some((address, count))
}

#[test]
fn large_files_are_copied_through_whole_pages() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path().canonicalize().expect("a path");
    write(dir.join("a"), random_bytes(BYTES, 1)).expect("written");
    let hole = File::create(dir.join("hole")).expect("created");
    hole.set_len(BYTES as u64).expect("extended");
    for (args, expected) in [
        (["--engine=read_write", "a", "b"], 0),
        (["--engine=read_write:64K@2", "a", "b"], 0),
        (["--engine=read_write:64K,offset=16", "a", "b"], 16),
        (["--engine=read_write:64K,aligned", "a", "b"], 0),
        (["--engine=stdio:64K,setvbuf=64K", "a", "b"], 0),
        (["--sparse=always", "a", "b"], 0),
        (["--sparse=never", "hole", "b"], 0),
        (["--verify", "a", "b"], 0),
        (["--resume", "a", "b"], 0),
    ] {
        let Some(found) = offsets(&dir, &args, &[]) else { return };
        assert_eq!(found, [expected], "{args:?}");
        std::fs::remove_file(dir.join("b")).expect("removed");
    }
}

#[test]
fn small_files_are_copied_through_whole_pages() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path().canonicalize().expect("a path");
    create_dir(dir.join("s")).expect("created");
    let names: Vec<String> = (1..=5).map(|number| format!("s/{number}")).collect();
    for (name, bytes) in names.iter().zip([1, 100, 4096, 9000, 60_000]) {
        write(dir.join(name), random_bytes(bytes, 2)).expect("written");
    }
    let copies = names.iter().map(|name| name.replace('s', "t"));
    let files: Vec<String> = names.iter().cloned().chain(copies).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    for jobs in ["--jobs=1", "--jobs=2"] {
        let args = ["-r", jobs, "s/.", "t"];
        let Some(found) = offsets(&dir, &args, &files) else { return };
        assert_eq!(found, [0], "{args:?}");
        std::fs::remove_dir_all(dir.join("t")).expect("removed");
    }
}
