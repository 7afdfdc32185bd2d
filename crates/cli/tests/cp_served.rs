//! Copies to a file system that a process serves, which can do less than others: no file without a
//! name, and perhaps no rename that replaces nothing, and no links.

use std::ffi::OsStr;
use std::fs::{File, metadata, read, read_link, set_permissions, write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use testfs::{Costs, FuseFs, Lies, names_in, random_bytes, stderr};

use crate::{cp, haulage_cp};

fn begin(dir: &Path, args: &[&str]) -> Child {
    haulage_cp(dir, args).stderr(Stdio::piped()).spawn().expect("haulage runs")
}

/// All that a server can do.
const ALL: &str = "flags of renames and links";

/// The least.
const NEITHER: &str = "neither flags of renames nor links";

/// Runs `test` in an empty file system with each set of abilities. What it copies from is elsewhere.
fn each_server(costs: Costs, test: impl Fn(&str, &FuseFs)) {
    for (what, no_rename_flags, no_hard_links) in [
        (ALL, false, None),
        ("no flags of renames", true, None),
        (NEITHER, true, Some(Errno::PERM)),
        // As rclone says it.
        (NEITHER, true, Some(Errno::IO)),
    ] {
        let costs = Costs { no_rename_flags, no_hard_links, ..costs };
        let Some(served) = FuseFs::mount(costs) else { return };
        test(what, &served);
    }
}

/// A file of this content in a directory that goes with what is returned first, and its name.
fn source(content: &[u8]) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().expect("created");
    let src = dir.path().join("src");
    write(&src, content).expect("written");
    let src = src.to_str().expect("a plain name").to_owned();
    (dir, src)
}

#[test]
fn a_name_that_is_stored_as_another_gets_a_whole_file_and_an_error() {
    let (_dir, src) = source(b"content");
    let text = Costs { stores_text: true, ..Costs::default() };
    let fat = Costs { ignores_case: true, ..Costs::default() };
    for (costs, name, stored, due) in [
        (
            text,
            &b"no\xfftext"[..],
            "no\u{fffd}text",
            "'no'$'\\377''text': Invalid or incomplete multibyte or wide character",
        ),
        (fat, b"Inc.", "Inc", "'Inc.': Invalid argument"),
    ] {
        let due = format!("cp: cannot keep the name {due}\n");
        for options in ["-f", "--atomic", "--resume", "--atomic --durable"] {
            let Some(served) = FuseFs::mount(costs) else { return };
            let name = OsStr::from_bytes(name);
            let mut command = haulage_cp(served.path(), &["-a", "--dry-run"]);
            let output = command.args(options.split(' ')).arg(&src).arg(name).output();
            assert_eq!(stderr(&output.expect("haulage runs")), "", "{options}");
            let mut command = haulage_cp(served.path(), &["-a"]);
            let output = command.args(options.split(' ')).arg(&src).arg(name).output();
            let output = output.expect("haulage runs");
            assert_eq!((&*stderr(&output), output.status.code()), (&*due, Some(1)), "{options}");
            assert_eq!(names_in(served.path()), [stored], "{options}");
            assert_eq!(read(served.path().join(stored)).expect("read"), b"content");
        }
    }
}

#[test]
fn a_lock_that_outlives_its_run_is_waited_for() {
    let (_dir, src) = source(b"content");
    for option in ["--atomic", "--resume"] {
        let Some(served) = FuseFs::mount(Costs::default()) else { return };
        let left = served.path().join(".new.haulage-new");
        write(&left, "").expect("the file of a killed run");
        let locked = File::open(&left).expect("the file of a killed run");
        locked.lock().expect("its lock");
        let child = begin(served.path(), &[option, &src, "new"]);
        let opened = PathBuf::from(format!("/proc/{}/fd", child.id()));
        testfs::wait_until(|| {
            let files = opened.read_dir().into_iter().flatten().flatten();
            files.map(|file| file.path()).any(|file| read_link(file).is_ok_and(|it| it == left))
        });
        drop(locked);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((stderr(&output).as_str(), output.status.code()), ("", Some(0)), "{option}");
        assert_eq!(names_in(served.path()), ["new"], "{option}");
    }
}

/// Whether the copy has created a temporary file in `dir`.
fn has_begun(dir: &Path) -> bool {
    names_in(dir).iter().any(|name| name.contains("haulage"))
}

