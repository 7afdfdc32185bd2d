//! Errors that the kernel seldom gives, made by strace; and what an ordinary user's copy does.

use std::fs::{Permissions, create_dir, metadata, read, set_permissions, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};

use testfs::{each_fs, is_root, random_bytes, skip, stderr, test_name};

fn haulage() -> &'static str {
    env!("CARGO_BIN_EXE_haulage")
}

/// Runs `haulage cp ARGS` in `dir` under strace with `inject`, or reports that it is skipped.
fn with_faults(dir: &Path, inject: &[&str], args: &[&str]) -> Option<Output> {
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "trace"]);
    for rule in inject {
        command.args(["-e", rule]);
    }
    let output = command.arg(haulage()).arg("cp").args(args).current_dir(dir).output();
    let output = output.ok().filter(|_| dir.join("trace").exists());
    if output.is_none() {
        skip(&test_name(), "strace cannot be run here");
    }
    output
}

/// How many of the calls that strace saw have `text` in them.
fn calls(dir: &Path, text: &str) -> usize {
    let trace = std::fs::read_to_string(dir.join("trace")).expect("strace's output");
    trace.lines().filter(|line| line.contains(text)).count()
}

/// The engine that copies between network file systems, selected here by option.
const KERNEL_COPY: &str = "--engine=copy_file_range";

#[test]
fn no_fallback_hides_an_error_of_copy_file_range() {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path().join("a"), random_bytes(1 << 20, 1)).expect("a file");
    for (errno, words) in [
        ("ENOSPC", "No space left on device"),
        ("EDQUOT", "Disk quota exceeded"),
        ("ESTALE", "Stale file handle"),
    ] {
        let inject = format!("inject=copy_file_range:error={errno}");
        let Some(output) = with_faults(dir.path(), &[&inject], &[KERNEL_COPY, "a", "b"]) else {
            return;
        };
        assert_eq!(output.status.code(), Some(1), "{errno}");
        let said = stderr(&output);
        assert!(said.starts_with(&format!("cp: error copying 'a' to 'b': {words}\n")), "{said}");
        assert!(said.contains("cp: 'b' is incomplete: 0 of 1048576 bytes\n"), "{said}");
        assert_eq!(metadata(dir.path().join("b")).expect("b").len(), 0, "{errno}");
        std::fs::remove_file(dir.path().join("b")).expect("removed");
    }
}

#[test]
fn after_a_refusal_the_next_variant_continues_at_that_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let bytes = random_bytes(3 << 20, 2);
    write(dir.path().join("a"), &bytes).expect("a file");
    // Network and stacked file systems give the last three although reads and writes work.
    for errno in ["EOPNOTSUPP", "EXDEV", "EINVAL", "ENOSYS", "EPERM", "EACCES", "ENOENT", "EIO"] {
        let inject = format!("inject=copy_file_range:error={errno}:when=1");
        let Some(output) = with_faults(dir.path(), &[&inject], &[KERNEL_COPY, "a", "b"]) else {
            return;
        };
        assert!(output.status.success(), "{errno}: {}", stderr(&output));
        assert_eq!(calls(dir.path(), "(INJECTED)"), 1, "{errno}");
        assert!(read(dir.path().join("b")).expect("b") == bytes, "{errno}");
    }
}

#[test]
fn a_refused_clone_is_not_tried_again() {
    let dir = tempfile::tempdir().expect("a directory");
    create_dir(dir.path().join("s")).expect("a directory");
    for number in 0..10 {
        write(dir.path().join(format!("s/{number}")), "x").expect("a file");
    }
    // Each worker tries it by itself.
    let args = ["-a", "--jobs=1", "s", "t"];
    let Some(output) = with_faults(dir.path(), &["inject=ioctl:error=EOPNOTSUPP"], &args) else {
        return;
    };
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(calls(dir.path(), "FICLONE"), 1);
}

