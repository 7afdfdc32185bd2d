//! `cp --atomic`: whatever happens, a name stands for the old file or the whole new one.

use std::fs::{
    Permissions, create_dir, hard_link, metadata, read, read_dir, rename, set_permissions, write,
};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{XattrFlags, setxattr};
use testfs::{
    Aspects, FuseFs, Lies, Tree, each_fs, is_root, random_bytes, skip, stderr, test_name,
};

use crate::{as_nobody, cp, haulage_cp, leftovers, open_dir};

/// A source `a` and what else a copy may meet, all of it with attributes of its own.
fn lay_out(dir: &Path) {
    for (name, seed, mode) in [("a", 1, 0o754), ("old", 2, 0o640), ("twice", 3, 0o606)] {
        write(dir.join(name), random_bytes(300_000, seed)).expect("written");
        let value = [b'0' + u8::try_from(seed).expect("a digit")];
        let _ = setxattr(dir.join(name), "user.kept", &value, XattrFlags::empty());
        set_permissions(dir.join(name), Permissions::from_mode(mode)).expect("mode set");
    }
    let _ = setxattr(dir.join("old"), "user.own", b"old", XattrFlags::empty());
    hard_link(dir.join("twice"), dir.join("second")).expect("linked");
    symlink("old", dir.join("link")).expect("linked");
    create_dir(dir.join("tree")).expect("created");
    write(dir.join("tree/f"), "in a tree").expect("written");
    symlink("f", dir.join("tree/l")).expect("linked");
    create_dir(dir.join("there")).expect("created");
    write(dir.join("there/f"), "stood there").expect("written");
    write(dir.join("there/l"), "in the way").expect("written");
    if is_root() {
        chown(dir.join("old"), Some(1234), Some(4321)).expect("an owner");
    }
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
                let options = if way == "atomic" { &["--atomic"][..] } else { &[] };
                let args = options.iter().copied().chain(line.split(' ')).collect::<Vec<_>>();
                let output = cp(&dir, &args);
                assert_eq!(leftovers(&dir), [""; 0], "{kind} {line}");
                (output, Tree::read(&dir).expect("a tree"))
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
fn an_old_file_is_replaced_and_its_other_names_keep_what_it_held() {
    each_fs(|kind, dir| {
        lay_out(dir);
        let (new, old) = (read(dir.join("a")).expect("a"), read(dir.join("twice")).expect("old"));
        let output = cp(dir, &["--atomic", "a", "twice"]);
        assert!(output.status.success(), "{kind}: {}", stderr(&output));
        assert!(read(dir.join("twice")).expect("read") == new, "{kind}");
        assert!(read(dir.join("second")).expect("the other name") == old, "{kind}");
        assert_eq!(metadata(dir.join("second")).expect("second").nlink(), 1, "{kind}");
    });
}

#[test]
fn what_cannot_or_may_not_be_replaced_is_refused() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    lay_out(dir);
    symlink("nowhere", dir.join("dangling")).expect("linked");
    let held = std::fs::File::create(dir.join("held")).expect("created");
    let number = std::os::fd::AsRawFd::as_raw_fd(&held);
    let process = std::process::id();
    symlink(format!("/proc/{process}/fd/{number}"), dir.join("open")).expect("linked");
    for (dst, words) in [
        ("dangling", "cp: not writing through dangling symlink 'dangling'\n"),
        ("open", "cp: cannot replace what 'open' leads to, as its name is not known\n"),
        ("no/", "cp: cannot create regular file 'no/': Not a directory\n"),
        ("there", ""),
    ] {
        let mut command = haulage_cp(dir, &["--atomic", "a", dst]);
        let output = command.env("POSIXLY_CORRECT", "1").output().expect("haulage runs");
        assert_eq!(stderr(&output), words);
        assert_eq!(output.status.success(), words.is_empty(), "{dst}");
    }
    // A device is written to: it keeps nothing that could be lost.
    let output = cp(dir, &["--atomic", "a", "/dev/null"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_protected_file_is_not_replaced_without_force() {
    let dir = open_dir();
    write(dir.path().join("a"), "new").expect("written");
    write(dir.path().join("b"), "old").expect("written");
    set_permissions(dir.path().join("b"), Permissions::from_mode(0o444)).expect("mode set");
    let Some(output) = as_nobody(dir.path(), &["--atomic", "a", "b"]) else { return };
    assert_eq!(stderr(&output), "cp: cannot create regular file 'b': Permission denied\n");
    assert_eq!(read(dir.path().join("b")).expect("b"), b"old");
    let output = as_nobody(dir.path(), &["--atomic", "-f", "a", "b"]).expect("it ran before");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(read(dir.path().join("b")).expect("b"), b"new");
    if !is_root() {
        return skip(&test_name(), "a file of another user needs root");
    }
    // One who may write to another user's file gets it for his own, and is told.
    write(dir.path().join("b"), "old").expect("written");
    chown(dir.path().join("b"), Some(1234), Some(1234)).expect("an owner");
    set_permissions(dir.path().join("b"), Permissions::from_mode(0o6676)).expect("mode set");
    let output = as_nobody(dir.path(), &["--atomic", "a", "b"]).expect("it ran before");
    assert!(output.status.success(), "{}", stderr(&output));
    let words = "cp: warning: the new 'b' is not its old owner's: Operation not permitted\n";
    assert_eq!(stderr(&output), words);
    let made = metadata(dir.path().join("b")).expect("looked at");
    // What the old group might do beyond all others is not for the new one.
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (65_534, 65_534, 0o666));
}

#[test]
fn a_failed_copy_leaves_the_old_file() {
    let faults = Lies { read_error_at: Some(100_000), ..Lies::default() };
    let Some(faulty) = FuseFs::with_source(random_bytes(300_000, 1), faults) else { return };
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("old"), "old").expect("written");
    for name in ["old", "new"] {
        let src = faulty.source();
        let src = src.to_str().expect("a name");
        let output = cp(dir.path(), &["--atomic", src, name]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert_eq!(stderr(&output), format!("cp: error reading '{src}': Input/output error\n"));
    }
    assert_eq!(read(dir.path().join("old")).expect("old"), b"old");
    assert_eq!(read_dir(dir.path()).expect("listed").count(), 1, "nothing else is there");
}

/// Another process gives the name to a file of its own while the copy is made: that file stays.
#[test]
fn a_file_that_took_the_name_during_the_copy_stays() {
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    write(at("old"), "old").expect("written");
    write(at("other"), "other").expect("written");
    rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), rustix::fs::Mode::RWXU).expect("a fifo");
    let mut command = haulage_cp(dir.path(), &["--atomic", "fifo", "old"]);
    let child = command.stderr(Stdio::piped()).spawn().expect("haulage runs");
    let mut fifo = std::fs::File::options().write(true).open(at("fifo")).expect("it is read");
    // More than a pipe holds: the copy has begun when all is written.
    fifo.write_all(&random_bytes(1 << 20, 1)).expect("it is read");
    rename(at("other"), at("old")).expect("renamed");
    drop(fifo);
    let output = child.wait_with_output().expect("it ends");
    let due = "cp: not writing to 'old', as it was replaced while being copied\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(1), due));
    assert_eq!(read(at("old")).expect("read"), b"other");
    assert_eq!(leftovers(dir.path()), [""; 0]);
}

