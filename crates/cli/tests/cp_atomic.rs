//! `cp --atomic`: whatever happens, a name stands for the old file or the whole new one.

use std::fs::{create_dir, metadata, read, remove_dir_all, rename};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use testfs::{
    Aspects, Costs, FuseFs, Lies, Tree, each_fs, is_root, names_in, random_bytes, skip, stderr,
    test_name,
};

use crate::{
    as_nobody, begin, check, check_content, check_success, copy, cp, dir_with, fixture, haulage_cp,
    leftovers, open_dir_with, strace,
};

/// A source `a` and what else a copy may meet, all of it with attributes of its own.
fn lay_out(dir: &Path) {
    let owner = if is_root() { "own=1234:4321" } else { "" };
    fixture::add(
        &format!(
            "a#300000:1 mode=754 user.kept=1; old#300000:2 mode=640 user.kept=2 user.own=old {owner}; \
             twice#300000:3 mode=606 user.kept=3; second==twice; link->old; tree/f=in\\sa\\stree; \
             tree/l->f; there/f=stood\\sthere; there/l=in\\sthe\\sway"
        ),
        dir,
    );
}

/// The backup is the old file, which was not removed.
#[test]
fn a_backup_is_not_announced_as_removed() {
    let output = copy(dir_with("a=1; b=2"), "-lbv --atomic a b");
    assert_eq!(testfs::stdout(&output), "'a' -> 'b' (backup: 'b~')\n");
}

/// What a copy in place makes, in every aspect but those that make the difference.
#[test]
fn what_is_made_is_what_a_copy_in_place_makes() {
    for line in [
        "a new",
        "a old",
        "-p a old",
        "-a a old",
        "--preserve=xattr a old",
        "--no-preserve=mode a old",
        "-b a old",
        "--backup=numbered a old",
        "-f a old",
        "-n a old",
        "-u a old",
        "--remove-destination a old",
        "--remove-destination a link",
        "a link",
        "-b a link",
        "-a a twice",
        "-l -f a old",
        "-s -f a old",
        "-aT tree there",
        "-RT tree there",
        "-a tree fresh",
        "--attributes-only -p a old",
        "--attributes-only --remove-destination a old",
        "--attributes-only -bp a old",
        "--sparse=always a old",
        "old a there",
        "--parents tree/f there",
    ] {
        each_fs(|kind, dir| {
            let made = ["plain", "atomic"].map(|way| {
                let dir = dir.join(way);
                create_dir(&dir).expect("created");
                lay_out(&dir);
                let option = if way == "atomic" { "--atomic" } else { "" };
                let output = cp(&dir, &format!("{option} {line}"));
                assert_eq!(leftovers(&dir), [""; 0], "{kind} {line}");
                (output, Tree::read(&dir).expect("read"))
            });
            let [(plain, plain_tree), (atomic, atomic_tree)] = made;
            assert_eq!(plain.status, atomic.status, "{kind} {line}: {}", stderr(&atomic));
            assert_eq!(stderr(&plain), stderr(&atomic), "{kind} {line}");
            let aspects = Aspects { mtimes: false, ..Aspects::ALL };
            let differences = plain_tree.differences(&atomic_tree, aspects);
            assert_eq!(differences, [""; 0], "{kind} {line}");
        });
    }
}

#[test]
fn what_cannot_or_may_not_be_replaced_is_refused() {
    let dir = dir_with("a=new; dangling->nowhere; held=; there/");
    let dir = dir.path();
    let held = std::fs::File::open(dir.join("held")).expect("opened");
    let number = std::os::fd::AsRawFd::as_raw_fd(&held);
    let process = std::process::id();
    symlink(format!("/proc/{process}/fd/{number}"), dir.join("open")).expect("linked");
    for (dst, words) in [
        ("dangling", "cp: not writing through dangling symlink 'dangling'\n"),
        ("open", "cp: cannot replace what 'open' leads to, as its name is not known\n"),
        ("no/", "cp: cannot create regular file 'no/': Not a directory\n"),
        ("there", ""),
        // A device is written to: it keeps nothing that could be lost.
        ("/dev/null", ""),
    ] {
        let mut command = haulage_cp(dir, &format!("--atomic a {dst}"));
        let output = command.env("POSIXLY_CORRECT", "1").output().expect("haulage ran");
        check(&output, i32::from(!words.is_empty()), words, dst);
    }
}

#[test]
fn a_protected_file_is_not_replaced_without_force() {
    let dir = open_dir_with("a=new; b=old mode=444");
    let b = dir.path().join("b");
    let output = as_nobody(&dir, "--atomic a b");
    check(&output, 1, "cp: cannot create regular file 'b': Permission denied\n", "");
    check_content(&b, "old", "");
    check_success(&as_nobody(&dir, "--atomic -f a b"), "-f");
    check_content(&b, "new", "-f");
    if !is_root() {
        return skip(&test_name(), "a file of another user needs root");
    }
    // One who may write to another user's file gets it for his own, and is told.
    fixture::add("b=old own=1234:1234 mode=6676", &dir);
    let output = as_nobody(&dir, "--atomic a b");
    let words = "cp: warning: the new 'b' is not its old owner's: Operation not permitted\n";
    check(&output, 0, words, "");
    let made = metadata(b).expect("looked at");
    // What the old group might do beyond all others is not for the new one.
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (65_534, 65_534, 0o666));
}