#[test]
fn an_error_at_close_is_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path().join("a"), "content").expect("a file");
    write(dir.path().join("b"), "old").expect("a file");
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "trace", "-P"]).arg(dir.path().join("b"));
    command.args(["-e", "inject=close:error=EDQUOT", haulage(), "cp", "a"]);
    let output = command.arg(dir.path().join("b")).current_dir(dir.path()).output();
    let Ok(output) = output else {
        return skip(&test_name(), "strace cannot be run here");
    };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("failed to close '"), "{said}");
    assert!(said.contains("Disk quota exceeded"), "{said}");
}

#[test]
fn a_receipt_claims_nothing_that_is_not_on_the_medium() {
    let dir = tempfile::tempdir().expect("a directory");
    create_dir(dir.path().join("src")).expect("a directory");
    for name in ["a", "b", "c"] {
        write(dir.path().join("src").join(name), name).expect("a file");
    }
    let args = ["-r", "--durable", "--receipt=receipt", "src", "dst"];
    let Some(output) = with_faults(dir.path(), &["inject=fsync:error=EIO"], &args) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let receipt = std::fs::read_to_string(dir.path().join("receipt")).expect("a receipt");
    let lines: Vec<serde_json::Value> =
        receipt.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let entries: Vec<_> = lines.iter().filter(|line| line["record"] == "entry").collect();
    assert_eq!(entries.len(), 4, "{receipt}");
    for entry in entries {
        assert_eq!(entry["method"], "failed", "{receipt}");
        assert_eq!(entry["failures"][0]["errno"]["name"], "EIO", "{receipt}");
    }
    // The directory above is no entry, and could not be synced either.
    assert_eq!(lines.last().expect("a summary")["failures"], 5, "{receipt}");
}

/// A copy without the attributes that could not be listed counts them as lost.
#[test]
fn attributes_that_cannot_be_listed_are_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path().join("a"), "content").expect("a file");
    const ERROR: &str = "getting attributes for 'b': Input/output error\n";
    const DENIED: &str = "getting attributes for 'b': Permission denied\n";
    for (option, errno, said, status) in [
        ("-a", "EIO", ERROR, 0),
        ("-a", "EACCES", "", 0),
        ("-p", "EIO", ERROR, 0),
        ("-p", "EACCES", "", 0),
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
        let counted = "attributes lost              1 entry\n";
        assert!(stderr.contains(counted), "{what}: {stderr}");
        let receipt = std::fs::read_to_string(dir.path().join("receipt")).expect("a receipt");
        let lines: Vec<serde_json::Value> =
            receipt.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let lost = lines[0]["lost"].as_array().expect("a list");
        let all = |list: &[&str]| {
            list.iter().all(|kind| lost.iter().any(|loss| loss["attribute"] == *kind))
        };
        let kinds: &[&str] = match option {
            "-p" => &["permissions"],
            "--preserve=xattr" => &["xattr"],
            _ => &["permissions", "xattr"],
        };
        assert!(all(kinds) && lost.iter().all(|loss| loss["errno"]["name"] == errno), "{receipt}");
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

/// What the copy does not need may fail, and nobody sees a panic.
#[test]
fn neither_random_numbers_nor_clocks_nor_the_wait_for_signals_are_needed() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("s/d")).expect("a tree");
    for number in 0..300 {
        write(dir.path().join(format!("s/d/{number}")), "content").expect("a file");
    }
    std::fs::hard_link(dir.path().join("s/d/1"), dir.path().join("s/other")).expect("a link");
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
                let copied = std::fs::read_dir(dir.path().join("t/d")).expect("the copy").count();
                assert_eq!(copied, 300, "{what}");
                std::fs::remove_dir_all(dir.path().join("t")).expect("removed");
            }
        }
    }
}

