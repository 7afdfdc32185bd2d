//! Calls that a copy can do without, and those whose failure it must report.

use std::fs::{read, read_link, remove_dir_all, remove_file};
use std::path::Path;
use std::process::Command;

use testfs::{Aspects, assert_equal_trees, is_root, json_lines, names_in, skip, stderr, test_name};

use crate::{
    HAULAGE, calls, check, check_content, check_failed, check_success, cp, dir_with, fixture,
    shell, strace, with_faults,
};

/// A copy without the attributes that could not be listed counts them as lost.
#[test]
fn attributes_that_cannot_be_listed_are_counted() {
    let dir = dir_with("a=content");
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
        let line = format!("{option} --stats --receipt=receipt a b");
        let fault = format!("flistxattr:error={errno}");
        let Some(output) = with_faults(&dir, &fault, &line) else { return };
        assert_eq!(calls(&dir, "(INJECTED)"), 1, "{what}");
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
        let lines = json_lines(&dir.path().join("receipt"));
        let lost = lines[0]["lost"].as_array().expect("a list");
        assert!(lost.iter().any(|loss| loss["attribute"] == "xattr"), "{what}: {lines:?}");
        assert!(lost.iter().all(|loss| loss["errno"]["name"] == errno), "{what}: {lines:?}");
        assert_eq!(lines[1]["with_losses"], 1, "{what}");
        remove_file(dir.path().join("b")).expect("removed");
    }
    // A file system without them has none to lose.
    let Some(output) = with_faults(&dir, "flistxattr:error=EOPNOTSUPP", "-a --stats a b") else {
        return;
    };
    assert!(!stderr(&output).contains("attributes"), "{}", stderr(&output));
}

/// Access control lists have known names, and are kept where attributes cannot be listed.
#[test]
fn access_control_lists_are_kept_without_a_listing() {
    let dir = dir_with("s/a=content acl; s/d/ acl default-acl");
    let [src, dst] = ["s", "t"].map(|name| dir.path().join(name));
    for option in ["-a", "-p", "--preserve=mode"] {
        let line = format!("-r {option} -T s t");
        let fault = "flistxattr,listxattr,llistxattr:error=EIO";
        let Some(output) = with_faults(&dir, fault, &line) else { return };
        check_success(&output, option);
        assert!(calls(&dir, "(INJECTED)") > 0, "{option}");
        let aspects = Aspects { mtimes: false, ..Aspects::ALL };
        assert_equal_trees(&src, &dst, aspects, option);
        remove_dir_all(&dst).expect("removed");
    }
    // What cannot be read either is a failure.
    let faults = "flistxattr:error=EIO fgetxattr:error=EIO";
    let Some(output) = with_faults(&dir, faults, "-p s/a b") else { return };
    check(&output, 1, "cp: preserving permissions for 'b': Input/output error\n", faults);
}

/// A close that fails after `--atomic` has renamed the copy must not remove the backup, the last
/// name of the old file.
#[test]
fn a_failing_close_leaves_the_backup() {
    let dir = dir_with("a=new");
    let mut failures = 0;
    for (option, backup) in [("-b", "b~"), ("--backup=numbered", "b.~1~")] {
        for when in 1..=24 {
            fixture::add("b=old", &dir);
            let fault = format!("close:error=ENOSPC:when={when}");
            let line = format!("-a --atomic {option} a b");
            let Some(output) = with_faults(&dir, &fault, &line) else { return };
            failures += u32::from(!output.status.success());
            let content = |name: &str| read(dir.path().join(name)).unwrap_or_default();
            let is_kept = content(backup) == b"old" || content("b") == b"old";
            assert!(is_kept, "{option} {when}: {}", stderr(&output));
            let _ = remove_file(dir.path().join(backup));
            remove_file(dir.path().join("b")).expect("removed");
        }
    }
    assert!(failures > 0, "no close of the copy failed");
}

/// A file system on which every new name is said to exist.
#[test]
fn names_that_all_exist_are_not_tried_for_ever() {
    let dir = dir_with("a->target");
    for (call, options) in [
        ("linkat", "--backup=numbered --atomic"),
        ("renameat2", "--backup=numbered"),
        ("symlinkat", "-a --remove-destination --atomic"),
    ] {
        fixture::add("b=old", &dir);
        let fault = format!("{call}:error=EEXIST");
        let Some(output) = with_faults(&dir, &fault, &format!("{options} -P a b")) else { return };
        assert!(calls(&dir, "EEXIST") > 0, "{call}: {}", stderr(&output));
        check_failed(&output, "'b'", call);
        check_content(dir.path().join("b"), "old", call);
    }
}