#[test]
fn a_failed_copy_leaves_the_old_file() {
    let faults = Lies { read_error_at: Some(100_000), ..Lies::default() };
    let Some(faulty) = FuseFs::with_source(random_bytes(300_000, 1), faults) else { return };
    let dir = dir_with("old=old");
    let src = faulty.source().display().to_string();
    for name in ["old", "new"] {
        let output = cp(&dir, &format!("--atomic {src} {name}"));
        check(&output, 1, &format!("cp: error reading '{src}': Input/output error\n"), name);
    }
    check_content(dir.path().join("old"), "old", "");
    assert_eq!(names_in(dir.path()), ["old"]);
}

/// Another process gives the name to a file of its own while the copy is made: that file stays.
#[test]
fn a_file_that_took_the_name_during_the_copy_stays() {
    let dir = dir_with("old=old; other=other; fifo|");
    let at = |name: &str| dir.path().join(name);
    let child = begin(&dir, "--atomic fifo old");
    let mut fifo = std::fs::File::options().write(true).open(at("fifo")).expect("opened");
    // More than a pipe holds: the copy has begun when all is written.
    fifo.write_all(&random_bytes(1 << 20, 1)).expect("written");
    rename(at("other"), at("old")).expect("renamed");
    drop(fifo);
    let output = child.wait_with_output().expect("ended");
    let due = "cp: not writing to 'old', as it was replaced while being copied\n";
    check(&output, 1, due, "");
    check_content(at("old"), "other", "");
    assert_eq!(leftovers(&dir), [""; 0]);
}

/// The calls of the main thread, each with how many of its name came up to it.
fn calls_of(trace: &Path) -> Vec<(String, usize)> {
    let trace = std::fs::read_to_string(trace).expect("strace's output");
    let main = trace.split(' ').next().expect("found").to_owned();
    let mut counts = std::collections::HashMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        if thread == main && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let number = counts.entry(name.to_owned()).or_insert(0);
            *number += 1;
            calls.push((name.to_owned(), *number));
        }
    }
    calls
}

/// Calls that change no file. Killed as it enters one of them, a copy leaves what it leaves at the next that does.
/// How often there is memory to ask for depends on the clock, besides.
const CHANGES_NOTHING: &str = "brk close fadvise64 fcntl fstatfs getdents64 listxattr lseek mmap mprotect munmap \
    newfstatat pread64 prlimit64 read readlinkat rt_sigaction rt_sigprocmask statx";

/// strace kills the copy in `dir` into `home` as it enters each of its calls that may change a file, one run a call.
fn kill_at_every_call(options: &str, dir: &Path, home: &Path) {
    // Of three files one is left when two have passed the bounds of what goes on without watching for
    // signals, so that each run makes the same calls.
    let names = ["old", "fresh", "another"];
    fixture::add(&names.map(|name| format!("src/{name}#700000:2")).join("; "), dir);
    // The file system of our own has no symbolic links.
    let [src_link, dst_link] =
        if dir == home { ["src/link->text", "dst/link->another"] } else { ["", ""] };
    fixture::add(src_link, dir);
    let (old, new) = (random_bytes(100_000, 1), random_bytes(700_000, 2));
    let dst = home.join("dst");
    let line = format!("--jobs=1 --atomic {options} -T src {}", dst.display());
    let run = |inject: &str| {
        let _ = remove_dir_all(&dst);
        fixture::add(&format!("dst/old#100000:1; {dst_link}"), home);
        // What a profile says is asked once a copy has lasted, so that other calls would come.
        strace(dir, inject, &format!("--engine=read_write {line}"))
    };
    let Some(output) = run("") else { return };
    check_success(&output, options);
    assert_eq!(leftovers(&dst), [""; 0]);
    let calls = calls_of(&dir.join("trace"));
    let first = calls.iter().position(|(name, _)| name == "memfd_create").expect("found");
    let (mut ended, mut left) = ([0, 0], 0);
    for (name, number) in &calls[first..] {
        if CHANGES_NOTHING.split(' ').any(|other| other == name) {
            continue;
        }
        let what = format!("killed at {name} {number}");
        // On a busy machine a run takes so long that it makes a few calls less or more.
        let is_killed = |()| {
            let output = run(&format!("-e inject={name}:signal=KILL:when={number}"));
            output.expect("strace ran before").status.signal() == Some(9)
        };
        assert!([(); 5].into_iter().any(is_killed), "{what}");
        // What is at the names is old or new, and never in between.
        let replaced = read(dst.join("old")).unwrap_or_else(|e| panic!("{what}: old: {e}"));
        assert!(replaced == old || replaced == new, "{what}: neither old nor new");
        let part = read(dst.join("fresh")).is_ok_and(|made| made != new);
        assert!(!part, "{what}: part of a new file");
        ended[usize::from(replaced == new)] += 1;
        left += leftovers(&dst).len();
        // What has no lock counts as left once it is older than a tick of the clock.
        std::thread::sleep(Duration::from_millis(20));
        check_success(&cp(dir, &line), &what);
        assert!(leftovers(&dst).is_empty(), "{what}");
    }
    assert!(left > 0, "some were killed while a copy had a name of ours");
    assert!(ended[0] > 10 && ended[1] > 1, "both ends were seen: {ended:?}");
}

#[test]
fn killed_at_any_call_a_copy_leaves_the_old_file_or_the_new() {
    let dir = dir_with("");
    kill_at_every_call("-R", dir.path(), dir.path());
}

#[test]
fn killed_at_any_call_where_all_files_have_names_it_does_too() {
    // This file system has no files without a name.
    let Some(named) = FuseFs::mount(Costs::default()) else { return };
    kill_at_every_call("-R", dir_with("").path(), named.path());
}

#[test]
fn killed_at_any_call_a_copy_with_a_backup_leaves_a_file_at_the_name() {
    let dir = dir_with("");
    kill_at_every_call("-Rb", dir.path(), dir.path());
}
