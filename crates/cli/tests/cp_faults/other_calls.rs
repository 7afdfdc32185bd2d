//! Calls that a copy can do without, and those whose failure it must report.

use std::fs::{Permissions, create_dir, read, read_link, remove_file, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use testfs::{is_root, random_bytes, skip, stderr, test_name};

use crate::{HAULAGE, calls, cp, strace, with_faults};

/// A copy without the attributes that could not be listed counts them as lost.
#[test]
fn attributes_that_cannot_be_listed_are_counted() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "content").expect("written");
    const ERROR: &str = "getting attributes for 'b': Input/output error\n";
    const DENIED: &str = "getting attributes for 'b': Permission denied\n";
    for (option, errno, said, status) in [
        ("-a", "EIO", ERROR, 0),
        ("-a", "EACCES", "", 0),
        ("--preserve=all", "EACCES", DENIED, 0),
        ("--preserve=xattr", "EIO", ERROR, 1),
        ("--preserve=xattr", "EACCES", DENIED, 1),
    ] {
        let what = format!("{option} {errno}");
        let inject = format!("inject=flistxattr:error={errno}");
        let args = [option, "--stats", "--receipt=receipt", "a", "b"];
        let Some(output) = with_faults(dir.path(), &[&inject], &args) else { return };
        assert_eq!(calls(dir.path(), "(INJECTED)"), 1, "{what}");
        assert_eq!(output.status.code(), Some(status), "{what}");
        let stderr = stderr(&output);
        let messages: String =
            stderr.split_inclusive('\n').filter(|line| line.starts_with("cp: ")).collect();
        let prefix = match (said, status) {
            ("", _) => "",
            (_, 0) => "cp: warning: ",
            _ => "cp: ",
        };
        assert_eq!(messages, format!("{prefix}{said}"), "{what}");
        let counted = "attributes lost           1 entry\n";
        assert!(stderr.contains(counted), "{what}: {stderr}");
        let lines = testfs::json_lines(&dir.path().join("receipt"));
        let lost = lines[0]["lost"].as_array().expect("a list");
        let all = |list: &[&str]| {
            list.iter().all(|kind| lost.iter().any(|loss| loss["attribute"] == *kind))
        };
        assert!(
            all(&["xattr"]) && lost.iter().all(|loss| loss["errno"]["name"] == errno),
            "{lines:?}"
        );
        assert_eq!(lines[1]["with_losses"], 1, "{what}");
        std::fs::remove_file(dir.path().join("b")).expect("removed");
    }
    // A file system without them has none to lose.
    let inject = "inject=flistxattr:error=EOPNOTSUPP";
    let Some(output) = with_faults(dir.path(), &[inject], &["-a", "--stats", "a", "b"]) else {
        return;
    };
    assert!(!stderr(&output).contains("attributes"), "{}", stderr(&output));
}

/// Access control lists have known names, and are kept where attributes cannot be listed.
#[test]
fn access_control_lists_are_kept_without_a_listing() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir_all(dir.path().join("s/d")).expect("a tree");
    write(dir.path().join("s/a"), "content").expect("written");
    for (list, name) in [("u:1:r", "s/a"), ("g:2:rx", "s/d"), ("d:u:1:rwx", "s/d")] {
        let mut setfacl = Command::new("setfacl");
        match setfacl.arg("-m").args([list, name]).current_dir(&dir).output() {
            Ok(output) if output.status.success() => {}
            failed => {
                let why = failed.map_or_else(|error| error.to_string(), |output| stderr(&output));
                return skip(&test_name(), &format!("setfacl: {why}"));
            }
        }
    }
    let lists = |tree: &str| {
        let mut command = Command::new("getfacl");
        command.args(["-R", "-n", "--omit-header", "."]).current_dir(dir.path().join(tree));
        testfs::stdout(&command.output().expect("getfacl"))
    };
    for (option, status) in [("-a", 0), ("-p", 0), ("--preserve=mode", 0)] {
        let args = ["-r", option, "-T", "s", "t"];
        let inject = "inject=flistxattr,listxattr,llistxattr:error=EIO";
        let Some(output) = with_faults(dir.path(), &[inject], &args) else { return };
        assert_eq!(output.status.code(), Some(status), "{option}: {}", stderr(&output));
        assert!(calls(dir.path(), "(INJECTED)") > 0, "{option}");
        assert_eq!(lists("t"), lists("s"), "{option}");
        std::fs::remove_dir_all(dir.path().join("t")).expect("removed");
    }
    // What cannot be read either is a failure.
    let faults = ["inject=flistxattr:error=EIO", "inject=fgetxattr:error=EIO"];
    let Some(output) = with_faults(dir.path(), &faults, &["-p", "s/a", "b"]) else { return };
    assert_eq!(stderr(&output), "cp: preserving permissions for 'b': Input/output error\n");
    assert_eq!(output.status.code(), Some(1));
}

