//! Copies to a file system that a process serves, which can do less than others: no file without a
//! name, and perhaps no rename that replaces nothing, and no links.

use std::ffi::OsStr;
use std::fs::{File, metadata, read_link, remove_file, set_permissions, write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use testfs::{Costs, FuseFs, Lies, names_in, random_bytes, stderr};

use crate::{
    begin, check, check_content, check_failed, check_success, copy, cp, dir_with, fixture,
    haulage_cp, shell,
};

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

/// A file as this item of a fixture says, in a directory that goes with what is returned first, and its name.
fn source(item: &str) -> (tempfile::TempDir, String) {
    let dir = dir_with(item);
    let src = dir.path().join("src").display().to_string();
    (dir, src)
}

#[test]
fn a_name_that_is_stored_as_another_gets_a_whole_file_and_an_error() {
    let (_dir, src) = source("src=content");
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
            let run = |options: &str| {
                let mut command = haulage_cp(served.path(), &format!("-a {options} {src}"));
                command.arg(name).output().expect("haulage ran")
            };
            check(&run(&format!("--dry-run {options}")), 0, "", options);
            check(&run(options), 1, &due, options);
            assert_eq!(names_in(served.path()), [stored], "{options}");
            check_content(served.path().join(stored), "content", options);
        }
    }
}

#[test]
fn a_lock_that_outlives_its_run_is_waited_for() {
    let (_dir, src) = source("src=content");
    for option in ["--atomic", "--resume"] {
        let Some(served) = FuseFs::mount(Costs::default()) else { return };
        let left = served.path().join(".new.haulage-new");
        write(&left, "").expect("the file of a killed run");
        let locked = File::open(&left).expect("the file of a killed run");
        locked.lock().expect("locked");
        let child = begin(served.path(), &format!("{option} {src} new"));
        let opened = PathBuf::from(format!("/proc/{}/fd", child.id()));
        testfs::wait_until(|| {
            let files = opened.read_dir().into_iter().flatten().flatten();
            files.map(|file| file.path()).any(|file| read_link(file).is_ok_and(|it| it == left))
        });
        drop(locked);
        let output = child.wait_with_output().expect("ended");
        check(&output, 0, "", option);
        assert_eq!(names_in(served.path()), ["new"], "{option}");
    }
}

/// Whether the copy has created a temporary file in `dir`.
fn has_begun(dir: &Path) -> bool {
    names_in(dir).iter().any(|name| name.contains("haulage"))
}

#[test]
fn atomic_replaces_no_file_that_appears_during_the_copy() {
    let (_dir, src) = source("src#300000:1");
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        let child = begin(root, &format!("--atomic --limit-rate=300K {src} new"));
        testfs::wait_until(|| has_begun(root));
        write(root.join("new"), "another's").expect("written");
        let output = child.wait_with_output().expect("ended");
        check(&output, 1, "cp: cannot create regular file 'new': File exists\n", what);
        check_content(root.join("new"), "another's", what);
        assert_eq!(names_in(root), ["new"], "{what}");
    });
}

/// The server creates the name just before the rename, which no test could do by itself in time.
#[test]
fn atomic_replaces_no_file_that_appears_just_before_the_rename() {
    let (_dir, src) = source("src=content");
    let costs = Costs { rename_loses_race: true, ..Costs::default() };
    each_server(costs, |what, served| {
        let root = served.path();
        let output = cp(root, &format!("--atomic {src} new"));
        // With flags nobody can come in between.
        let (due, content) = match what {
            ALL => ("", "content"),
            _ => ("cp: cannot create regular file 'new': File exists\n", "new"),
        };
        assert_eq!(stderr(&output), due, "{what}");
        check_content(root.join("new"), content, what);
        copy(root, &format!("--atomic {src} new"));
        check_content(root.join("new"), "content", what);
        assert_eq!(names_in(root), ["new"], "{what}");
    });
    each_server(costs, |what, served| {
        let root = served.path();
        fixture::add("f=old", root);
        check(&cp(root, &format!("--backup=numbered {src} f")), 0, "", what);
        let (names, backup) = match what {
            ALL => (&["f", "f.~1~"][..], "f.~1~"),
            _ => (&["f", "f.~1~", "f.~2~"][..], "f.~2~"),
        };
        assert_eq!(names_in(root), names, "{what}");
        check_content(root.join(backup), "old", what);
        check_content(root.join("f"), "content", what);
    });
}

