//! `cp --verify`: a copy that differs from its source is an error.

use std::fs::{create_dir, read, write};
use std::path::Path;

use serde_json::Value;
use testfs::{
    Aspects, FsKind, FuseFs, Lies, assert_equal_trees, each_fs, json_lines, names_in, random_bytes,
    set_time_of, stderr,
};

use crate::cp;

#[test]
fn a_wrong_byte_is_found_wherever_it_is() {
    let len = 300_000;
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), random_bytes(len, 1)).expect("written");
    for at in [0, 1, 131_071, 131_072, len as u64 - 1] {
        for options in [&["--verify"][..], &["--verify", "-p"], &["--verify", "--sparse=always"]] {
            check_wrong_byte(dir.path(), "a", at, options);
        }
    }
}

/// Copies `src` in `dir` to a file system that stores a wrong byte at the offset, which must be found.
fn check_wrong_byte(dir: &Path, src: &str, at: u64, options: &[&str]) {
    let lies = Lies { wrong_byte_at: Some(at), ..Lies::default() };
    let Some(served) = FuseFs::with_source(Vec::new(), lies) else { return };
    let dst = served.path().join("made");
    let dst = dst.to_str().expect("a name");
    let output = cp(dir, &[options, &["--receipt=receipt", src, dst]].concat());
    let words = format!("cp: '{dst}' differs from '{src}' at byte offset {at}\n");
    assert_eq!(stderr(&output), words, "{options:?}");
    assert_eq!(output.status.code(), Some(1), "{options:?} {at}");
    assert_eq!(methods_and_digests(dir), [("failed".to_owned(), false)], "{options:?}");
}

#[test]
fn a_wrong_copy_replaces_nothing_and_leaves_no_partial_file() {
    let content = random_bytes(6 << 20, 3);
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    write(dir.join("old"), "old").expect("written");
    for options in
        [&["--atomic"][..], &["--resume"], &["--resume", "--durable"], &["--atomic", "--durable"]]
    {
        for name in ["old", "new"] {
            let lies = Lies { wrong_reread_at: Some(5 << 20), ..Lies::default() };
            let Some(served) = FuseFs::with_source(content.clone(), lies) else { return };
            let src = served.source();
            let src = src.to_str().expect("a name");
            let common = ["--verify", "--receipt=receipt", src, name];
            let output = cp(dir, &[options, &common[..]].concat());
            let words = format!("cp: '{name}' differs from '{src}' at byte offset {}\n", 5 << 20);
            assert_eq!(stderr(&output), words, "{options:?}");
            assert_eq!(output.status.code(), Some(1), "{options:?} {name}");
            assert_eq!(methods_and_digests(dir), [("failed".to_owned(), false)], "{options:?}");
            assert_eq!(read(dir.join("old")).expect("old"), b"old", "{options:?}");
            assert_eq!(names_in(dir), ["old", "receipt"], "{options:?}");
        }
    }
}

#[test]
fn a_correct_copy_is_read_from_the_medium_and_its_digest_reported() {
    each_fs(|kind, dir| {
        create_dir(dir.join("s")).expect("created");
        let content = random_bytes(1_000_000, 2);
        write(dir.join("s/a"), &content).expect("written");
        write(dir.join("s/empty"), "").expect("written");
        let sparse = std::fs::File::create(dir.join("s/sparse")).expect("created");
        sparse.set_len(3 << 20).expect("length set");
        for (number, options) in
            [&["--reflink=never"][..], &["--atomic"], &["--durable"], &["--no-cache"]]
                .iter()
                .enumerate()
        {
            let dst = format!("t{number}");
            let more = ["--verify", "--receipt=receipt", "-a", "s", &dst];
            let output = cp(dir, &[*options, &more].concat());
            assert!(output.status.success(), "{kind} {options:?}: {}", stderr(&output));
            assert_equal_trees(
                &dir.join("s"),
                &dir.join(&dst),
                Aspects::ALL,
                format_args!("{kind} {options:?}"),
            );
            let lines = json_lines(&dir.join("receipt"));
            let line = lines.iter().find(|line| line["src"] == "s/a").expect("a line");
            let digest = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&content));
            assert_eq!(line["verified_xxh3_128"], digest, "{kind} {options:?}");
            // Kernels before 6.5 cannot tell.
            if kind == FsKind::Tmpfs || line["verified_past_cache"] != true {
                let in_memory = kind == FsKind::Tmpfs || !has_cachestat();
                assert!(in_memory && line["verified_past_cache"] == false, "{kind} {options:?}");
            }
            let directory = lines.iter().find(|line| line["src"] == "s").expect("a line");
            assert_eq!(directory["verified_xxh3_128"], Value::Null, "{kind}");
        }
    });
}

