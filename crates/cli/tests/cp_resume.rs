//! `cp --resume`: a copy that was killed goes on, and little is copied twice.

use std::fs::{File, metadata, read, remove_dir_all, remove_file, set_permissions, write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{IFlags, ioctl_setflags};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use testfs::{
    Aspects, Costs, FsKind, FuseFs, Lies, assert_equal_trees, each_fs, json_lines, names_in,
    random_bytes, set_time_of, stdout,
};

use crate::{
    as_nobody, check, check_content, copy, cp, dir_with, fixture, haulage_cp, leftovers,
    open_dir_with,
};

const LARGE: usize = 72 << 20;

/// What splice moves is not among the counts of /proc/PID/io, by which copies are killed here.
const COUNTED: &str = "--engine=read_write:256K@2";

fn make_tree(dir: &Path) {
    fixture::add("src/large#72M:1; src/link->large; src/sparse~36M", dir);
    for number in 0..50 {
        fixture::add(&format!("src/d/{number}#20000:{number}"), dir);
    }
    fixture::add("src/again==src/d/7", dir);
    let sparse = File::options().write(true).open(dir.join("src/sparse")).expect("opened");
    let bytes = random_bytes(1 << 20, 9);
    for mib in [0, 14, 30] {
        sparse.write_all_at(&bytes, mib << 20).expect("written");
    }
}

/// Bytes that the process has asked to write so far.
fn written(pid: u32) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    io.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

/// Whether the process has ended. Its counts can still be read.
fn has_ended(child: &Child, options: WaitIdOptions) -> bool {
    let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), options).expect("a child").is_some()
}