/// A call of the main thread, and how many of its name came up to it.
struct Call {
    name: String,
    number: usize,
    line: String,
}

fn calls_of(trace: &Path) -> Vec<Call> {
    let trace = std::fs::read_to_string(trace).expect("strace's output");
    let main = trace.split(' ').next().expect("a process").to_owned();
    let mut counts = std::collections::HashMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        if thread == main && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let number = counts.entry(name.to_owned()).or_insert(0);
            *number += 1;
            calls.push(Call { name: name.to_owned(), number: *number, line: call.to_owned() });
        }
    }
    calls
}

/// What is at the names of a copy that was killed is old or new, and never in between.
fn check_whole(dir: &Path, what: &str, old: &[u8], new: &[u8], fresh: &str) -> bool {
    let replaced = read(dir.join("old")).unwrap_or_else(|error| panic!("{what}: old: {error}"));
    assert!(replaced == old || replaced == new, "{what}: neither old nor new");
    if let Ok(made) = read(dir.join(fresh)) {
        assert!(made == new, "{what}: part of a new file");
    }
    replaced == new
}

/// strace kills the copy as it enters each of its calls, one run a call. With `refused` the first file
/// meets a file system that has no files without a name.
fn kill_at_every_call(options: &[&str], refused: bool) {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    let (old, new) = (random_bytes(100_000, 1), random_bytes(700_000, 2));
    create_dir(dir.join("src")).expect("created");
    // Of three files one is left when two have passed the bounds of what goes on without watching for
    // signals, so that each run makes the same calls.
    for name in ["old", "fresh", "another"] {
        write(dir.join("src").join(name), &new).expect("written");
    }
    symlink("text", dir.join("src/link")).expect("linked");
    let run = |inject: &[String]| {
        let _ = std::fs::remove_dir_all(dir.join("dst"));
        create_dir(dir.join("dst")).expect("created");
        write(dir.join("dst/old"), &old).expect("written");
        symlink("another", dir.join("dst/link")).expect("linked");
        let mut command = testfs::command("strace");
        command.args(["-f", "-o"]).arg(dir.join("trace"));
        for inject in inject {
            command.args(["-e", inject]);
        }
        command.arg(crate::HAULAGE).args(["cp", "--jobs=1", "--atomic"]);
        // What a profile says is asked once a copy has lasted, so that other calls would come.
        command
            .arg("--engine=read_write")
            .args(options)
            .args(["-T", "src", "dst"])
            .current_dir(dir)
            .output()
    };
    let Some(output) = run(&[]).ok().filter(|_| dir.join("trace").exists()) else {
        return skip(&test_name(), "strace cannot be run here");
    };
    assert!(output.status.success(), "{}", stderr(&output));
    let mut always = Vec::new();
    if refused {
        let calls = calls_of(&dir.join("trace"));
        let unnamed = calls.iter().find(|call| call.line.contains("O_TMPFILE"));
        let number = unnamed.expect("a file without a name").number;
        always.push(format!("inject=openat:error=EOPNOTSUPP:when={number}"));
        let output = run(&always).expect("strace ran before");
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(leftovers(&dir.join("dst")), [""; 0]);
    }
    let calls = calls_of(&dir.join("trace"));
    let first = calls.iter().position(|call| call.name == "memfd_create").expect("its first call");
    let (mut ended, mut left) = ([0, 0], 0);
    for Call { name, number, .. } in &calls[first..] {
        if refused && name == "openat" {
            continue;
        }
        // How often there is memory to ask for depends on the clock.
        if matches!(name.as_str(), "brk" | "mmap" | "munmap") {
            continue;
        }
        let what = format!("killed at {name} {number}");
        let kill = format!("inject={name}:signal=KILL:when={number}");
        let injections = [&always[..], &[kill]].concat();
        // On a busy machine a run takes so long that it makes a few calls less or more.
        let is_killed = |()| {
            let output = run(&injections).expect("strace ran before");
            output.status.signal() == Some(9)
        };
        assert!([(); 5].into_iter().any(is_killed), "{what}");
        ended[usize::from(check_whole(&dir.join("dst"), &what, &old, &new, "fresh"))] += 1;
        left += leftovers(&dir.join("dst")).len();
        // What has no lock counts as left once it is older than a tick of the clock.
        std::thread::sleep(Duration::from_millis(20));
        let again = [&["--jobs=1", "--atomic"], options, &["-T", "src", "dst"]].concat();
        let output = cp(dir, &again);
        assert!(output.status.success(), "{what}: {}", stderr(&output));
        // Where the second run meets files without names it does not come by every name of ours.
        assert!(refused || leftovers(&dir.join("dst")).is_empty(), "{what}");
    }
    assert!(left > 0, "some were killed while a copy had a name of ours");
    assert!(ended[0] > 10 && ended[1] > 1, "both ends were seen: {ended:?}");
}