fn has_cachestat() -> bool {
    let file = tempfile::tempfile().expect("created");
    sys::cachestat(std::os::fd::AsFd::as_fd(&file), 0, 0).is_ok()
}

#[test]
fn streams_cannot_be_verified() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "text").expect("written");
    let shell = format!("echo text | {} cp --verify /dev/stdin b", env!("CARGO_BIN_EXE_haulage"));
    let output = testfs::command("sh").args(["-c", &shell]).current_dir(dir.path()).output();
    let output = output.expect("a shell");
    assert_eq!(stderr(&output), "cp: cannot verify the copy: '/dev/stdin' is no regular file\n");
    assert_eq!(output.status.code(), Some(1));
    let output = cp(dir.path(), &["--verify", "a", "/dev/null"]);
    assert_eq!(stderr(&output), "cp: cannot verify the copy: '/dev/null' is no regular file\n");
}

/// The method of each entry in the receipt in `dir`, and whether it has a digest.
fn methods_and_digests(dir: &Path) -> Vec<(String, bool)> {
    let lines = json_lines(&dir.join("receipt"));
    let entries = lines.iter().filter(|line| line["record"] == "entry");
    let method = |line: &Value| line["method"].as_str().expect("a word").to_owned();
    entries.map(|line| (method(line), line["verified_xxh3_128"].is_string())).collect()
}

#[test]
fn a_wrong_byte_is_found_with_every_other_option() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("created");
    // Beyond what is worth a part, with a hole in its middle and one at its end.
    let sparse = std::fs::File::create(dir.join("s/sparse")).expect("created");
    sparse.set_len(6 << 20).expect("length set");
    for at in [0, 3 << 20] {
        std::os::unix::fs::FileExt::write_all_at(&sparse, &random_bytes(1 << 20, at), at)
            .expect("written");
    }
    for options in [
        &["--verify", "--durable"][..],
        &["--verify", "--sparse=always"],
        &["--verify", "--sparse=never"],
        &["--verify", "--no-cache"],
        &["--verify", "--durable", "--sparse=always", "--no-cache"],
    ] {
        check_wrong_byte(dir, "s/sparse", (3 << 20) + 7, options);
    }
}

#[test]
fn the_names_of_a_file_are_verified_once_and_an_empty_one_is_right() {
    each_fs(|kind, dir| {
        create_dir(dir.join("s")).expect("created");
        write(dir.join("s/empty"), "").expect("written");
        write(dir.join("s/large"), random_bytes(5 << 20, 1)).expect("written");
        std::fs::hard_link(dir.join("s/large"), dir.join("s/linked")).expect("linked");
        for options in [&["--durable"][..], &["--atomic", "--durable"], &["--resume", "--durable"]]
        {
            // What is complete is compared when it is met again; its other names are links.
            for pass in 0..2 {
                let common = ["-a", "--verify", "--receipt=receipt", "-T", "s", "d"];
                let output = cp(dir, &[options, &common[..]].concat());
                assert!(output.status.success(), "{kind} {options:?}: {}", stderr(&output));
                assert_equal_trees(
                    &dir.join("s"),
                    &dir.join("d"),
                    Aspects::ALL,
                    format_args!("{kind} {options:?}"),
                );
                let mut entries = methods_and_digests(dir);
                entries.sort();
                let method =
                    if options[0] == "--resume" && pass == 1 { "skipped" } else { "copied" };
                let count = |method: &str, proved: bool| {
                    entries.iter().filter(|entry| **entry == (method.to_owned(), proved)).count()
                };
                assert!(count(method, true) >= 2, "{kind} {options:?} {pass}: {entries:?}");
                assert_eq!(entries.len(), 4, "{kind} {options:?} {pass}: {entries:?}");
                assert_eq!(count("linked", true), 0, "{kind} {options:?} {pass}: {entries:?}");
            }
            std::fs::remove_dir_all(dir.join("d")).expect("removed");
        }
    });
}

