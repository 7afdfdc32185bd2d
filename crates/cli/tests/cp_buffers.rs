//! Where the memory begins that `haulage cp` reads into and writes from, as strace shows it.

use std::path::Path;

use crate::{check_success, dir_with, strace};

/// Runs `haulage cp ARGS` in `dir` under strace. The offsets from the start of a page at which reads
/// and writes of `files` began, or all long ones without `files`, each once; none where strace cannot
/// be run.
fn offsets(dir: &Path, line: &str, files: &[String]) -> Option<Vec<usize>> {
    let calls = "read,write,pread64,pwrite64";
    let files_alone = files.iter().map(|file| format!(" -P{}", dir.join(file).display()));
    let options = format!("-e trace={calls} -e raw={calls}{}", files_alone.collect::<String>());
    check_success(&strace(dir, &options, line)?, line);
    let trace = std::fs::read_to_string(dir.join("trace")).expect("strace's output");
    // Other reads and writes of the program, as of /proc, are shorter.
    let count_min = if files.is_empty() { 32 << 10 } else { 0 };
    let mut offsets: Vec<usize> = trace
        .lines()
        .filter_map(buffer_of_call)
        .filter(|&(_, count)| count >= count_min)
        .map(|(address, _)| address % rustix::param::page_size())
        .collect();
    assert!(!offsets.is_empty(), "{line}: {trace}");
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
fn files_are_copied_through_whole_pages() {
    // The large ones are a multiple of every buffer, so that no read begins inside of one.
    let dir = dir_with("a#4M:1; hole~4M; s/1#1:2; s/2#100:2; s/3#4096:2; s/4#9000:2; s/5#60000:2");
    let dir = dir.path().canonicalize().expect("resolved");
    let small: Vec<String> =
        (1..=5).flat_map(|number| [format!("s/{number}"), format!("b/{number}")]).collect();
    for (line, files, expected) in [
        ("--engine=read_write a b", &[][..], 0),
        ("--engine=read_write:64K@2 a b", &[], 0),
        ("--engine=read_write:64K,offset=16 a b", &[], 16),
        ("--engine=read_write:64K,aligned a b", &[], 0),
        ("--engine=stdio:64K,setvbuf=64K a b", &[], 0),
        ("--sparse=always a b", &[], 0),
        ("--sparse=never hole b", &[], 0),
        ("--verify a b", &[], 0),
        ("--resume a b", &[], 0),
        ("-r --jobs=1 -T s b", &small, 0),
        ("-r --jobs=2 -T s b", &small, 0),
    ] {
        let Some(found) = offsets(&dir, line, files) else { return };
        assert_eq!(found, [expected], "{line}");
        let b = dir.join("b");
        if files.is_empty() { std::fs::remove_file(b) } else { std::fs::remove_dir_all(b) }
            .expect("removed");
    }
}