/// A filter of system calls may refuse what only tells about the process.
#[test]
fn neither_limits_nor_the_flags_of_standard_streams_are_needed() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("s/d")).expect("a tree");
    write(dir.path().join("s/d/f"), "content").expect("a file");
    for inject in ["prlimit64:error=EPERM:when=2+", "fcntl:error=EPERM:when=1..4"] {
        let args = ["-a", "--jobs=2", "s", "t"];
        let inject = format!("inject={inject}");
        let Some(output) = with_faults(dir.path(), &[&inject], &args) else { return };
        assert_eq!((stderr(&output).as_str(), output.status.code()), ("", Some(0)), "{inject}");
        assert!(calls(dir.path(), "(INJECTED)") > 0, "{inject}");
        assert_eq!(read(dir.path().join("t/d/f")).expect("the copy"), b"content", "{inject}");
        std::fs::remove_dir_all(dir.path().join("t")).expect("removed");
    }
}

#[test]
fn a_kernel_without_memory_for_a_ring_is_not_asked_for_ever() {
    let dir = tempfile::tempdir().expect("a directory");
    let bytes = random_bytes(3 << 20, 2);
    write(dir.path().join("a"), &bytes).expect("a file");
    let inject = "inject=io_uring_enter:error=EAGAIN";
    let args = ["--reflink=never", "--engine=io_uring", "a", "b"];
    let begun = std::time::Instant::now();
    let Some(output) = with_faults(dir.path(), &[inject], &args) else { return };
    assert!(begun.elapsed().as_secs() < 60, "{output:?}");
    if output.status.success() {
        // Where there is no io_uring, or another variant has gone on.
        assert!(read(dir.path().join("b")).expect("the copy") == bytes);
    } else {
        assert!(stderr(&output).contains("'b'"), "{output:?}");
    }
}

#[test]
fn an_errno_that_is_a_refusal_at_first_is_an_error_later() {
    let dir = tempfile::tempdir().expect("a directory");
    // Longer than one piece.
    write(dir.path().join("a"), random_bytes(65 << 20, 1)).expect("a file");
    let inject = "inject=copy_file_range:error=EIO:when=2+";
    let Some(output) = with_faults(dir.path(), &[inject], &[KERNEL_COPY, "a", "b"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("cp: 'b' is incomplete: 67108864 of 68157440 bytes\n"), "{said}");
}

#[test]
fn force_removes_no_destination_if_descriptors_run_out() {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path().join("a"), "new").expect("a file");
    for errno in ["EMFILE", "ENFILE", "ENOMEM", "EIO"] {
        write(dir.path().join("b"), "old").expect("a file");
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "trace", "-P", "b", "-e"]);
        command.arg(format!("inject=openat:error={errno}"));
        command.args([haulage(), "cp", "-f", "a", "b"]).current_dir(dir.path());
        let Ok(output) = command.output() else {
            return skip(&test_name(), "strace cannot be run here");
        };
        assert_eq!(output.status.code(), Some(1), "{errno}: {}", stderr(&output));
        assert_eq!(read(dir.path().join("b")).expect("the old file"), b"old", "{errno}");
    }
}

#[test]
fn a_lease_on_either_file_is_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    for leased in ["a", "b"] {
        write(dir.path().join("a"), "new").expect("a file");
        write(dir.path().join("b"), "old").expect("a file");
        let mut command = Command::new("strace");
        // What an open with O_NONBLOCK says of a file that somebody has a lease on.
        command.args([
            "-f",
            "-o",
            "trace",
            "-P",
            leased,
            "-e",
            "inject=openat:error=EAGAIN:when=1",
        ]);
        command.args([haulage(), "cp", "a", "b"]).current_dir(dir.path());
        let Ok(output) = command.output() else {
            return skip(&test_name(), "strace cannot be run here");
        };
        assert!(output.status.success(), "{leased}: {}", stderr(&output));
        assert_eq!(calls(dir.path(), "(INJECTED)"), 1, "{leased}");
        assert_eq!(read(dir.path().join("b")).expect("the copy"), b"new", "{leased}");
    }
}