/// A close that fails after `--atomic` has renamed the copy must not remove the backup, the last
/// name of the old file.
#[test]
fn a_failing_close_leaves_the_backup() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "new").expect("written");
    let mut failures = 0;
    for (option, backup) in [("-b", "b~"), ("--backup=numbered", "b.~1~")] {
        for when in 1..=24 {
            write(dir.path().join("b"), "old").expect("written");
            let inject = format!("inject=close:error=ENOSPC:when={when}");
            let args = ["-a", "--atomic", option, "a", "b"];
            let Some(output) = with_faults(dir.path(), &[&inject], &args) else { return };
            failures += u32::from(!output.status.success());
            let content = |name: &str| read(dir.path().join(name)).unwrap_or_default();
            let is_kept = content(backup) == b"old" || content("b") == b"old";
            assert!(is_kept, "{option} {when}: {}", stderr(&output));
            let _ = std::fs::remove_file(dir.path().join(backup));
            std::fs::remove_file(dir.path().join("b")).expect("removed");
        }
    }
    assert!(failures > 0, "no close of the copy failed");
}

/// A file system on which every new name is said to exist.
#[test]
fn names_that_all_exist_are_not_tried_for_ever() {
    let dir = tempfile::tempdir().expect("created");
    let cases: [(&str, &[&str]); 3] = [
        ("linkat", &["--backup=numbered", "--atomic"]),
        ("renameat2", &["--backup=numbered"]),
        ("symlinkat", &["-a", "--remove-destination", "--atomic"]),
    ];
    std::os::unix::fs::symlink("target", dir.path().join("a")).expect("linked");
    for (call, options) in cases {
        write(dir.path().join("b"), "old").expect("written");
        let inject = format!("inject={call}:error=EEXIST");
        let args = [options, &["-P", "a", "b"]].concat();
        let Some(output) = with_faults(dir.path(), &[&inject], &args) else { return };
        assert!(calls(dir.path(), "EEXIST") > 0, "{call}: {}", stderr(&output));
        assert!(stderr(&output).contains("'b'"), "{call}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{call}: {}", stderr(&output));
        assert_eq!(read(dir.path().join("b")).expect("the old file"), b"old", "{call}");
    }
}

/// A directory that cannot be listed is not one whose files are gone: without a backup nothing is replaced.
#[test]
fn without_a_backup_a_hard_link_replaces_nothing() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("created");
    for name in ["a", "b"] {
        write(dir.join("s").join(name), "new").expect("written");
    }
    std::fs::hard_link(dir.join("s/a"), dir.join("s/c")).expect("linked");
    let mut refused = 0;
    for errno in ["ENOENT", "ESTALE", "EIO"] {
        for when in 1..=6 {
            let _ = std::fs::remove_dir_all(dir.join("t"));
            create_dir(dir.join("t")).expect("created");
            for name in ["a", "b", "c"] {
                write(dir.join("t").join(name), "old").expect("written");
            }
            let inject = format!("inject=getdents64:error={errno}:when={when}+");
            let Some(output) = with_faults(dir, &[&inject], &["-ab", "-T", "s", "t"]) else {
                return;
            };
            let (said, what) = (stderr(&output), format!("{errno} {when}"));
            refused += u32::from(said.contains("cannot backup 't/"));
            for name in ["a", "b", "c"] {
                let content = |name: &str| read(dir.join("t").join(name)).unwrap_or_default();
                let kept = content(name) == b"old" || content(&format!("{name}~")) == b"old";
                assert!(kept, "{what}: {name}: {said}");
            }
        }
    }
    assert!(refused >= 3, "{refused}");
}

