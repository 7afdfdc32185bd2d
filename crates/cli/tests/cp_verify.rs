//! `cp --verify`: a copy that differs from its source is an error.

use std::fs::{File, read, remove_dir_all};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;
use testfs::{
    Aspects, FsKind, FuseFs, Lies, assert_equal_trees, each_fs, json_lines, names_in, random_bytes,
    set_time_of,
};

use crate::{
    OPEN_HAULAGE, check, check_content, copy, cp, dir_with, fixture, haulage_cp, open_dir_with,
    run_as_nobody,
};

#[test]
fn a_wrong_byte_is_found_wherever_it_is() {
    // The sparse one is beyond what is worth a part, with a hole in its middle and one at its end.
    let dir = dir_with("a#300000:1; sparse~6M");
    let sparse = File::options().write(true).open(dir.path().join("sparse")).expect("opened");
    for at in [0, 3 << 20] {
        sparse.write_all_at(&random_bytes(1 << 20, at), at).expect("written");
    }
    for at in [0, 1, 131_071, 131_072, 299_999] {
        for options in ["", "-p", "--sparse=always"] {
            check_wrong_byte(dir.path(), "a", at, options);
        }
    }
    for options in [
        "--durable",
        "--sparse=always",
        "--sparse=never",
        "--no-cache",
        "--durable --sparse=always --no-cache",
    ] {
        check_wrong_byte(dir.path(), "sparse", (3 << 20) + 7, options);
    }
}

/// Copies `src` in `dir` to a file system that stores a wrong byte at the offset, which must be found.
fn check_wrong_byte(dir: &Path, src: &str, at: u64, options: &str) {
    let lies = Lies { wrong_byte_at: Some(at), ..Lies::default() };
    let Some(served) = FuseFs::with_source(Vec::new(), lies) else { return };
    let dst = served.path().join("made").display().to_string();
    let output = cp(dir, &format!("--verify {options} --receipt=receipt {src} {dst}"));
    let words = format!("cp: '{dst}' differs from '{src}' at byte offset {at}\n");
    check(&output, 1, &words, options);
    assert_eq!(methods_and_digests(dir), [("failed".to_owned(), false)], "{options}");
}

#[test]
fn a_wrong_copy_replaces_nothing_and_leaves_no_partial_file() {
    let content = random_bytes(6 << 20, 3);
    let dir = dir_with("old=old");
    let dir = dir.path();
    for options in ["--atomic", "--resume", "--resume --durable", "--atomic --durable"] {
        for name in ["old", "new"] {
            let lies = Lies { wrong_reread_at: Some(5 << 20), ..Lies::default() };
            let Some(served) = FuseFs::with_source(content.clone(), lies) else { return };
            let src = served.source().display().to_string();
            let output = cp(dir, &format!("{options} --verify --receipt=receipt {src} {name}"));
            let words = format!("cp: '{name}' differs from '{src}' at byte offset {}\n", 5 << 20);
            check(&output, 1, &words, options);
            assert_eq!(methods_and_digests(dir), [("failed".to_owned(), false)], "{options}");
            check_content(dir.join("old"), "old", options);
            assert_eq!(names_in(dir), ["old", "receipt"], "{options}");
        }
    }
}