#[test]
fn an_old_kernel_without_openat2_is_enough() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("s/d/e")).expect("a tree");
    write(dir.path().join("s/d/e/f"), "1").expect("a file");
    for errno in ["ENOSYS", "EPERM"] {
        let inject = format!("inject=openat2:error={errno}");
        let _ = std::fs::remove_dir_all(dir.path().join("t"));
        let Some(output) = with_faults(dir.path(), &[&inject], &["-a", "s", "t"]) else { return };
        assert!(output.status.success(), "{errno}: {}", stderr(&output));
        assert_eq!(read(dir.path().join("t/d/e/f")).expect("the copy"), b"1", "{errno}");
        assert_eq!(calls(dir.path(), " openat2("), 1, "it is tried once");
    }
}

/// Runs `haulage cp ARGS` as an ordinary user in `dir`; as ourselves when we are one.
fn as_nobody(dir: &Path, args: &[&str]) -> Option<Output> {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        // The program may lie where others may not go. What this process has open for writing may be
        // so still in a child of another test, and cannot be run meanwhile.
        let program = dir.join("haulage");
        let copied = testfs::command(haulage()).arg("cp").arg(haulage()).arg(&program).status();
        assert!(copied.is_ok_and(|status| status.success()), "a copy of the program");
        set_permissions(&program, Permissions::from_mode(0o755)).expect("a mode");
        command.arg(program);
        command
    } else {
        testfs::command(haulage())
    };
    let output = command.arg("cp").args(args).current_dir(dir).output().ok();
    if output.is_none() {
        skip(&test_name(), "setpriv cannot be run here");
    }
    output
}

/// A directory that anybody may use.
fn open_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    set_permissions(dir.path(), Permissions::from_mode(0o777)).expect("a mode");
    dir
}

#[test]
fn directories_that_may_not_be_written_to_are_filled_first() {
    let dir = open_dir();
    std::fs::create_dir_all(dir.path().join("s/d")).expect("a tree");
    write(dir.path().join("s/d/f"), "1").expect("a file");
    for name in ["s/d/f", "s/d", "s"] {
        let mode = if name == "s/d/f" { 0o444 } else { 0o555 };
        set_permissions(dir.path().join(name), Permissions::from_mode(mode)).expect("a mode");
    }
    let Some(output) = as_nobody(dir.path(), &["-a", "s", "t"]) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    for (name, mode) in [("t", 0o555), ("t/d", 0o555), ("t/d/f", 0o444)] {
        let made = metadata(dir.path().join(name)).expect("the copy");
        assert_eq!(made.mode() & 0o7777, mode, "{name}");
    }
    // So that the user of the tests can remove the directory.
    for name in ["s", "s/d", "t", "t/d"] {
        let _ = set_permissions(dir.path().join(name), Permissions::from_mode(0o777));
    }
}

#[test]
fn a_source_that_cannot_be_read_costs_no_destination() {
    let (own, linked) = (&["b"][..], &["b", "c"][..]);
    for (options, names, stdout) in [
        (&["--remove-destination"][..], own, ""),
        (&["-v", "--remove-destination"], own, "'a' -> 'b'\n"),
        (&["-av"], linked, "'a' -> 'b'\n"),
        (&["-bv"], own, "'a' -> 'b'\n"),
        (&["-v", "--backup=numbered"], own, "'a' -> 'b'\n"),
        (&["-b", "--remove-destination"], own, ""),
        (&["-f"], own, ""),
    ] {
        let dir = open_dir();
        write(dir.path().join("a"), "new").expect("a file");
        set_permissions(dir.path().join("a"), Permissions::from_mode(0o0)).expect("a mode");
        write(dir.path().join("b"), "old").expect("a file");
        // What a backup would have replaced, only to be renamed back itself.
        write(dir.path().join("b~"), "older").expect("a file");
        for name in names.iter().filter(|name| **name != "b") {
            std::fs::hard_link(dir.path().join("b"), dir.path().join(name)).expect("a link");
        }
        let args: Vec<&str> = options.iter().copied().chain(["a", "b"]).collect();
        let Some(output) = as_nobody(dir.path(), &args) else { return };
        assert_eq!(output.status.code(), Some(1), "{options:?}");
        assert_eq!(stderr(&output), "cp: cannot open 'a' for reading: Permission denied\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{options:?}");
        let kept = read(dir.path().join("b")).ok();
        assert_eq!(kept.as_deref(), Some(&b"old"[..]), "{options:?}");
        let backup = read(dir.path().join("b~")).ok();
        assert_eq!(backup.as_deref(), Some(&b"older"[..]), "{options:?}");
        let links = metadata(dir.path().join("b")).expect("b").nlink();
        assert_eq!(links, names.len() as u64, "{options:?}");
    }
}

