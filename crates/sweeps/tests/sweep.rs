//! A short sample of each sweep, which finds nothing, and planted faults, which it finds.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testfs::{skip, stderr, stdout, test_name};

/// The program as the workspace's tests build it. `None` after a reported skip.
fn haulage() -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_BIN_EXE_haulage-sweeps")).with_file_name("haulage");
    if !testfs::is_root() {
        skip(&test_name(), "sweeps need root, to mount and to trace");
        return None;
    }
    if std::env::var_os("HAULAGE_TEST_FS").is_none() {
        skip(&test_name(), "HAULAGE_TEST_FS is not set; `cargo xtask test` sets it");
        return None;
    }
    if !found.is_file() {
        skip(&test_name(), "haulage is not built; `cargo xtask test` builds it");
        return None;
    }
    Some(found)
}

/// `cargo xtask sweep ARGS` with `program` in place of haulage.
fn sweep(program: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haulage-sweeps"));
    command.arg("sweep").args(args).arg("--haulage").arg(program).output().expect("ran")
}

/// A sample of the sweep, which must try `cases` and find nothing.
fn finds_nothing(cases: u32, args: &[&str]) {
    let Some(haulage) = haulage() else { return };
    let number = cases.to_string();
    let output = sweep(&haulage, &[args, &["--cases", &number]].concat());
    let words = format!("{}\n{}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{args:?}: {words}");
    assert!(words.contains(&format!(": {cases} cases in ")), "{args:?}: {words}");
    let missed = words.split(" missed, 0 findings").next().and_then(|text| text.rsplit(' ').next());
    let missed: Option<u32> = missed.and_then(|number| number.parse().ok());
    // A sweep that misses proves nothing. With several threads some cases do not come to pass.
    assert!(missed.is_some_and(|missed| missed <= cases / 3), "{args:?}: {words}");
}

/// The sweep must find what is wrong with a program that runs haulage as `"$HAULAGE" "$@"` and does something
/// else besides: it exits with 1, says `expected`, and a command line that it prints repeats a finding. Not each
/// does: which thread comes to a call first differs.
fn finds(script: &str, expected: &str, args: &[&str]) {
    let Some(haulage) = haulage() else { return };
    let dir = tempfile::tempdir().expect("created");
    let planted = dir.path().join("planted");
    let text = format!("#!/bin/sh\nHAULAGE='{}'\n{script}\n", haulage.display());
    std::fs::write(&planted, text).expect("written");
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o755)).expect("mode set");
    let output = sweep(&planted, args);
    let words = format!("{}\n{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{args:?}: {words}");
    assert!(words.contains(expected), "{args:?}: {words}");
    let repeats = |line: &str| {
        let line = format!("'{}' {line}", env!("CARGO_BIN_EXE_haulage-sweeps"));
        Command::new("sh").args(["-c", &line]).output().expect("ran").status.code() == Some(1)
    };
    let mut lines = words.lines().filter_map(|line| line.trim().strip_prefix("cargo xtask "));
    assert!(lines.any(repeats), "no line repeats a finding: {words}");
}

#[test]
fn failing_calls_lose_nothing() {
    finds_nothing(24, &["calls", "--fs", "tmpfs,ext4"]);
}

/// The copy is one byte short when haulage says that it is complete; an error is kept to itself.
#[test]
fn planted_faults_are_found_by_failing_calls() {
    let args = ["calls", "--cases", "8", "--fs", "tmpfs"];
    let short = "\"$HAULAGE\" \"$@\" || exit\nf=dst/small; [ -f $f ] && truncate -s -1 $f; exit 0";
    finds(short, "small: 5000 bytes, 4999", &args);
    finds("\"$HAULAGE\" \"$@\" 2> /dev/null", "no file is named", &args);
    finds("\"$HAULAGE\" \"$@\" 2> /dev/null; exit 0", ": exit status 0: ", &args);
}

#[test]
fn a_loss_of_power_undoes_nothing() {
    finds_nothing(24, &["power", "--seed", "2"]);
}

/// The calls that sync are skipped, and report success: all of them, or those of whole file systems.
#[test]
fn missing_syncs_are_found_by_a_loss_of_power() {
    let strace = "exec strace -f -qq -o /dev/null";
    let nothing = format!("{strace} -e inject=fsync,syncfs:retval=0 \"$HAULAGE\" \"$@\"");
    let no_file_systems = format!("{strace} -e inject=syncfs:retval=0 \"$HAULAGE\" \"$@\"");
    for (script, options) in [
        (nothing.clone(), "-a --durable"),
        (nothing, "-a --durable --atomic"),
        (no_file_systems, "-a --durable --jobs=1"),
    ] {
        let case = format!("xfs; {options}; seed=3");
        finds(&script, ": after the exit: ", &["power", "--case", &case]);
    }
}

#[test]
fn kills_leave_old_or_new_and_nothing_else() {
    finds_nothing(16, &["kills", "--fs", "tmpfs,xfs"]);
}

/// A temporary is left over; the copy is not atomic; the next run takes a part for the whole.
#[test]
fn planted_faults_are_found_after_kills() {
    let left = "\"$HAULAGE\" \"$@\" || exit\ntouch dst/.small.haulage-new";
    finds(left, "/.small.haulage-new: left over", &["kills", "--cases", "4", "--fs", "tmpfs"]);
    let torn = "echo torn > dst/small\nexec \"$HAULAGE\" \"$@\"";
    finds(torn, "after the kill: small: ", &["kills", "--cases", "24", "--fs", "tmpfs"]);
    let skips = "[ -e dst/empty ] && exit 0\nexec \"$HAULAGE\" \"$@\"";
    finds(skips, "after the next run: ", &["kills", "--cases", "24", "--fs", "tmpfs"]);
}

#[test]
fn short_and_interrupted_calls_lose_nothing() {
    finds_nothing(32, &["short", "--fs", "tmpfs,ext4"]);
}

/// A copier that believes the first count, for which dd stands. Each of its reads is short: the calls before it
/// are not the same in each run, so its number is not known.
#[test]
fn a_planted_fault_is_found_by_short_calls() {
    let believes = "\"$HAULAGE\" \"$@\" || exit\n\
        dd if=top/src/small of=dst/small bs=5000 count=1 status=none";
    let case = "tmpfs; -a --reflink=never; read; 1; all half";
    finds(believes, "exit status 0: small: 5000 bytes, 2500", &["short", "--case", case]);
}

#[test]
fn a_file_system_that_lies_is_no_reason_to_be_silent() {
    finds_nothing(30, &["liars", "--fs", "tmpfs", "--seed", "4"]);
}

/// An error is kept to itself, and success claimed.
#[test]
fn planted_faults_are_found_by_lies() {
    let args = ["liars", "--fs", "tmpfs", "--cases", "12", "--seed", "4"];
    finds("\"$HAULAGE\" \"$@\"; exit 0", "success, though", &args);
}

#[test]
fn limits_end_a_copy_loudly() {
    finds_nothing(10, &["limits", "--fs", "tmpfs,ext4"]);
}

/// An error that is kept to itself.
#[test]
fn a_planted_fault_is_found_by_limits() {
    let swallows = "\"$HAULAGE\" \"$@\"\nexit 0";
    finds(swallows, "exit status 0: ", &["limits", "--case", "tmpfs; -a; free inodes; 3"]);
}