/// A receipt does without the release of the kernel.
#[test]
fn receipts_need_no_uname() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("created");
    for name in ["a", "b.o", "c.tmp"] {
        write(dir.join("s").join(name), "content").expect("written");
    }
    write(dir.join("ignored"), "*.tmp\n").expect("written");
    let options = ["-a", "--jobs=2", "--exclude=*.o", "--ignore-file=ignored", "--receipt=receipt"];
    for errno in ["ETXTBSY", "EIO", "EPERM", "ENOSYS"] {
        let inject = format!("inject=uname:error={errno}");
        let args = [&options[..], &["-T", "s", "t"]].concat();
        let Some(output) = with_faults(dir, &[&inject], &args) else { return };
        assert_eq!((stderr(&output).as_str(), output.status.code()), ("", Some(0)), "{errno}");
        assert!(calls(dir, "(INJECTED)") > 0, "{errno}");
        let copied = std::fs::read_dir(dir.join("t")).expect("listed").count();
        assert_eq!(copied, 1, "{errno}");
        let summary = testfs::json_lines(&dir.join("receipt")).pop().expect("a summary");
        assert!(summary["kernel"].is_null(), "{errno}: {summary}");
        std::fs::remove_dir_all(dir.join("t")).expect("removed");
    }
}

/// What the copy does not need may fail, and nobody sees a panic.
#[test]
fn neither_random_numbers_nor_clocks_nor_the_wait_for_signals_are_needed() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir_all(dir.path().join("s/d")).expect("a tree");
    for number in 0..30 {
        write(dir.path().join(format!("s/d/{number}")), "content").expect("written");
    }
    std::fs::hard_link(dir.path().join("s/d/1"), dir.path().join("s/other")).expect("linked");
    for call in ["getrandom", "clock_gettime", "recvfrom"] {
        for when in ["1", "2", "1+", "2+"] {
            // The rate limit makes the program wait for signals.
            for options in [&["-a", "--jobs=2", "--limit-rate=1G"][..], &["-a", "--durable", "-b"]]
            {
                let what = format!("{call} {when} {options:?}");
                let inject = format!("inject={call}:error=EIO:when={when}");
                let args = [options, &["-T", "s", "t"]].concat();
                let Some(output) = with_faults(dir.path(), &[&inject], &args) else { return };
                assert_eq!(
                    (stderr(&output).as_str(), output.status.code()),
                    ("", Some(0)),
                    "{what}"
                );
                let copied = std::fs::read_dir(dir.path().join("t/d")).expect("listed").count();
                assert_eq!(copied, 30, "{what}");
                std::fs::remove_dir_all(dir.path().join("t")).expect("removed");
            }
        }
    }
}

/// A filter of system calls may refuse what only tells about the process.
#[test]
fn neither_limits_nor_the_flags_of_standard_streams_are_needed() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir_all(dir.path().join("s/d")).expect("a tree");
    write(dir.path().join("s/d/f"), "content").expect("written");
    for inject in ["prlimit64:error=EPERM:when=2+", "fcntl:error=EPERM:when=1..4"] {
        let args = ["-a", "--jobs=2", "s", "t"];
        let inject = format!("inject={inject}");
        let Some(output) = with_faults(dir.path(), &[&inject], &args) else { return };
        assert_eq!((stderr(&output).as_str(), output.status.code()), ("", Some(0)), "{inject}");
        assert!(calls(dir.path(), "(INJECTED)") > 0, "{inject}");
        assert_eq!(read(dir.path().join("t/d/f")).expect("read"), b"content", "{inject}");
        std::fs::remove_dir_all(dir.path().join("t")).expect("removed");
    }
}