#[test]
fn rights_lent_by_an_owner_are_not_lent_by_another() {
    if !is_root() {
        return skip(&test_name(), "to give files away needs root");
    }
    let dir = open_dir();
    let src = dir.path().join("a");
    write(&src, "1").expect("a file");
    chown(&src, Some(4321), Some(4321)).expect("an owner");
    set_permissions(&src, Permissions::from_mode(0o6755)).expect("a mode");
    let Some(output) = as_nobody(dir.path(), &["-p", "a", "b"]) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    let made = metadata(dir.path().join("b")).expect("the copy");
    assert_eq!((made.uid(), made.mode() & 0o7777), (65_534, 0o755));
}

#[test]
fn a_deep_tree_needs_few_descriptors() {
    let dir = tempfile::tempdir().expect("a directory");
    let deepest = "d/".repeat(200);
    std::fs::create_dir_all(dir.path().join("s").join(&deepest)).expect("a tree");
    write(dir.path().join("s").join(&deepest).join("f"), "1").expect("a file");
    for limit in ["24", "40", "64", "80"] {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}:{limit}")).args([haulage(), "cp", "-a", "s", limit]);
        let Ok(output) = command.current_dir(dir.path()).output() else {
            return skip(&test_name(), "prlimit cannot be run here");
        };
        assert!(output.status.success(), "{limit}: {}", stderr(&output));
        let copy = dir.path().join(limit).join(&deepest).join("f");
        assert_eq!(read(copy).expect("the copy"), b"1", "{limit}");
    }
}

#[test]
fn descriptors_that_others_have_taken_are_done_without() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("s")).expect("a directory");
    for number in 0..300 {
        write(dir.path().join(format!("s/f{number}")), number.to_string()).expect("a file");
    }
    // Workers who together took the last of them would fail by chance only.
    for (limit, taken) in
        [(100, 60), (100, 82), (400, 361), (400, 370)].into_iter().chain([(400, 382); 5])
    {
        let _ = std::fs::remove_dir_all(dir.path().join(taken.to_string()));
        let script = format!(
            "for n in $(seq 10 {}); do [ $n = 255 ] || eval \"exec $n</dev/null\"; done; exec \"$0\" cp -a s {taken}",
            9 + taken
        );
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}:{limit}")).args(["bash", "-c", &script, haulage()]);
        let output = match command.current_dir(dir.path()).output() {
            Ok(output) if output.status.code() != Some(127) => output,
            _ => return skip(&test_name(), "prlimit or bash cannot be run here"),
        };
        assert!(output.status.success(), "{taken}: {}", stderr(&output));
        for number in 0..300 {
            let copy = dir.path().join(format!("{taken}/f{number}"));
            assert_eq!(read(copy).expect("the copy"), number.to_string().as_bytes(), "{taken}");
        }
    }
}

#[test]
fn parents_of_many_operands_need_few_descriptors() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("t")).expect("a directory");
    let names: Vec<String> = (0..100).map(|number| format!("s/d{number}/f")).collect();
    for name in &names {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        write(&path, name).expect("a file");
        std::fs::hard_link(&path, path.with_file_name("g")).expect("a link");
    }
    // The second name of each is met when the directory of the first has long been left.
    let again = names.iter().map(|name| name.replace('f', "g"));
    let mut command = Command::new("prlimit");
    command.args(["--nofile=40:40", haulage(), "cp", "-a", "-t", "t", "--parents"]);
    command.args(&names).args(again).current_dir(dir.path());
    let Ok(output) = command.output() else {
        return skip(&test_name(), "prlimit cannot be run here");
    };
    assert!(output.status.success(), "{}", stderr(&output));
    for name in &names {
        let copy = dir.path().join("t").join(name);
        assert_eq!(read(&copy).expect("the copy"), name.as_bytes());
        let [first, other] = [&copy, &copy.with_file_name("g")].map(metadata);
        assert_eq!(first.expect("the copy").ino(), other.expect("its other name").ino(), "{name}");
    }
}