#[test]
fn atomic_renames_a_complete_file() {
    let content = random_bytes(300_000, 1);
    let (_dir, src) = source(&content);
    set_permissions(&src, PermissionsExt::from_mode(0o640)).expect("mode set");
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        write(root.join("old"), "old").expect("written");
        let before = metadata(root.join("old")).expect("looked at");
        for name in ["old", "new"] {
            let output = cp(root, &["-p", "--atomic", "--durable", &src, name]);
            assert_eq!(stderr(&output), "", "{what}: {name}");
            assert!(output.status.success(), "{what}: {name}");
            assert!(read(root.join(name)).expect("read") == content, "{what}: {name}");
            let [copied, from] = [root.join(name), PathBuf::from(&src)].map(|path| {
                let found = metadata(path).expect("looked at");
                (found.mode(), found.mtime(), found.mtime_nsec(), found.nlink())
            });
            assert_eq!(copied, from, "{what}: {name}");
        }
        assert_ne!(metadata(root.join("old")).expect("looked at").ino(), before.ino(), "{what}");
        assert_eq!(names_in(root), ["new", "old"], "{what}");
    });
}

#[test]
fn atomic_replaces_no_file_that_appears_during_the_copy() {
    let (_dir, src) = source(&random_bytes(300_000, 1));
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        let child = begin(root, &["--atomic", "--limit-rate=300K", &src, "new"]);
        testfs::wait_until(|| has_begun(root));
        write(root.join("new"), "another's").expect("written");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{what}");
        let due = "cp: cannot create regular file 'new': File exists\n";
        assert_eq!(stderr(&output), due, "{what}");
        assert_eq!(read(root.join("new")).expect("read"), b"another's", "{what}");
        assert_eq!(names_in(root), ["new"], "{what}");
    });
}

/// The server creates the name just before the rename, which no test could do by itself in time.
#[test]
fn atomic_replaces_no_file_that_appears_just_before_the_rename() {
    let (_dir, src) = source(b"content");
    let costs = Costs { rename_loses_race: true, ..Costs::default() };
    each_server(costs, |what, served| {
        let root = served.path();
        let output = cp(root, &["--atomic", &src, "new"]);
        // With flags nobody can come in between.
        let (due, content) = match what {
            ALL => ("", "content"),
            _ => ("cp: cannot create regular file 'new': File exists\n", "new"),
        };
        assert_eq!(stderr(&output), due, "{what}");
        assert_eq!(read(root.join("new")).expect("read"), content.as_bytes(), "{what}");
        assert_eq!(names_in(root), ["new"], "{what}");
    });
    each_server(costs, |what, served| {
        let root = served.path();
        write(root.join("f"), "old").expect("written");
        let output = cp(root, &["--backup=numbered", &src, "f"]);
        assert_eq!(stderr(&output), "", "{what}");
        let (names, backup) = match what {
            ALL => (&["f", "f.~1~"][..], "f.~1~"),
            _ => (&["f", "f.~1~", "f.~2~"][..], "f.~2~"),
        };
        assert_eq!(names_in(root), names, "{what}");
        assert_eq!(read(root.join(backup)).expect("the backup"), b"old", "{what}");
        assert_eq!(read(root.join("f")).expect("read"), b"content", "{what}");
    });
}