#[test]
fn an_old_kernel_without_openat2_is_enough() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir_all(dir.path().join("s/d/e")).expect("a tree");
    write(dir.path().join("s/d/e/f"), "1").expect("written");
    for errno in ["ENOSYS", "EPERM"] {
        let inject = format!("inject=openat2:error={errno}");
        let _ = std::fs::remove_dir_all(dir.path().join("t"));
        let Some(output) = with_faults(dir.path(), &[&inject], &["-a", "s", "t"]) else { return };
        assert!(output.status.success(), "{errno}: {}", stderr(&output));
        assert_eq!(read(dir.path().join("t/d/e/f")).expect("read"), b"1", "{errno}");
        assert_eq!(calls(dir.path(), " openat2("), 1, "it is tried once");
    }
}

/// What is left over is named, whichever call removes it.
#[test]
fn a_file_of_its_own_that_cannot_be_removed_is_named() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("created");
    write(dir.join("s/large"), random_bytes(5 << 20, 1)).expect("written");
    let unlink = "inject=unlinkat:error=EIO";
    let left = |name: &str| {
        format!("cp: warning: cannot remove '{name}', which is left over: Input/output error\n")
    };
    for (args, words) in [
        (&["-a", "--resume", "s/large", "t"][..], left(".t.haulage-journal")),
        (&["-a", "--resume", "-T", "s", "u"], left("u/.large.haulage-journal")),
        (&["-a", "--resume", "s", "v"], left("v/.large.haulage-journal")),
    ] {
        let Some(output) = with_faults(dir, &[unlink], args) else { return };
        let said = stderr(&output);
        assert!(output.status.success(), "{args:?}: {said}");
        assert!(said.contains(&words), "{args:?}: {said}");
    }
    // The marker of a directory, too.
    assert!(dir.join(".v.haulage-journal").exists());
    let Some(output) = with_faults(dir, &[unlink], &["-a", "--resume", "s", "w"]) else { return };
    assert!(stderr(&output).contains(&left(".w.haulage-journal")), "{}", stderr(&output));
    let args = &["-a", "--resume", "--stats", "s/large", "x"];
    let Some(output) = with_faults(dir, &[unlink], args) else { return };
    let stats = [&output.stdout[..], &output.stderr[..]].concat();
    let stats = String::from_utf8_lossy(&stats);
    assert!(stats.contains("left over                 1 file\n"), "{stats}");
    // A partial file that got its name by a hard link, where the file system has no RENAME_NOREPLACE, and existing
    // files are kept.
    let faults = [unlink, "inject=renameat2:error=EINVAL"];
    for (name, journal_is_named) in [("y", true), ("z", false)] {
        // For the second one, only the removal of the partial file fails.
        let unlink = if journal_is_named { unlink } else { "inject=unlinkat:error=EIO:when=1" };
        let args = ["-a", "--resume", "--update=none", "s/large", name];
        let Some(output) = with_faults(dir, &[unlink, faults[1]], &args) else { return };
        let said = stderr(&output);
        assert!(said.contains(&left(&format!(".{name}.haulage-part"))), "{name}: {said}");
        let is_named = said.contains(&left(&format!(".{name}.haulage-journal")));
        assert_eq!(is_named, journal_is_named, "{name}: {said}");
        assert_eq!(dir.join(format!(".{name}.haulage-journal")).exists(), journal_is_named);
    }
    // A temporary, after the copy has failed.
    let faults = [unlink, "inject=renameat,renameat2:error=EDQUOT"];
    write(dir.join("old"), "old").expect("written");
    let args = ["--atomic", "s/large", "old"];
    let Some(output) = with_faults(dir, &faults, &args) else { return };
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&left(".old.haulage-new")), "{said}");
    assert!(said.contains("Disk quota exceeded"), "{said}");
}