/// A directory that cannot be listed is not one whose files are gone: without a backup nothing is replaced.
#[test]
fn without_a_backup_a_hard_link_replaces_nothing() {
    let dir = dir_with("s/a=new; s/b=new; s/c==s/a");
    let mut refused = 0;
    for errno in ["ENOENT", "ESTALE", "EIO"] {
        for when in 1..=6 {
            let _ = remove_dir_all(dir.path().join("t"));
            fixture::add("t/a=old; t/b=old; t/c=old", &dir);
            let fault = format!("getdents64:error={errno}:when={when}+");
            let Some(output) = with_faults(&dir, &fault, "-ab -T s t") else { return };
            let said = stderr(&output);
            refused += u32::from(said.contains("cannot backup 't/"));
            for name in ["a", "b", "c"] {
                let content =
                    |name: &str| read(dir.path().join("t").join(name)).unwrap_or_default();
                let kept = content(name) == b"old" || content(&format!("{name}~")) == b"old";
                assert!(kept, "{errno} {when}: {name}: {said}");
            }
        }
    }
    assert!(refused >= 3, "{refused}");
}

/// What the copy does not need may fail, and nobody sees a panic. A filter of system calls may refuse what only
/// tells about the process, and a receipt does without the release of the kernel.
#[test]
fn neither_clocks_nor_limits_nor_what_tells_about_the_process_are_needed() {
    let files = "s/d/a=content; s/d/b.o=content; s/d/c.tmp=content; s/other==s/d/a";
    let dir = dir_with(&format!("{files}; ignored=*.tmp\\n"));
    // Enough that signals are waited for with either options.
    (0..30).for_each(|number| fixture::add(&format!("s/e/{number}=content"), &dir));
    // The rate limit makes the program wait for signals.
    let (limited, durable) = ("-a --jobs=2 --limit-rate=1G", "-a --durable -b");
    let filtered = "-a --jobs=2 --exclude=*.o --ignore-file=ignored --receipt=receipt";
    let mut cases = Vec::new();
    for call in ["getrandom", "clock_gettime", "recvfrom"] {
        for when in ["1", "2", "1+", "2+"] {
            let fault = format!("{call}:error=EIO:when={when}");
            cases.extend([limited, durable].map(|options| (fault.clone(), options)));
        }
    }
    let certain = cases.len();
    let refused = ["prlimit64:error=EPERM:when=2+", "fcntl:error=EPERM:when=1..4"];
    cases.extend(refused.map(|fault| (fault.to_owned(), "-a --jobs=2")));
    let errnos = ["ETXTBSY", "EIO", "EPERM", "ENOSYS"];
    cases.extend(errnos.map(|errno| (format!("uname:error={errno}"), filtered)));
    for (number, (fault, options)) in cases.iter().enumerate() {
        let what = format!("{fault} {options}");
        let Some(output) = with_faults(&dir, fault, &format!("{options} -T s t")) else { return };
        check(&output, 0, "", &what);
        assert!(number < certain || calls(&dir, "(INJECTED)") > 0, "{what}");
        let left_out = *options == filtered;
        let due = if left_out { &["a"][..] } else { &["a", "b.o", "c.tmp"] };
        assert_eq!(names_in(&dir.path().join("t/d")), due, "{what}");
        assert_eq!(names_in(&dir.path().join("t/e")).len(), 30, "{what}");
        check_content(dir.path().join("t/other"), "content", &what);
        if left_out {
            let summary = json_lines(&dir.path().join("receipt")).pop().expect("found");
            assert!(summary["kernel"].is_null(), "{what}: {summary}");
        }
        remove_dir_all(dir.path().join("t")).expect("removed");
    }
}

#[test]
fn an_old_kernel_without_openat2_is_enough() {
    let dir = dir_with("s/d/e/f=1");
    for errno in ["ENOSYS", "EPERM"] {
        let _ = remove_dir_all(dir.path().join("t"));
        let fault = format!("openat2:error={errno}");
        let Some(output) = with_faults(&dir, &fault, "-a s t") else { return };
        check_success(&output, errno);
        check_content(dir.path().join("t/d/e/f"), "1", errno);
        assert_eq!(calls(&dir, " openat2("), 1, "it is tried once");
    }
}

/// What is left over is named, whichever call removes it.
#[test]
fn a_file_of_its_own_that_cannot_be_removed_is_named() {
    let dir = dir_with("s/large#5M:1; old=old");
    let (unlink, once) = ("unlinkat:error=EIO", "unlinkat:error=EIO:when=1");
    let stale = |name: &str| {
        format!("cp: warning: cannot remove '{name}', which is left over: Input/output error\n")
    };
    // A partial file gets its name by a hard link where the file system has no RENAME_NOREPLACE, and existing files
    // are kept. A temporary is left after the copy has failed.
    let no_flags = "renameat2:error=EINVAL";
    let no_rename = "renameat,renameat2:error=EDQUOT";
    for (faults, line, status, left) in [
        (unlink, "-a --resume s/large t", 0, &[".t.haulage-journal"][..]),
        (unlink, "-a --resume -T s u", 0, &["u/.large.haulage-journal"]),
        // The marker of a directory, too.
        (unlink, "-a --resume s v", 0, &["v/.large.haulage-journal", ".v.haulage-journal"]),
        (
            &format!("{unlink} {no_flags}"),
            "-a --resume --update=none s/large y",
            0,
            &[".y.haulage-part", ".y.haulage-journal"],
        ),
        // Only the removal of the partial file fails.
        (
            &format!("{once} {no_flags}"),
            "-a --resume --update=none s/large z",
            0,
            &[".z.haulage-part"],
        ),
        (&format!("{unlink} {no_rename}"), "--atomic s/large old", 1, &[".old.haulage-new"]),
    ] {
        let Some(output) = with_faults(&dir, faults, line) else { return };
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{line}: {said}");
        assert!(left.iter().all(|name| said.contains(&stale(name))), "{line}: {said}");
        assert_eq!(said.matches("left over").count(), left.len(), "{line}: {said}");
        assert!(left.iter().all(|name| dir.path().join(name).exists()), "{line}");
        assert_eq!(said.contains("Disk quota exceeded"), status == 1, "{line}: {said}");
    }
    assert!(!dir.path().join(".z.haulage-journal").exists());
    let line = "-a --resume --stats s/large x";
    let Some(output) = with_faults(&dir, unlink, line) else { return };
    let stats = testfs::stdout(&output) + &stderr(&output);
    assert!(stats.contains("left over                 1 file\n"), "{stats}");
}

