//! `haulage cp` and the commands beside the lab, as a user runs them. One program, which is linked once.

mod completions;
mod cp_atomic;
mod cp_attack;
mod cp_buffers;
mod cp_coarse_times;
mod cp_debug;
mod cp_differential;
mod cp_dry_run;
mod cp_durable;
mod cp_faults;
mod cp_filter;
mod cp_filter_rsync;
mod cp_identity;
mod cp_interrupt;
mod cp_lies;
mod cp_limits;
mod cp_memory;
mod cp_operands;
mod cp_prediction;
mod cp_process;
mod cp_profile;
mod cp_progress;
mod cp_receipt;
mod cp_resume;
mod cp_resume_stale;
mod cp_served;
mod cp_verify;
mod doctor;
mod documents;
mod full_disk;
mod man;
mod report;
mod terminals;
mod version;

use std::ffi::OsStr;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use testfs::{is_root, skip, test_name};

const HAULAGE: &str = env!("CARGO_BIN_EXE_haulage");

fn haulage(args: &[&str]) -> Output {
    testfs::command(HAULAGE).args(args).output().expect("haulage runs")
}

/// `haulage cp` with `args` in `dir`.
fn haulage_cp(dir: &Path, args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = testfs::command(HAULAGE);
    command.arg("cp").args(args).current_dir(dir).env("LC_ALL", "C");
    command
}

/// Runs [`haulage_cp`] to its end.
fn cp(dir: &Path, args: &[impl AsRef<OsStr>]) -> Output {
    haulage_cp(dir, args).output().expect("haulage runs")
}

/// The commands in the help, each with the phrase about it.
fn commands() -> Vec<(String, String)> {
    let help = testfs::stdout(&haulage(&["--help"]));
    let (_, list) = help.split_once("Commands:\n").expect("a list of commands");
    let lines = list.lines().take_while(|line| !line.is_empty());
    let parted = lines.filter_map(|line| line.trim().split_once(' '));
    parted.map(|(name, about)| (name.to_owned(), about.trim().to_owned())).collect()
}

/// Runs `haulage cp ARGS` in `dir` under strace with `options`, which writes to the file `trace`. `None` after
/// a reported skip.
fn strace(dir: &Path, options: &[impl AsRef<OsStr>], args: &[impl AsRef<OsStr>]) -> Option<Output> {
    let mut command = testfs::command("strace");
    command.args(["-f", "-o", "trace"]).args(options).args([HAULAGE, "cp"]).args(args);
    let output = command.current_dir(dir).output().ok().filter(|_| dir.join("trace").exists());
    if output.is_none() {
        skip(&test_name(), "strace cannot be run here");
    }
    output
}

/// Runs `haulage cp ARGS` in `dir` under strace with the rules `inject`, in the form
/// `inject=CALLS:error=ERRNO`. Only these calls are traced, so that others are not slowed down. `None` after
/// a reported skip.
fn with_faults(dir: &Path, inject: &[&str], args: &[&str]) -> Option<Output> {
    // Without calls strace would refuse to run, which is taken for a strace that cannot.
    assert!(!inject.is_empty(), "faults are injected");
    let calls = inject.iter().map(|rule| {
        let (calls, _) = rule.split_once(':').expect("a call and what becomes of it");
        calls.strip_prefix("inject=").expect("a fault")
    });
    let trace = format!("trace={}", calls.collect::<Vec<_>>().join(","));
    let mut options = vec!["--seccomp-bpf", "-e", &trace];
    options.extend(inject.iter().flat_map(|rule| ["-e", rule]));
    strace(dir, &options, args)
}

/// How many of the calls that strace saw have `text` in them.
fn calls(dir: &Path, text: &str) -> usize {
    let trace = std::fs::read_to_string(dir.join("trace")).expect("strace's output");
    trace.lines().filter(|line| line.contains(text)).count()
}

/// Runs `haulage cp ARGS` in `dir` with a limit, which is an option of prlimit. `None` after a reported skip.
fn within(dir: &Path, limit: &str, args: &[impl AsRef<OsStr>]) -> Option<Output> {
    let mut command = testfs::command("prlimit");
    let output = command.args([limit, HAULAGE, "cp"]).args(args).current_dir(dir).output().ok();
    if output.is_none() {
        skip(&test_name(), "prlimit cannot be run here");
    }
    output
}

/// Runs `haulage cp ARGS` as an ordinary user in `dir`; as ourselves when we are one. `None` after a
/// reported skip.
fn as_nobody(dir: &Path, args: &[&str]) -> Option<Output> {
    let mut command = if is_root() {
        let mut command = testfs::command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        // The program may lie where others may not go.
        let program = dir.join("haulage");
        testfs::copy_program(HAULAGE, &program);
        set_permissions(&program, Permissions::from_mode(0o755)).expect("mode set");
        command.arg(program);
        command
    } else {
        testfs::command(HAULAGE)
    };
    let output = command.arg("cp").args(args).current_dir(dir).output().ok();
    if output.is_none() {
        skip(&test_name(), "setpriv cannot be run here");
    }
    output
}

/// A directory that anybody may use.
fn open_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("created");
    set_permissions(dir.path(), Permissions::from_mode(0o777)).expect("mode set");
    dir
}

/// The names of temporary files, partial files and journals in `dir` and below, sorted.
fn leftovers(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("listed").map(|entry| entry.expect("an entry")) {
        found.push(entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().expect("looked at").is_dir() {
            found.extend(leftovers(&entry.path()));
        }
    }
    found.retain(|name| name.contains(".haulage-"));
    found.sort();
    found
}