/// A hard link over an existing name is made under a temporary one.
#[test]
fn the_temporary_of_a_hard_link_is_named() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("created");
    write(dir.join("s/a"), "new").expect("written");
    std::fs::hard_link(dir.join("s/a"), dir.join("s/b")).expect("linked");
    for (t, fault, words) in [
        ("t1", "renameat:error=EDQUOT", "hard link 't1/b' to 't1/a': Disk quota exceeded\n"),
        // Nobody can tell whether the link is one of the right file.
        ("t2", "newfstatat:error=ESTALE", "hard link 't2/b' to 't2/a': Input/output error\n"),
    ] {
        create_dir(dir.join(t)).expect("created");
        for name in ["a", "b"] {
            write(dir.join(t).join(name), "old").expect("written");
        }
        let fault = format!("inject={fault}");
        let options = ["-P", ".b.haulage-new", "-e", &fault, "-e", "inject=unlinkat:error=EIO"];
        let args = ["-a", "--atomic", "s/a", "s/b", t];
        let Some(output) = strace(dir, &options, &args) else { return };
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let left = format!("cp: warning: cannot remove '{t}/.b.haulage-new', which is left over");
        assert!(said.contains(&left), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(read(dir.join(t).join("b")).expect("b"), b"old", "{t}");
        assert!(dir.join(t).join(".b.haulage-new").exists(), "{t}");
    }
}

/// A link is read before another one that its path leads through gives way to its copy. That was lost.
#[test]
fn a_link_that_cannot_be_read_replaces_nothing() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    for options in
        [&["-P"][..], &["-P", "--remove-destination"], &["-P", "-b"], &["-P", "--atomic"]]
    {
        create_dir(dir.join("t")).expect("created");
        symlink("a", dir.join("t/d")).expect("linked");
        symlink("t", dir.join("d")).expect("linked");
        let args = [options, &["d/d", "."]].concat();
        let inject = ["inject=readlinkat:error=EIO"];
        let Some(output) = with_faults(dir, &inject, &args) else { return };
        let due = "cp: cannot read symbolic link 'd/d': Input/output error\n";
        assert_eq!((stderr(&output).as_str(), output.status.code()), (due, Some(1)), "{options:?}");
        assert_eq!(read_link(dir.join("d")).expect("it stays"), Path::new("t"), "{options:?}");
        let output = cp(dir, &args);
        assert_eq!((stderr(&output).as_str(), output.status.code()), ("", Some(0)), "{options:?}");
        assert_eq!(read_link(dir.join("d")).expect("read"), Path::new("a"), "{options:?}");
        for name in ["d", "d~"] {
            let _ = remove_file(dir.join(name));
        }
        std::fs::remove_dir_all(dir.join("t")).expect("removed");
    }
}

/// Fifos, sockets and devices have no descriptor that could be written to. Their modes are set through
/// /proc, or without it where the kernel can do that.
#[test]
fn the_modes_of_special_files_are_kept_without_proc() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    if !is_root() {
        return skip(&test_name(), "only root can hide /proc");
    }
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("created");
    for (name, kind, device) in [
        ("fifo", FileType::Fifo, 0),
        ("socket", FileType::Socket, 0),
        ("null", FileType::CharacterDevice, makedev(1, 3)),
    ] {
        let path = dir.join("s").join(name);
        mknodat(CWD, &path, kind, Mode::empty(), device).expect(name);
        chown(&path, Some(1), Some(2)).expect(name);
        set_permissions(&path, Permissions::from_mode(0o6751)).expect(name);
    }
    let script = format!("mount -t tmpfs none /proc && exec {HAULAGE} cp -a s t");
    let mut command = Command::new("unshare");
    let output = command.args(["-m", "sh", "-c", &script]).current_dir(dir).output();
    let output = output.expect("unshare runs");
    if stderr(&output).contains("unshare") || stderr(&output).contains("mount") {
        return skip(&test_name(), &stderr(&output));
    }
    if stderr(&output).contains("preserving permissions") && !has_fchmodat2() {
        return skip(&test_name(), "the kernel has no fchmodat2");
    }
    assert!(output.status.success(), "{}", stderr(&output));
    testfs::assert_equal_trees(&dir.join("s"), &dir.join("t"), testfs::Aspects::ALL, "");
}

fn has_fchmodat2() -> bool {
    use std::os::fd::AsFd;
    let file = tempfile::tempfile().expect("created");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    sys::chmod_path_fd(file.as_fd(), mode).is_ok()
}