/// A hard link for a moment would show two names to others. Some servers lose times by it, and some by a sync, or
/// by a close after that.
#[test]
fn the_time_is_kept_whichever_way_the_name_is_given_and_the_file_synced() {
    let content = random_bytes(5 << 20, 1);
    let (_dir, src) = source(&content);
    let time = std::time::SystemTime::UNIX_EPOCH + Duration::new(981_158_400, 5000);
    std::fs::File::open(&src).and_then(|file| file.set_modified(time)).expect("a time");
    each_server(Costs::default(), |what, served| {
        let (links_change_times, syncs_change_times) = (true, true);
        served.lie(Lies { links_change_times, syncs_change_times, ..Lies::default() });
        let root = served.path();
        let sets = [
            &["--atomic"][..],
            &["--resume"],
            &["--durable"],
            &["--verify"],
            &["--durable", "--atomic"],
            &["--durable", "--verify"],
        ];
        for options in sets {
            for keeps in ["--update=all", "--update=none", "--update=none-fail", "-i", "-b", "-u"] {
                let name = format!("to {} {keeps}", options.join(" "));
                let output = cp(root, &[options, &["-p", keeps, &src, &name]].concat());
                assert_eq!(stderr(&output), "", "{what}: {name}");
                let copied = metadata(root.join(&name)).expect("looked at");
                assert_eq!(copied.modified().expect("a time"), time, "{what}: {name}");
                assert_eq!(copied.nlink(), 1, "{what}: {name}");
            }
        }
        assert_eq!(names_in(root).len(), 36, "{what}");
        // With --atomic the backup is a second name of what is replaced.
        for (name, options, backup) in [("b", "-pb", "b~"), ("c", "--backup=t", "c.~1~")] {
            std::fs::copy(&src, root.join(name)).expect("copied");
            let old = std::fs::File::options().write(true).open(root.join(name)).expect("opened");
            old.set_modified(time).expect("time set");
            let output = cp(root, &["--atomic", options, &src, name]);
            assert_eq!(stderr(&output), "", "{what}: {options}");
            let kept = metadata(root.join(backup)).expect("the backup").modified();
            assert_eq!(kept.expect("a time"), time, "{what}: {options}");
        }
    });
}

/// A server of SMB takes the protection off at a rename.
#[test]
fn a_file_that_its_owner_may_not_write_is_so_under_its_name() {
    let content = random_bytes(5 << 20, 1);
    let (_dir, src) = source(&content);
    each_server(Costs::default(), |what, served| {
        served.lie(Lies { renames_unprotect: true, ..Lies::default() });
        let root = served.path();
        for (index, mode) in [0o400, 0o644].into_iter().enumerate() {
            set_permissions(&src, PermissionsExt::from_mode(mode)).expect("mode set");
            for options in [&["--atomic"][..], &["--resume"], &["--durable", "--atomic"]] {
                let name = format!("to {} {index}", options.join(" "));
                for onto in ["nothing", "its copy"] {
                    let output = cp(root, &[options, &["-p", &src, &name]].concat());
                    assert_eq!(stderr(&output), "", "{what}: {name}, onto {onto}");
                    let copied = metadata(root.join(&name)).expect("looked at").mode();
                    assert_eq!(copied & 0o7777, mode, "{what}: {name}, onto {onto}");
                }
            }
        }
    });
}

/// The kernel knew the name from before.
#[test]
fn a_file_that_another_host_has_removed_is_copied_anew() {
    let (_dir, src) = source(b"content");
    let costs = Costs { caches_for: Duration::from_secs(600), ..Costs::default() };
    let Some(served) = FuseFs::mount(costs) else { return };
    let Some(elsewhere) = served.mount_again() else { return };
    for options in [&[][..], &["-f"], &["-a"], &["--atomic"], &["-a", "--atomic"], &["--resume"]] {
        let dst = served.path().join("f");
        write(&dst, "old").expect("written");
        assert_eq!(read(elsewhere.path().join("f")).expect("the file"), b"old", "{options:?}");
        assert!(dst.exists(), "{options:?}");
        std::fs::remove_file(elsewhere.path().join("f")).expect("removed");
        // The kernel forgets an inode some time after its last name went. Until then it could be opened.
        testfs::wait_until(|| served.inodes() == 1);
        assert!(dst.exists(), "the kernel knows it still");
        let output = cp(served.path(), &[options, &[&src, "f"]].concat());
        assert_eq!(stderr(&output), "", "{options:?}");
        assert_eq!(
            served.contents()[Path::new("f")].as_deref(),
            Some(&b"content"[..]),
            "{options:?}"
        );
        std::fs::remove_file(&dst).expect("removed");
    }
}

/// A list of NFSv4 with one entry, which allows `who` to read, write and append.
fn nfs4_acl(who: &str) -> &'static [u8] {
    let words = [1, 0, 0, 0x7, u32::try_from(who.len()).expect("it is short")];
    let mut list = [words.map(u32::to_be_bytes).as_flattened(), who.as_bytes()].concat();
    list.resize(list.len().next_multiple_of(4), 0);
    list.leak()
}