/// A file of `len` bytes that has data at some offsets, a byte at each, and holes elsewhere.
fn sparse_file(path: &Path, len: u64, data_at: &[u64]) {
    let file = std::fs::File::create(path).expect("created");
    file.set_len(len).expect("length set");
    for &at in data_at {
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", at).expect("written");
    }
}

/// To read the holes would take half an hour.
#[test]
fn holes_of_both_files_are_not_read() {
    const LEN: u64 = 8 << 40;
    each_fs(|kind, dir| {
        let at = LEN / 2 + 12_345;
        sparse_file(&dir.join("a"), LEN, &[0, at, LEN - 1]);
        let mut command = testfs::command("timeout");
        command.args(["60", env!("CARGO_BIN_EXE_haulage"), "cp", "-a", "--verify", "a", "b"]);
        let output = command.current_dir(dir).output().expect("timeout runs");
        assert!(output.status.success(), "{kind}: {:?} {}", output.status, stderr(&output));
        let copy = std::fs::File::open(dir.join("b")).expect("opened");
        assert_eq!(copy.metadata().expect("its state").len(), LEN, "{kind}");
        for at in [0, at, LEN - 1] {
            let mut byte = [0];
            std::os::unix::fs::FileExt::read_exact_at(&copy, &mut byte, at).expect("read");
            assert_eq!(&byte, b"x", "{kind} {at}");
        }
    });
}

#[test]
fn a_hole_is_compared_with_the_data_of_the_other_file() {
    const LEN: u64 = 3 << 20;
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("a"), dir.join("b"));
        for (of_src, of_dst) in [
            (&[][..], &[][..]),
            (&[0], &[0]),
            (&[1 << 20], &[1 << 20]),
            (&[0], &[]),
            (&[], &[0]),
            (&[1 << 20], &[]),
            (&[], &[1 << 20]),
            (&[LEN - 1], &[]),
            (&[], &[LEN - 1]),
            (&[0, LEN - 1], &[0]),
            (&[0], &[0, 2 << 20]),
            (&[1 << 20], &[(1 << 20) + 1]),
            (&[1 << 20], &[2 << 20]),
        ] {
            sparse_file(&src, LEN, of_src);
            sparse_file(&dst, LEN, of_dst);
            set_time_of(&dst, &src);
            let output = cp(dir, &["-a", "--resume", "--verify", "--receipt=receipt", "a", "b"]);
            let what = format!("{kind} {of_src:?} {of_dst:?}: {}", stderr(&output));
            assert!(output.status.success(), "{what}");
            let method = if of_src == of_dst { "skipped" } else { "copied" };
            assert_eq!(methods_and_digests(dir), [(method.to_owned(), true)], "{what}");
            let whole = read(&src).expect("a source");
            assert!(read(&dst).expect("read") == whole, "{what}");
            let receipt = std::fs::read_to_string(dir.join("receipt")).expect("a receipt");
            let digest = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&whole));
            assert!(receipt.contains(&digest), "{what}: {receipt}");
        }
    });
}

#[test]
fn holes_of_a_fuse_file_system_are_read() {
    let content = random_bytes(300_000, 5);
    let faults = Lies { no_blocks: true, all_hole: true, ..Lies::default() };
    let Some(faulty) = FuseFs::with_source(content.clone(), faults) else { return };
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (faulty.source(), dir.path().join("b"));
    sparse_file(&dst, content.len() as u64, &[]);
    set_time_of(&dst, &src);
    let src = src.to_str().expect("a name");
    let output = cp(dir.path(), &["-p", "--resume", "--verify", src, "b"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(read(&dst).expect("read") == content);
}