/// A hard link for a moment would show two names to others. Some servers lose times by it, and some by a sync, or
/// by a close after that.
#[test]
fn the_time_is_kept_whichever_way_the_name_is_given_and_the_file_synced() {
    let (_dir, src) = source("src#5M:1");
    let time = std::time::SystemTime::UNIX_EPOCH + Duration::new(981_158_400, 5000);
    std::fs::File::open(&src).and_then(|file| file.set_modified(time)).expect("a time");
    each_server(Costs::default(), |what, served| {
        let (links_change_times, syncs_change_times) = (true, true);
        served.lie(Lies { links_change_times, syncs_change_times, ..Lies::default() });
        let root = served.path();
        for (number, options) in [
            "--atomic",
            "--resume",
            "--durable",
            "--verify",
            "--durable --atomic",
            "--durable --verify",
        ]
        .iter()
        .enumerate()
        {
            for keeps in ["--update=all", "--update=none", "-i", "-b", "-u"] {
                let name = format!("to{number}{keeps}");
                let line = format!("{options} -p {keeps} {src} {name}");
                check(&cp(root, &line), 0, "", format_args!("{what}: {line}"));
                let copied = metadata(root.join(&name)).expect("looked at");
                assert_eq!(copied.modified().expect("time read"), time, "{what}: {line}");
                assert_eq!(copied.nlink(), 1, "{what}: {line}");
            }
        }
        assert_eq!(names_in(root).len(), 30, "{what}");
        // With --atomic the backup is a second name of what is replaced.
        for (name, options, backup) in [("b", "-pb", "b~"), ("c", "--backup=t", "c.~1~")] {
            std::fs::copy(&src, root.join(name)).expect("copied");
            let old = std::fs::File::options().write(true).open(root.join(name)).expect("opened");
            old.set_modified(time).expect("time set");
            let output = cp(root, &format!("--atomic {options} {src} {name}"));
            check(&output, 0, "", format_args!("{what}: {options}"));
            let kept = metadata(root.join(backup)).expect("looked at").modified();
            assert_eq!(kept.expect("a time"), time, "{what}: {options}");
        }
    });
}

/// A server of SMB takes the protection off at a rename.
#[test]
fn a_file_that_its_owner_may_not_write_is_so_under_its_name() {
    let (_dir, src) = source("src#5M:1");
    each_server(Costs::default(), |what, served| {
        served.lie(Lies { renames_unprotect: true, ..Lies::default() });
        let root = served.path();
        for mode in [0o400, 0o644] {
            set_permissions(&src, PermissionsExt::from_mode(mode)).expect("mode set");
            for options in ["--atomic", "--resume", "--durable --atomic"] {
                for onto in ["nothing", "its copy"] {
                    let what = format!("{what}: {options} {mode:o}, onto {onto}");
                    check(&cp(root, &format!("{options} -p {src} to")), 0, "", &what);
                    let copied = metadata(root.join("to")).expect("looked at").mode();
                    assert_eq!(copied & 0o7777, mode, "{what}");
                }
                remove_file(root.join("to")).expect("removed");
            }
        }
    });
}

/// The kernel knew the name from before.
#[test]
fn a_file_that_another_host_has_removed_is_copied_anew() {
    let (_dir, src) = source("src=content");
    let costs = Costs { caches_for: Duration::from_secs(600), ..Costs::default() };
    let Some(served) = FuseFs::mount(costs) else { return };
    let Some(elsewhere) = served.mount_again() else { return };
    for options in ["", "-f", "-a", "--atomic", "-a --atomic", "--resume"] {
        let dst = served.path().join("f");
        write(&dst, "old").expect("written");
        check_content(elsewhere.path().join("f"), "old", options);
        assert!(dst.exists(), "{options}");
        remove_file(elsewhere.path().join("f")).expect("removed");
        // The kernel forgets an inode some time after its last name went. Until then it could be opened.
        testfs::wait_until(|| served.inodes() == 1);
        assert!(dst.exists(), "the kernel knows it still");
        check(&cp(served.path(), &format!("{options} {src} f")), 0, "", options);
        let content = &served.contents()[Path::new("f")];
        assert_eq!(content.as_deref(), Some(&b"content"[..]), "{options}");
        remove_file(&dst).expect("removed");
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
        fixture::add("f=content mode=640", served.path());
        for options in ["-a", "-p", "-a --atomic"] {
            let (what, f) = (format!("{options} {who}"), there.path().join("f"));
            let dst = f.display();
            let output = cp(served.path(), &format!("{options} f {dst}"));
            let message =
                format!("cp: preserving permissions for '{dst}': Operation not supported\n");
            let expected = if is_mode { "" } else { &message };
            check(&output, i32::from(!is_mode), expected, &what);
            check_content(&f, "content", &what);
            assert_eq!(metadata(&f).expect("looked at").mode() & 0o7777, 0o640, "{what}");
            remove_file(&f).expect("removed");
        }
    }
}

#[test]
fn a_file_that_only_its_creator_may_read_is_verified() {
    let (_dir, src) = source("src#5M:1");
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        for option in ["--atomic", "--resume"] {
            for wrong_byte_at in [None, Some(4 << 20)] {
                let creator_reads_alone = true;
                served.lie(Lies { creator_reads_alone, wrong_byte_at, ..Lies::default() });
                let line = format!("--verify {option} {src} f");
                if wrong_byte_at.is_none() {
                    copy(root, &line);
                    remove_file(root.join("f")).expect("removed");
                } else {
                    check_failed(&cp(root, &line), "differs", format_args!("{what} {option}"));
                    assert!(!root.join("f").exists(), "{what} {option}");
                }
            }
        }
        assert_eq!(names_in(root), [""; 0], "{what}");
    });
}