/// Every file of NFSv4 has a list. It is lost on another file system if a mode cannot say the same.
#[test]
fn lists_of_nfs_that_are_modes_are_kept_as_modes() {
    let there = tempfile::tempdir().expect("created");
    for (who, is_mode) in [("OWNER@", true), ("EVERYONE@", true), ("user@domain", false)] {
        let costs = Costs { nfs4_acl: Some(nfs4_acl(who)), ..Costs::default() };
        let Some(served) = FuseFs::mount(costs) else { return };
        write(served.path().join("f"), "content").expect("written");
        set_permissions(served.path().join("f"), PermissionsExt::from_mode(0o640))
            .expect("mode set");
        for options in [&["-a"][..], &["-p"], &["-a", "--atomic"]] {
            let dst = there.path().join("f");
            let args = [options, &["f", dst.to_str().expect("a plain name")]].concat();
            let output = cp(served.path(), &args);
            let message = format!(
                "cp: preserving permissions for '{}': Operation not supported\n",
                dst.display()
            );
            let expected = if is_mode { "" } else { &message };
            assert_eq!(stderr(&output), expected, "{options:?} {who:?}");
            assert_eq!(output.status.success(), is_mode, "{options:?} {who:?}");
            assert_eq!(read(&dst).expect("read"), b"content", "{options:?} {who:?}");
            let mode = metadata(&dst).expect("looked at").permissions().mode();
            assert_eq!(mode & 0o7777, 0o640, "{options:?} {who:?}");
            std::fs::remove_file(&dst).expect("removed");
        }
    }
}

#[test]
fn a_file_that_only_its_creator_may_read_is_verified() {
    let content = random_bytes(5 << 20, 1);
    let (_dir, src) = source(&content);
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        for option in ["--atomic", "--resume"] {
            for wrong_byte_at in [None, Some(4 << 20)] {
                let creator_reads_alone = true;
                served.lie(Lies { creator_reads_alone, wrong_byte_at, ..Lies::default() });
                let output = cp(root, &["--verify", option, &src, "f"]);
                assert_eq!(output.status.success(), wrong_byte_at.is_none(), "{what} {option}");
                assert_eq!(
                    stderr(&output).contains("differs"),
                    wrong_byte_at.is_some(),
                    "{what} {option}"
                );
                assert_eq!(root.join("f").exists(), wrong_byte_at.is_none(), "{what} {option}");
                let _ = std::fs::remove_file(root.join("f"));
            }
        }
        assert_eq!(names_in(root), [""; 0], "{what}");
    });
}

/// Reads may be short anywhere, and io_uring(7) read the start of such a file again and again.
#[test]
fn every_engine_copies_what_short_reads_return() {
    let dir = tempfile::tempdir().expect("created");
    let Some(served) = FuseFs::mount(Costs { direct_io: true, ..Costs::default() }) else { return };
    let content = random_bytes(300_000, 1);
    write(served.path().join("src"), &content).expect("written");
    for read_bytes_max in [1000, 4096, 65_537] {
        served.lie(Lies { read_bytes_max: Some(read_bytes_max), ..Lies::default() });
        for engine in ["io_uring", "direct_read", "splice", "sendfile", "copy_file_range", "stdio"]
        {
            let src = served.path().join("src");
            let args = [&*format!("--engine={engine}"), src.to_str().expect("plain"), "dst"];
            let output = cp(dir.path(), &args);
            assert!(output.status.success(), "{engine}: {}", stderr(&output));
            let copied = read(dir.path().join("dst")).expect("read");
            assert!(copied == content, "{engine}: {read_bytes_max}: silently wrong");
        }
    }
}

/// A copy with `--atomic` looked for another temporary name for ever, and later left an empty temporary.
#[test]
fn atomic_ends_where_inode_numbers_change_at_each_look() {
    let content = random_bytes(300_000, 1);
    let (_dir, src) = source(&content);
    each_server(Costs::default(), |what, served| {
        write(served.path().join(".new.haulage-new"), "of a killed run").expect("written");
        served.lie(Lies { changing_inodes: true, ..Lies::default() });
        let child = begin(served.path(), &["--atomic", &src, "new"]);
        let pid = Pid::from_child(&child);
        let ended = std::thread::spawn(|| child.wait_with_output().expect("it is ours"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !ended.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !ended.is_finished() {
            kill_process(pid, Signal::KILL).expect("it runs");
        }
        let output = ended.join().expect("it was waited for");
        assert!(output.status.success(), "{what}: {}: {}", output.status, stderr(&output));
        let mut found = served.contents();
        let copied = found.remove(Path::new("new"));
        assert!(copied.flatten().is_some_and(|copied| copied == content), "{what}");
        let left: Vec<_> = found.into_keys().filter(|path| !path.as_os_str().is_empty()).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    });
}

#[test]
fn an_interrupted_copy_leaves_the_old_file_alone() {
    let (_dir, src) = source(&random_bytes(300_000, 1));
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        write(root.join("old"), "old").expect("written");
        let child = begin(root, &["--atomic", "--limit-rate=30K", &src, "old"]);
        // Until it watches for signals one ends it on the spot.
        testfs::wait_until(|| has_begun(root) && testfs::handles(&child, Signal::TERM.as_raw()));
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.signal(), Some(15), "{what}");
        assert_eq!(stderr(&output), "cp: interrupted: 'old' is as it was before\n", "{what}");
        assert_eq!(read(root.join("old")).expect("read"), b"old", "{what}");
        assert_eq!(names_in(root), ["old"], "{what}");
    });
}