#[test]
fn killed_at_any_call_a_copy_leaves_the_old_file_or_the_new() {
    kill_at_every_call(&["-R"], false);
}

#[test]
fn killed_at_any_call_where_all_files_have_names_it_does_too() {
    kill_at_every_call(&["-R"], true);
}

#[test]
fn killed_at_any_call_a_copy_with_a_backup_leaves_a_file_at_the_name() {
    kill_at_every_call(&["-Rb"], false);
}

/// More rounds: `HAULAGE_KILLS=1000`.
#[test]
fn killed_at_any_moment_a_copy_leaves_the_old_file_or_the_new() {
    let kills = std::env::var("HAULAGE_KILLS").ok().and_then(|text| text.parse().ok());
    let kills: u32 = kills.unwrap_or(30);
    let mut random = fastrand::Rng::with_seed(5);
    each_fs(|kind, dir| {
        create_dir(dir.join("src")).expect("created");
        let new = random_bytes(4 << 20, 2);
        for number in 0..4 {
            write(dir.join(format!("src/{number}")), &new).expect("written");
        }
        let old = random_bytes(1 << 20, 1);
        for round in 0..kills {
            let dst = dir.join("dst");
            let _ = std::fs::remove_dir_all(&dst);
            create_dir(&dst).expect("created");
            for number in 0..2 {
                write(dst.join(number.to_string()), &old).expect("written");
            }
            let args = ["--atomic", "--reflink=never", "-rT", "src", "dst"];
            let mut child = haulage_cp(dir, &args).spawn().expect("haulage runs");
            std::thread::sleep(Duration::from_micros(random.u64(..12_000)));
            child.kill().expect("a signal");
            child.wait().expect("it ends");
            for number in 0..4 {
                let bytes = read(dst.join(number.to_string()));
                let whole = match &bytes {
                    Ok(bytes) => *bytes == new || (number < 2 && *bytes == old),
                    Err(_) => number >= 2,
                };
                assert!(whole, "{kind}, round {round}: {number}");
            }
        }
    });
}