#[test]
fn many_links_to_directories_need_few_descriptors() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: String| dir.path().join(name);
    for number in 0..100 {
        for tree in ["s/first", "s/second", "out", "d/first"] {
            std::fs::create_dir_all(at(format!("{tree}/{number}"))).expect("a directory");
        }
        let link = at(format!("d/first/{number}"));
        std::fs::remove_dir(&link).expect("an empty directory");
        symlink(format!("../../out/{number}"), link).expect("a link");
        let first = at(format!("s/first/{number}/f"));
        write(&first, number.to_string()).expect("a file");
        std::fs::hard_link(first, at(format!("s/second/{number}/g"))).expect("a link");
    }
    let mut command = Command::new("prlimit");
    command.args(["--nofile=40:40", haulage(), "cp", "-aT", "--keep-directory-symlink", "s", "d"]);
    let Ok(output) = command.current_dir(dir.path()).output() else {
        return skip(&test_name(), "prlimit cannot be run here");
    };
    assert!(output.status.success(), "{}", stderr(&output));
    for number in 0..100 {
        let [first, second] = [format!("out/{number}/f"), format!("d/second/{number}/g")]
            .map(|name| metadata(at(name)).expect("a copy").ino());
        assert_eq!(first, second, "{number}");
    }
}

#[test]
fn a_dry_run_knows_whose_files_may_not_be_linked() {
    let dir = open_dir();
    for (name, mode) in [("private", 0o600), ("read", 0o644), ("shared", 0o666), ("lent", 0o4777)] {
        write(dir.path().join(name), name).expect("a file");
        set_permissions(dir.path().join(name), Permissions::from_mode(mode)).expect("a mode");
    }
    symlink("shared", dir.path().join("link")).expect("a link");
    for options in [&["-l"][..], &["-lP"], &["-lf"]] {
        for name in ["private", "read", "shared", "lent", "link"] {
            let real = [options, &[name, "new"]].concat();
            let dry = [&["--dry-run"], &real[..]].concat();
            let Some(dry_output) = as_nobody(dir.path(), &dry) else { return };
            let Some(output) = as_nobody(dir.path(), &real) else { return };
            assert_eq!(stderr(&dry_output), stderr(&output), "{real:?}");
            assert_eq!(dry_output.status.code(), output.status.code(), "{real:?}");
            let _ = std::fs::remove_file(dir.path().join("new"));
        }
    }
}

#[test]
fn a_dry_run_knows_what_may_not_be_replaced() {
    let dir = open_dir();
    write(dir.path().join("new"), "new").expect("a file");
    write(dir.path().join("old"), "of another length").expect("a file");
    for name in ["new", "old"] {
        set_permissions(dir.path().join(name), Permissions::from_mode(0o444)).expect("a mode");
    }
    for options in [&["--atomic"][..], &["--resume"], &["--durable"]] {
        let real = [options, &["new", "old"]].concat();
        let Some(output) = as_nobody(dir.path(), &real) else { return };
        let dry = [&["--dry-run"], &real[..]].concat();
        let Some(dry_output) = as_nobody(dir.path(), &dry) else { return };
        assert!(stderr(&output).contains("'old': Permission denied"), "{}", stderr(&output));
        assert_eq!(stderr(&dry_output), stderr(&output), "{options:?}");
        assert_eq!(dry_output.status.code(), output.status.code(), "{options:?}");
    }
}