/// With `--atomic` by a hard link. Without hard links the old file is renamed.
#[test]
fn backups_are_numbered_and_none_replaces_another() {
    let dir = tempfile::tempdir().expect("created");
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        write(root.join("f"), "0").expect("written");
        for (atomic, number) in [(&[][..], 1), (&["--atomic"], 2), (&[], 4), (&["--atomic"], 5)] {
            if number == 4 {
                write(root.join("f.~3~"), "another's").expect("written");
            }
            let src = dir.path().join("src");
            write(&src, number.to_string()).expect("written");
            let src = src.to_str().expect("a plain name");
            let output = cp(root, &[atomic, &["--backup=numbered", src, "f"]].concat());
            assert!(output.status.success(), "{what}: {number}: {}", stderr(&output));
        }
        let due = [
            ("f", "5"),
            ("f.~1~", "0"),
            ("f.~2~", "1"),
            ("f.~3~", "another's"),
            ("f.~4~", "2"),
            ("f.~5~", "4"),
        ];
        let names = names_in(root);
        let content =
            |name: &String| String::from_utf8(read(root.join(name)).expect("read")).expect("text");
        let found: Vec<_> = names.iter().map(|name| (name.as_str(), content(name))).collect();
        let due = due.map(|(name, text)| (name, text.to_owned()));
        assert_eq!(found, due, "{what}");
    });
}

#[test]
fn a_killed_copy_goes_on_where_it_was() {
    check_killed(&Lies::default());
}

/// A copy with `--resume` left an empty partial file, and did not continue.
#[test]
fn a_killed_copy_goes_on_where_inode_numbers_change_at_each_look() {
    check_killed(&Lies { changing_inodes: true, ..Lies::default() });
}

/// Kills a copy to a file system that tells these lies, and checks that the next run continues it.
fn check_killed(lies: &Lies) {
    const LEN: usize = 24 << 20;
    let dir = tempfile::tempdir().expect("created");
    let content = random_bytes(LEN, 1);
    write(dir.path().join("src"), &content).expect("written");
    let src = dir.path().join("src");
    let src = src.to_str().expect("a plain name");
    let costs = Costs { write_time: Duration::from_millis(4), ..Costs::default() };
    each_server(costs, |what, served| {
        served.lie(lies.clone());
        let root = served.path();
        let common = ["-p", "--resume", "--engine=read_write:256K", src];
        let output = cp(root, &[&common[..], &["whole"]].concat());
        assert!(output.status.success(), "{what}: {}", stderr(&output));
        // Those of the journal are among them.
        let whole = served.writes();
        let args = [&common[..], &["copy"]].concat();
        let mut child = begin(root, &args);
        // A look at the partial file could make the kernel forget its name.
        testfs::wait_until(|| (served.writes() - whole) * 2 >= whole);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let killed = served.writes() - whole;
        assert!(!root.join("copy").exists(), "{what}");
        let output = cp(root, &args);
        assert_eq!(stderr(&output), "", "{what}");
        assert!(output.status.success(), "{what}");
        let rest = served.writes() - whole - killed;
        assert!(rest * 3 < whole * 2, "{what}: {rest} writes after {killed} of {whole}");
        assert!(read(root.join("copy")).expect("read") == content, "{what}");
        assert_eq!(names_in(root), ["copy", "whole"], "{what}");
        // What is complete is left.
        let before = served.writes();
        assert!(cp(root, &args).status.success(), "{what}");
        assert_eq!(served.writes(), before, "{what}");
    });
}