#[test]
fn a_correct_copy_is_read_from_the_medium_and_its_digest_reported() {
    each_fs(|kind, dir| {
        fixture::add("s/a#1000000:2; s/empty=; s/sparse~3M", dir);
        let content = random_bytes(1_000_000, 2);
        for option in ["--reflink=never", "--atomic", "--durable", "--no-cache"] {
            copy(dir, &format!("{option} --verify --receipt=receipt -a s t"));
            let what = format!("{kind} {option}");
            assert_equal_trees(&dir.join("s"), &dir.join("t"), Aspects::ALL, &what);
            remove_dir_all(dir.join("t")).expect("removed");
            let lines = json_lines(&dir.join("receipt"));
            let line = lines.iter().find(|line| line["src"] == "s/a").expect("found");
            let digest = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&content));
            assert_eq!(line["verified_xxh3_128"], digest, "{what}");
            // Kernels before 6.5 cannot tell.
            if kind == FsKind::Tmpfs || line["verified_past_cache"] != true {
                let in_memory = kind == FsKind::Tmpfs || !has_cachestat();
                assert!(in_memory && line["verified_past_cache"] == false, "{what}");
            }
            let directory = lines.iter().find(|line| line["src"] == "s").expect("found");
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
    let dir = dir_with("a=text");
    let (reader, _) = std::io::pipe().expect("created");
    for (operands, name) in [("/dev/stdin b", "/dev/stdin"), ("a /dev/null", "/dev/null")] {
        let mut command = haulage_cp(&dir, &format!("--verify {operands}"));
        let input = reader.try_clone().expect("a descriptor");
        let output = command.stdin(input).output().expect("haulage ran");
        let due = format!("cp: cannot verify the copy: '{name}' is no regular file\n");
        check(&output, 1, &due, name);
    }
}

/// The umask denies the owner to read what is made.
#[test]
fn a_copy_that_its_owner_may_not_read_is_verified() {
    let dir = open_dir_with("f#70000:1; s/f#70000:1; s/g#9:1");
    for operands in ["f 1", "-p f 2", "-r s 3", "-rp s 4", "--atomic f 5", "--preserve=xattr f 6"] {
        let mut command = testfs::command("bash");
        let script = format!("umask 0477; exec {} cp --verify {operands}", OPEN_HAULAGE.1);
        command.args(["-c", &script]).current_dir(&dir).env("LC_ALL", "C");
        check(&run_as_nobody(command), 0, "", operands);
    }
}

/// The method of each entry in the receipt in `dir`, and whether it has a digest.
fn methods_and_digests(dir: &Path) -> Vec<(String, bool)> {
    let lines = json_lines(&dir.join("receipt"));
    let entries = lines.iter().filter(|line| line["record"] == "entry");
    let method = |line: &Value| line["method"].as_str().expect("a word").to_owned();
    entries.map(|line| (method(line), line["verified_xxh3_128"].is_string())).collect()
}

#[test]
fn the_names_of_a_file_are_verified_once_and_an_empty_one_is_right() {
    each_fs(|kind, dir| {
        fixture::add("s/empty=; s/large#5M:1; s/linked==s/large", dir);
        for options in ["--durable", "--atomic --durable", "--resume --durable"] {
            // What is complete is compared when it is met again; its other names are links.
            for pass in 0..2 {
                copy(dir, &format!("{options} -a --verify --receipt=receipt -T s d"));
                let what = format!("{kind} {options} {pass}");
                assert_equal_trees(&dir.join("s"), &dir.join("d"), Aspects::ALL, &what);
                let entries = methods_and_digests(dir);
                let is_skipped = options.starts_with("--resume") && pass == 1;
                let method = if is_skipped { "skipped" } else { "copied" };
                let count = |method: &str, proved: bool| {
                    entries.iter().filter(|entry| **entry == (method.to_owned(), proved)).count()
                };
                assert!(count(method, true) >= 2, "{what}: {entries:?}");
                assert_eq!(entries.len(), 4, "{what}: {entries:?}");
                assert_eq!(count("linked", true), 0, "{what}: {entries:?}");
            }
            std::fs::remove_dir_all(dir.join("d")).expect("removed");
        }
    });
}

/// To read the holes would take half an hour.
#[test]
fn holes_of_both_files_are_not_read() {
    const LEN: u64 = 8 << 40;
    each_fs(|kind, dir| {
        let data_at = [0, LEN / 2 + 12_345, LEN - 4096];
        fixture::add(&format!("a~{LEN}@{}", data_at.map(|at| at.to_string()).join(",")), dir);
        let mut command = testfs::command("timeout");
        command.args(["60", crate::HAULAGE, "cp", "-a", "--verify", "a", "b"]);
        let output = command.current_dir(dir).output().expect("timeout ran");
        check(&output, 0, "", kind);
        let made = File::open(dir.join("b")).expect("opened");
        assert_eq!(made.metadata().expect("looked at").len(), LEN, "{kind}");
        for at in data_at {
            let mut data = [0; 4096];
            made.read_exact_at(&mut data, at).expect("read");
            assert!(data == *random_bytes(4096, at), "{kind} {at}");
        }
    });
}

#[test]
fn a_hole_is_compared_with_the_data_of_the_other_file() {
    each_fs(|kind, dir| {
        for (of_src, of_dst) in [
            ("", ""),
            ("0", "0"),
            ("1M", "1M"),
            ("0", ""),
            ("", "0"),
            ("1M", ""),
            ("", "1M"),
            ("3068K", ""),
            ("", "3068K"),
            ("0,3068K", "0"),
            ("0", "0,2M"),
            ("1M", "1048577"),
            ("1M", "2M"),
        ] {
            fixture::add(&format!("a~3M@{of_src} t=1; b~3M@{of_dst} t=1"), dir);
            copy(dir, "-a --resume --verify --receipt=receipt a b");
            let what = format!("{kind} {of_src} {of_dst}");
            let method = if of_src == of_dst { "skipped" } else { "copied" };
            assert_eq!(methods_and_digests(dir), [(method.to_owned(), true)], "{what}");
            let whole = read(dir.join("a")).expect("read");
            check_content(dir.join("b"), &whole, &what);
            let receipt = std::fs::read_to_string(dir.join("receipt")).expect("read");
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
    let dir = dir_with("b~300000");
    set_time_of(&dir.path().join("b"), &faulty.source());
    copy(&dir, &format!("-p --resume --verify {} b", faulty.source().display()));
    check_content(dir.path().join("b"), content, "");
}