/// A hard link over an existing name is made under a temporary one.
#[test]
fn the_temporary_of_a_hard_link_is_named() {
    let dir = dir_with("s/a=new; s/b==s/a");
    for (t, fault, words) in [
        ("t1", "renameat:error=EDQUOT", "hard link 't1/b' to 't1/a': Disk quota exceeded\n"),
        // Nobody can tell whether the link is one of the right file.
        ("t2", "newfstatat:error=ESTALE", "hard link 't2/b' to 't2/a': Input/output error\n"),
    ] {
        fixture::add(&format!("{t}/a=old; {t}/b=old"), &dir);
        let options = format!("-P .b.haulage-new -e inject={fault} -e inject=unlinkat:error=EIO");
        let line = format!("-a --atomic s/a s/b {t}");
        let Some(output) = strace(&dir, &options, &line) else { return };
        let left = format!("cp: warning: cannot remove '{t}/.b.haulage-new', which is left over");
        check_failed(&output, &left, fault);
        check_failed(&output, words, fault);
        check_content(dir.path().join(t).join("b"), "old", fault);
        assert!(dir.path().join(t).join(".b.haulage-new").exists(), "{t}");
    }
}

/// Between the backup and the copy another process creates a file of that name.
#[test]
fn a_backup_is_not_undone_over_a_file_of_another_process() {
    let dir = dir_with("s=new; d=old");
    let script = "for i in {1..999}; do [ -e d~ ] && echo -n other >d && break; sleep .01; done";
    let mut other = shell(&dir, script).spawn().expect("started");
    let output = strace(&dir, "-e inject=renameat,renameat2:delay_exit=800000:when=1", "-b s d");
    other.wait().expect("ended");
    let Some(output) = output else { return };
    check_failed(&output, "cannot un-backup 'd': File exists", "the backup");
    check_content(dir.path().join("d"), "other", "the file of another process");
    check_content(dir.path().join("d~"), "old", "the backup");
}

/// A link is read before another one that its path leads through gives way to its copy. That was lost.
#[test]
fn a_link_that_cannot_be_read_replaces_nothing() {
    for options in ["-P", "-P --remove-destination", "-P -b", "-P --atomic"] {
        let dir = dir_with("t/d->a; d->t");
        let line = format!("{options} d/d .");
        let Some(output) = with_faults(&dir, "readlinkat:error=EIO", &line) else { return };
        let due = "cp: cannot read symbolic link 'd/d': Input/output error\n";
        check(&output, 1, due, options);
        let d = || read_link(dir.path().join("d")).expect("it is there");
        assert_eq!(d(), Path::new("t"), "{options}");
        check(&cp(&dir, &line), 0, "", options);
        assert_eq!(d(), Path::new("a"), "{options}");
    }
}

/// Fifos and devices have no descriptor that could be written to. Their modes are set through
/// /proc, or without it where the kernel can do that.
#[test]
fn the_modes_of_special_files_are_kept_without_proc() {
    if !is_root() {
        return skip(&test_name(), "only root can hide /proc");
    }
    let dir = dir_with("s/fifo| own=1:2 mode=6751; s/null%1:3 own=1:2 mode=6751");
    let script = format!("mount -t tmpfs none /proc && exec {HAULAGE} cp -a s t");
    let mut command = Command::new("unshare");
    let output = command.args(["-m", "sh", "-c", &script]).current_dir(&dir).output();
    let output = output.expect("unshare runs");
    if stderr(&output).contains("unshare") || stderr(&output).contains("mount") {
        return skip(&test_name(), &stderr(&output));
    }
    if stderr(&output).contains("preserving permissions") && !has_fchmodat2() {
        return skip(&test_name(), "the kernel has no fchmodat2");
    }
    check_success(&output, "");
    let [src, dst] = ["s", "t"].map(|name| dir.path().join(name));
    assert_equal_trees(&src, &dst, Aspects::ALL, "");
}

fn has_fchmodat2() -> bool {
    use std::os::fd::AsFd;
    let file = tempfile::tempfile().expect("created");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    sys::chmod_path_fd(file.as_fd(), mode).is_ok()
}
