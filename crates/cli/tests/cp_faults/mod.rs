//! Errors that the kernel seldom gives, made by strace; and what an ordinary user's copy does.

mod descriptors;
mod ordinary_user;
mod other_calls;
mod transfer;

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use testfs::{is_root, skip, test_name};

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