/// Reads may be short anywhere, and io_uring(7) read the start of such a file again and again.
#[test]
fn every_engine_copies_what_short_reads_return() {
    let dir = tempfile::tempdir().expect("created");
    let content = random_bytes(300_000, 1);
    for read_bytes_max in [1000, 4096, 65_537] {
        let lies = Lies { read_bytes_max: Some(read_bytes_max), ..Lies::default() };
        let Some(served) = FuseFs::with_source(content.clone(), lies) else { return };
        let src = served.source().display().to_string();
        for engine in ["io_uring", "direct_read", "splice", "sendfile", "copy_file_range", "stdio"]
        {
            copy(&dir, &format!("--engine={engine} {src} dst"));
            let what = format!("{engine}: {read_bytes_max}");
            check_content(dir.path().join("dst"), &content, what);
        }
    }
}

/// A copy with `--atomic` looked for another temporary name for ever, and later left an empty temporary.
#[test]
fn atomic_ends_where_inode_numbers_change_at_each_look() {
    let (_dir, src) = source("src#300000:1");
    each_server(Costs::default(), |what, served| {
        write(served.path().join(".new.haulage-new"), "of a killed run").expect("written");
        served.lie(Lies { changing_inodes: true, ..Lies::default() });
        // Without an end of its own.
        let script = format!("exec timeout -s KILL 60 \"$0\" cp --atomic {src} new");
        let output = shell(served.path(), &script).output().expect("ran");
        check_success(&output, what);
        let mut found = served.contents();
        let copied = found.remove(Path::new("new"));
        let content = random_bytes(300_000, 1);
        assert!(copied.flatten().is_some_and(|copied| copied == content), "{what}");
        let left: Vec<_> = found.into_keys().filter(|path| !path.as_os_str().is_empty()).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    });
}

#[test]
fn an_interrupted_copy_leaves_the_old_file_alone() {
    let (_dir, src) = source("src#300000:1");
    each_server(Costs::default(), |what, served| {
        let root = served.path();
        fixture::add("old=old", root);
        let child = begin(root, &format!("--atomic --limit-rate=30K {src} old"));
        // Until it watches for signals one ends it on the spot.
        testfs::wait_until(|| has_begun(root) && testfs::handles(&child, Signal::TERM.as_raw()));
        kill_process(Pid::from_child(&child), Signal::TERM).expect("signalled");
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.signal(), Some(15), "{what}");
        assert_eq!(stderr(&output), "cp: interrupted: 'old' is as it was before\n", "{what}");
        check_content(root.join("old"), "old", what);
        assert_eq!(names_in(root), ["old"], "{what}");
    });
}

/// With `--atomic` by a hard link. Without hard links the old file is renamed.
#[test]
fn backups_are_numbered_and_none_replaces_another() {
    each_server(Costs::default(), |what, served| {
        let (dir, root) = (dir_with("1=1; 2=2; 4=4; 5=5"), served.path());
        fixture::add("f=0", root);
        for (atomic, number) in [("", 1), ("--atomic", 2), ("", 4), ("--atomic", 5)] {
            if number == 4 {
                fixture::add("f.~3~=another's", root);
            }
            copy(&dir, &format!("{atomic} --backup=numbered {number} {}/f", root.display()));
        }
        let due = [
            ("f", "5"),
            ("f.~1~", "0"),
            ("f.~2~", "1"),
            ("f.~3~", "another's"),
            ("f.~4~", "2"),
            ("f.~5~", "4"),
        ];
        assert_eq!(names_in(root), due.map(|(name, _)| name), "{what}");
        due.iter().for_each(|(name, content)| check_content(root.join(name), content, what));
    });
}

/// Where inode numbers change at each look, a copy with `--resume` left an empty partial file, and did not
/// continue.
#[test]
fn a_killed_copy_goes_on_where_it_was() {
    let (_dir, src) = source("src#24M:1");
    let costs = Costs { write_time: Duration::from_millis(4), ..Costs::default() };
    for changing_inodes in [false, true] {
        each_server(costs, |what, served| {
            served.lie(Lies { changing_inodes, ..Lies::default() });
            let root = served.path();
            let common = format!("-p --resume --engine=read_write:256K {src}");
            copy(root, &format!("{common} whole"));
            // Those of the journal are among them.
            let whole = served.writes();
            let line = format!("{common} copy");
            let mut child = begin(root, &line);
            // A look at the partial file could make the kernel forget its name.
            testfs::wait_until(|| (served.writes() - whole) * 2 >= whole);
            child.kill().expect("signalled");
            child.wait().expect("ended");
            let killed = served.writes() - whole;
            assert!(!root.join("copy").exists(), "{what}");
            check(&cp(root, &line), 0, "", what);
            let rest = served.writes() - whole - killed;
            assert!(rest * 3 < whole * 2, "{what}: {rest} writes after {killed} of {whole}");
            check_content(root.join("copy"), random_bytes(24 << 20, 1), what);
            assert_eq!(names_in(root), ["copy", "whole"], "{what}");
            // What is complete is left.
            let before = served.writes();
            copy(root, &line);
            assert_eq!(served.writes(), before, "{what}");
        });
    }
}