/// On xfs and btrfs a block comes straight in the place of an old one: what is there is not emptied
/// before, and where nothing can be shared and nothing emptied it is left as it was.
#[test]
fn a_small_file_is_cloned_over_or_left_alone() {
    each_fs(|kind, dir| {
        for (len, old_len) in [(3000, 2000), (3000, 3000), (10, 0)] {
            for refused in [false, true] {
                let said = format!("{kind}: {len} over {old_len}, refused {refused}");
                let (new, old) = (random_bytes(len, 1), random_bytes(old_len, 2));
                write(dir.join("a"), &new).expect("a file");
                write(dir.join("b"), &old).expect("what was there before");
                let refusal = if refused { "inject=ioctl:error=EOPNOTSUPP" } else { "trace=all" };
                let inject = [refusal, "inject=ftruncate:error=EIO"];
                let Some(output) = with_faults(dir, &inject, &["a", "b"]) else { return };
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                let copy = read(dir.join("b")).expect("it is there");
                if kind.reflinks() && !refused {
                    assert!(output.status.success() && copy == new, "{said}: {stderr}");
                } else {
                    assert_eq!(stderr, "cp: cannot truncate 'b': Input/output error\n", "{said}");
                    assert!(copy == old, "{said}");
                }
            }
        }
        // Of more than a block only a part might come before the run is killed.
        write(dir.join("a"), random_bytes(9000, 1)).expect("a file");
        write(dir.join("b"), random_bytes(9000, 2)).expect("what was there before");
        let Some(output) = with_faults(dir, &["inject=ftruncate:error=EIO"], &["a", "b"]) else {
            return;
        };
        assert!(!output.status.success(), "{kind}");
        assert!(read(dir.join("b")).expect("it is there") == random_bytes(9000, 2));
    });
}

/// What is left over is named, whichever call removes it.
#[test]
fn a_file_of_its_own_that_cannot_be_removed_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("a directory");
    write(dir.join("s/large"), random_bytes(5 << 20, 1)).expect("a file");
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
    assert!(stats.contains("left over                    1 file\n"), "{stats}");
    // A partial file that got its name by a hard link, where the file system has no RENAME_NOREPLACE.
    let faults = [unlink, "inject=renameat2:error=EINVAL"];
    for (name, journal_is_named) in [("y", true), ("z", false)] {
        // For the second one, only the removal of the partial file fails.
        let unlink = if journal_is_named { unlink } else { "inject=unlinkat:error=EIO:when=1" };
        let args = ["-a", "--resume", "s/large", name];
        let Some(output) = with_faults(dir, &[unlink, faults[1]], &args) else { return };
        let said = stderr(&output);
        assert!(said.contains(&left(&format!(".{name}.haulage-part"))), "{name}: {said}");
        let is_named = said.contains(&left(&format!(".{name}.haulage-journal")));
        assert_eq!(is_named, journal_is_named, "{name}: {said}");
        assert_eq!(dir.join(format!(".{name}.haulage-journal")).exists(), journal_is_named);
    }
    // A temporary, after the copy has failed.
    let faults = [unlink, "inject=renameat,renameat2:error=EDQUOT"];
    write(dir.join("old"), "old").expect("a file");
    let args = ["--atomic", "s/large", "old"];
    let Some(output) = with_faults(dir, &faults, &args) else { return };
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&left(".old.haulage-new")), "{said}");
    assert!(said.contains("Disk quota exceeded"), "{said}");
}

/// Fifos, sockets and devices have no descriptor that could be written to. Their modes are set through
/// /proc, or without it where the kernel can do that.
#[test]
fn the_modes_of_special_files_are_kept_without_proc() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    if !is_root() {
        return skip(&test_name(), "only root can hide /proc");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    create_dir(dir.join("s")).expect("a directory");
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
    let script = format!("mount -t tmpfs none /proc && exec {} cp -a s t", haulage());
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
    let found = testfs::tree_differences(&dir.join("s"), &dir.join("t"), testfs::Aspects::ALL);
    assert_eq!(found.expect("trees"), [""; 0]);
}

fn has_fchmodat2() -> bool {
    use std::os::fd::AsFd;
    let file = tempfile::tempfile().expect("a file");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    engines::sys::chmod_path_fd(file.as_fd(), mode).is_ok()
}