/// Runs until `bytes` were written and kills it then, or lets it end. Returns what it wrote and
/// whether it ended by itself.
fn run_for(dir: &Path, line: &str, bytes: u64) -> (u64, bool) {
    let mut command = haulage_cp(dir, line);
    if bytes < u64::MAX {
        // It must not end before it is killed, even if this process is delayed.
        command.arg("--limit-rate=60M");
    }
    let mut child = command.spawn().expect("haulage started");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !has_ended(&child, WaitIdOptions::NOHANG) {
        let hangs = Instant::now() > deadline;
        if hangs || written(child.id()).is_some_and(|seen| seen >= bytes) {
            child.kill().expect("signalled");
            assert!(!hangs, "it hangs");
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    assert!(has_ended(&child, WaitIdOptions::empty()));
    let seen = written(child.id()).expect("its counts");
    let status = child.wait().expect("ended");
    assert!(status.success() || status.signal() == Some(9), "{status}");
    (seen, status.success())
}

#[test]
fn a_copy_killed_ten_times_ends_equal_and_copies_little_twice() {
    let mut random = fastrand::Rng::with_seed(11);
    let whole = LARGE as u64 + (3 << 20) + 50 * 20_000;
    each_fs(|kind, dir| {
        for options in ["-a", "-a --jobs=1 --sparse=always"] {
            if options != "-a" && kind != FsKind::Ext4 {
                continue;
            }
            let what = format!("{kind} {options}");
            make_tree(dir);
            let line = format!("{options} {COUNTED} --resume --reflink=never src dst");
            let mut sum = 0;
            for _ in 0..10 {
                let share = random.u64(whole / 40..whole / 12);
                sum += run_for(dir, &line, share).0;
            }
            let (rest, ended) = run_for(dir, &line, u64::MAX);
            assert!(ended, "{what}");
            sum += rest;
            assert!(sum * 2 < whole * 3, "{what}: {sum} of {whole} bytes");
            assert_equal_trees(&dir.join("src"), &dir.join("dst"), Aspects::ALL, &what);
            assert_eq!(leftovers(dir), [""; 0], "{what}");
            for name in ["src", "dst"] {
                remove_dir_all(dir.join(name)).expect("removed");
            }
        }
    });
}

/// As on vfat, exfat and SMB: owner and mode are those of the mount, and no file is private.
#[test]
fn a_killed_copy_goes_on_where_the_file_system_keeps_no_owners_and_modes() {
    const LEN: u64 = LARGE as u64 / 2;
    let own = rustix::process::geteuid().as_raw();
    for (uid, mode) in [(own, 0o755), (own, 0o777), (own + 12345, 0o600), (own + 12345, 0o644)] {
        let what = format!("{uid} {mode:o}");
        let Some(served) = FuseFs::mount(Costs::default()) else { return };
        served.lie(Lies { owner_and_mode: Some((uid, mode)), ..Lies::default() });
        let dir = dir_with("src/large#36M:1");
        let dst = served.path().join("dst");
        let line = format!("-r {COUNTED} --resume src {}", dst.display());
        let (_, ended) = run_for(dir.path(), &line, LEN / 2);
        assert!(!ended, "{what}");
        let dry_run = cp(&dir, &format!("--dry-run -v {line}"));
        assert!(!stdout(&dry_run).contains("dst/src"), "{what}: {dry_run:?}");
        let (rest, ended) = run_for(dir.path(), &line, u64::MAX);
        assert!(ended && rest < LEN * 2 / 3, "{what}: {rest} bytes again");
        check_content(dst.join("large"), random_bytes(LARGE / 2, 1), &what);
        assert_eq!(leftovers(served.path()), [""; 0], "{what}");

        // What is not continued is removed nevertheless.
        remove_file(dst.join("large")).expect("removed");
        let line = format!("-T {line}");
        let (_, ended) = run_for(dir.path(), &line, LEN / 2);
        assert!(!ended, "{what}");
        fixture::add("src/large=short", &dir);
        copy(&dir, &line);
        assert_eq!(leftovers(&dst), [""; 0], "{what}");
    }
}

#[test]
fn sources_named_like_temporary_files_are_copied_like_others() {
    each_fs(|kind, dir| {
        fixture::add("src/large#5M:1; src/linked==src/large; src/.linked.haulage-part=so", dir);
        for name in ["small", "again", ".large.haulage-part", ".large.haulage-journal"] {
            fixture::add(&format!("src/{name}={name}; src/.{name}.haulage-new=by\\sname"), dir);
        }
        for option in ["--resume", "--atomic", "--atomic -b"] {
            // In the first pass all is new; later, names are replaced and links made again.
            for pass in 0..3 {
                let what = format!("{kind} {option} {pass}");
                copy(dir, &format!("{option} -a --reflink=never -T src dst"));
                if option != "--atomic -b" {
                    assert_equal_trees(&dir.join("src"), &dir.join("dst"), Aspects::ALL, &what);
                }
                for name in names_in(&dir.join("src")) {
                    let content = read(dir.join("src").join(&name)).expect("read");
                    check_content(dir.join("dst").join(&name), content, &what);
                }
                for name in ["small", "linked"] {
                    remove_file(dir.join("dst").join(name)).expect("removed");
                    fixture::add(&format!("dst/{name}=old"), dir);
                }
            }
            remove_dir_all(dir.join("dst")).expect("removed");
        }
    });
}

#[test]
fn stale_hard_links_at_temporary_names_are_removed() {
    each_fs(|kind, dir| {
        let names = ["a", "b", "c", "d", "e"];
        fixture::add("src/a=data", dir);
        for name in &names[1..] {
            fixture::add(&format!("src/{name}==src/a"), dir);
        }
        for first in &names[..4] {
            let _ = remove_dir_all(dir.join("dst"));
            // Copies that were complete by themselves, and one of them about to take each name. The
            // last name is new, and its link gives that copy a new time.
            for name in &names[..4] {
                fixture::add(&format!("dst/{name}=data"), dir);
                set_time_of(&dir.join("dst").join(name), &dir.join("src/a"));
            }
            for name in &names[..4] {
                fixture::add(&format!("dst/.{name}.haulage-new==dst/{first}"), dir);
            }
            copy(dir, "-a --resume -T src dst");
            assert_eq!(leftovers(dir), [""; 0], "{kind} {first}");
            let inode = |name: &str| metadata(dir.join("dst").join(name)).expect("looked at").ino();
            assert!(names.iter().all(|name| inode(name) == inode("a")), "{kind} {first}");
        }
    });
}

#[test]
fn a_dry_run_leaves_what_a_killed_copy_left_and_other_arguments_can_complete_it() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    make_tree(dir);
    let common = format!("-a {COUNTED} --resume --reflink=never");
    let line = format!("{common} src dst");
    let (_, ended) = run_for(dir, &line, LARGE as u64 / 2);
    assert!(!ended && dir.join(".dst.haulage-journal").exists());
    let before = leftovers(dir);
    assert!(before.len() > 2, "{before:?}");
    copy(dir, &format!("--dry-run {line}"));
    assert_eq!(leftovers(dir), before);
    // As if the source had been mounted again, with another device number: a dry run goes on in the directory.
    let marker = File::options().write(true).open(dir.join(".dst.haulage-journal"));
    marker.and_then(|marker| marker.write_all_at(&[0x7f; 8], 16)).expect("written");
    let said = stdout(&cp(dir, &format!("-v --dry-run {line}")));
    assert!(!said.contains("dst/src"), "{said}");
    copy(dir, &format!("{common} -T src dst"));
    assert_eq!(leftovers(dir), [""; 0]);
    // The copy is complete, so the first arguments copy into the directory.
    copy(dir, &line);
    assert!(dir.join("dst/src/large").exists());
}

/// What it has already is not set again.
#[test]
fn a_complete_file_that_may_not_be_changed_is_complete() {
    let dir = open_dir_with("s/f=content mode=444 acl user.a=value");
    for (options, operands) in [
        ("--preserve=xattr,timestamps", "s/f f"),
        ("-rT --preserve=mode,xattr,timestamps", "s d"),
        ("-rT --preserve=all", "s e"),
    ] {
        for _ in 0..2 {
            check(&as_nobody(&dir, &format!("--resume {options} {operands}")), 0, "", options);
        }
    }
    copy(&dir, "-a --resume s/f i");
    let file = File::open(dir.path().join("i")).expect("opened");
    if ioctl_setflags(&file, IFlags::IMMUTABLE).is_ok() {
        let output = cp(&dir, "-a --resume s/f i");
        ioctl_setflags(&file, IFlags::empty()).expect("cleared");
        check(&output, 0, "", "immutable");
    }
}

/// What the copy of another operand has is not taken for what an earlier run has copied.
#[test]
fn the_second_of_two_operands_with_one_name_is_refused() {
    let dir = dir_with("1/f=one t=1; 2/f=two t=1; dst/");
    for run in 1..=2 {
        let due = "cp: will not overwrite just-created 'dst/f' with '2/f'\n";
        check(&cp(&dir, "-a --resume 1/f 2/f dst"), 1, due, run);
        check_content(dir.path().join("dst/f"), "one", run);
    }
    // With numbered backups both are kept.
    copy(&dir, "-a --resume --backup=numbered 1/f 2/f dst");
    for (name, content) in [("f", "two"), ("f.~1~", "one")] {
        check_content(dir.path().join("dst").join(name), content, "");
    }
}

#[test]
fn complete_files_are_skipped_and_verify_finds_a_damaged_one() {
    let dir = dir_with("src/same#6M:1; src/other#6M:1; src/d/small=content; dst/");
    let at = |name: &str| dir.path().join(name);
    copy(&dir, "-a --resume -T src dst");
    let inode = |name: &str| metadata(at(name)).expect("looked at").ino();
    let (same, small) = (inode("dst/same"), inode("dst/d/small"));
    write(at("src/d/small"), "another").expect("written");
    // Another file of equal length and time, such as a broken disk makes.
    let damaged = File::options().write(true).open(at("dst/other")).expect("opened");
    damaged.write_all_at(b"broken", 12345).expect("written");
    set_time_of(&at("dst/other"), &at("src/other"));
    copy(&dir, "-a --resume -T src dst");
    assert_ne!(inode("dst/d/small"), small, "it was not complete");
    check_content(at("dst/d/small"), "another", "");
    assert!(read(at("dst/other")).expect("read") != read(at("src/other")).expect("read"));
    copy(&dir, "-a --resume --verify --receipt=receipt -T src dst");
    assert_equal_trees(&at("src"), &at("dst"), Aspects::ALL, "");
    assert_eq!(inode("dst/same"), same, "it was complete");
    for line in json_lines(&at("receipt")).iter().filter(|line| line["type"] == "file") {
        let method = if line["src"] == "src/other" { "copied" } else { "skipped" };
        assert_eq!(line["method"], method, "{line}");
        assert!(line["verified_xxh3_128"].is_string(), "{line}");
    }
    // A pre-existing directory is copied into.
    copy(&dir, "-a --resume src dst");
    assert!(at("dst/src/same").exists());
}

/// The run that made the copy may not have been able to set them.
#[test]
fn a_complete_file_gets_the_attributes_that_it_does_not_have() {
    let dir = dir_with("src/f=content mode=640 user.a=value");
    let line = "-aT --resume src dst";
    copy(&dir, line);
    let f = dir.path().join("dst/f");
    let inode = metadata(&f).expect("looked at").ino();
    rustix::fs::removexattr(&f, "user.a").expect("removed");
    set_permissions(&f, PermissionsExt::from_mode(0o666)).expect("mode set");
    copy(&dir, line);
    let now = metadata(&f).expect("looked at");
    assert_eq!((now.ino(), now.mode() & 0o777), (inode, 0o640));
    let mut value = [0; 9];
    let len = rustix::fs::getxattr(&f, "user.a", &mut value).expect("there");
    assert_eq!(&value[..len], b"value");
    // What an option keeps, and a file of another time, stays as it is.
    for (option, seconds) in [("-n", 0), ("-u", 60)] {
        set_permissions(&f, PermissionsExt::from_mode(0o666)).expect("mode set");
        let time = now.modified().expect("time read") + Duration::from_secs(seconds);
        File::open(&f).and_then(|file| file.set_modified(time)).expect("its time");
        copy(&dir, &format!("{option} {line}"));
        let found = metadata(&f).expect("looked at");
        assert_eq!(found.modified().expect("time read"), time, "{option}");
        assert_eq!(found.mode() & 0o777, 0o666, "{option}");
    }
}
