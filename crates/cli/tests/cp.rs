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
mod image;
mod man;
mod report;
mod terminals;
mod version;

use std::fmt;
use std::fs::{self, File, Permissions, set_permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use cp_differential::spawn_as_nobody;
use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;
use testfs::{fixture, is_root, skip, stderr, test_name};

const HAULAGE: &str = env!("CARGO_BIN_EXE_haulage");

fn haulage(args: &[&str]) -> Output {
    testfs::command(HAULAGE).args(args).output().expect("haulage ran")
}

/// The program, open, and its path by that descriptor, which children inherit. An ordinary user can execute it even
/// if its directory is closed to others.
static OPEN_HAULAGE: LazyLock<(File, String)> = LazyLock::new(|| {
    let file = File::open(HAULAGE).expect("opened");
    fcntl_setfd(&file, FdFlags::empty()).expect("the descriptor is kept");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    (file, path)
});

/// `haulage cp LINE` in `dir`; blanks part the words of the line.
fn haulage_cp(dir: impl AsRef<Path>, line: &str) -> Command {
    program_cp(HAULAGE, dir, line)
}

/// As [`haulage_cp`], with the program at the path `program`.
fn program_cp(program: &str, dir: impl AsRef<Path>, line: &str) -> Command {
    let mut command = testfs::command(program);
    command.arg("cp").args(line.split_whitespace()).current_dir(dir).env("LC_ALL", "C");
    command
}

/// A shell in `dir` that runs `script`, whose `"$0"` is haulage.
fn shell(dir: impl AsRef<Path>, script: &str) -> Command {
    let mut command = testfs::command("bash");
    command.args(["-c", script, HAULAGE]).current_dir(dir).env("LC_ALL", "C");
    command
}

/// Starts [`haulage_cp`], whose messages its parent can read.
fn begin(dir: impl AsRef<Path>, line: &str) -> Child {
    haulage_cp(dir, line).stderr(Stdio::piped()).spawn().expect("haulage started")
}

/// Runs [`haulage_cp`] to its end.
fn cp(dir: impl AsRef<Path>, line: &str) -> Output {
    haulage_cp(dir, line).output().expect("haulage ran")
}

/// Runs [`cp`], and fails the test unless it succeeds.
#[track_caller]
fn copy(dir: impl AsRef<Path>, line: &str) -> Output {
    let output = cp(&dir, line);
    check_success(&output, format_args!("{}: {line}", dir.as_ref().display()));
    output
}

/// Fails the test `what` unless the status of `output` is 0.
#[track_caller]
fn check_success(output: &Output, what: impl fmt::Display) {
    assert!(output.status.success(), "{what}: {}: {}", output.status, stderr(output));
}

/// Fails the test `what` unless the status of `output` is this one, and all of its standard error these words.
#[track_caller]
fn check(output: &Output, status: i32, said: &str, what: impl fmt::Display) {
    assert_eq!((stderr(output).as_str(), output.status.code()), (said, Some(status)), "{what}");
}

/// Fails the test `what` unless the status of `output` is 1, and its standard error has `text`.
#[track_caller]
fn check_failed(output: &Output, text: &str, what: impl fmt::Display) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{what}: {said}");
    assert!(said.contains(text), "{what}: {said}");
}

/// Fails the test `what` unless the file at `path` has this content.
#[track_caller]
fn check_content(path: impl AsRef<Path>, content: impl AsRef<[u8]>, what: impl fmt::Display) {
    let path = path.as_ref();
    let found = fs::read(path).unwrap_or_else(|e| panic!("{what}: {}: {e}", path.display()));
    let start = found[..found.len().min(80)].escape_ascii();
    let place = path.display();
    assert!(found == content.as_ref(), "{what}: {place} has {} bytes: {start}", found.len());
}

/// A temporary directory with the tree `text`, in the language of [`fixture`].
fn dir_with(text: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("created");
    fixture::add(text, dir.path());
    dir
}

/// The commands in the help, each with the phrase about it.
fn commands() -> Vec<(String, String)> {
    let help = testfs::stdout(&haulage(&["--help"]));
    let (_, list) = help.split_once("Commands:\n").expect("a list of commands");
    let lines = list.lines().take_while(|line| !line.is_empty());
    let parted = lines.filter_map(|line| line.trim().split_once(' '));
    parted.map(|(name, about)| (name.to_owned(), about.trim().to_owned())).collect()
}

/// Runs `haulage cp LINE` in `dir` under strace with `options`, which writes to the file `trace`. `None` after
/// a reported skip.
fn strace(dir: impl AsRef<Path>, options: &str, line: &str) -> Option<Output> {
    let mut command = testfs::command("strace");
    command.args(["-f", "-o", "trace"]).args(options.split_whitespace());
    command.args([HAULAGE, "cp"]).args(line.split_whitespace());
    let output =
        command.current_dir(&dir).output().ok().filter(|_| dir.as_ref().join("trace").exists());
    if output.is_none() {
        skip(&test_name(), "strace cannot be run here");
    }
    output
}

/// Runs `haulage cp LINE` in `dir` under strace with `faults`, each in the form `CALLS:error=ERRNO`. Only
/// these calls are traced, so that others are not slowed down. `None` after a reported skip.
fn with_faults(dir: impl AsRef<Path>, faults: &str, line: &str) -> Option<Output> {
    let (mut traced, mut injected) = (Vec::new(), String::new());
    for fault in faults.split_whitespace() {
        traced.push(fault.split_once(':').expect("a call and what becomes of it").0);
        injected += &format!(" -e inject={fault}");
    }
    // Without calls strace would refuse to run, which is taken for a strace that cannot.
    assert!(!traced.is_empty(), "faults are injected");
    strace(dir, &format!("--seccomp-bpf -e trace={}{injected}", traced.join(",")), line)
}

/// How many of the calls that strace saw have `text` in them.
fn calls(dir: impl AsRef<Path>, text: &str) -> usize {
    let trace = fs::read_to_string(dir.as_ref().join("trace")).expect("strace's output");
    trace.lines().filter(|line| line.contains(text)).count()
}

/// Runs `haulage cp LINE` in `dir` with a limit, which is an option of prlimit. `None` after a reported skip.
fn within(dir: impl AsRef<Path>, limit: &str, line: &str) -> Option<Output> {
    let mut command = testfs::command("prlimit");
    command.args([limit, HAULAGE, "cp"]).args(line.split_whitespace());
    let output = command.current_dir(dir).output().ok();
    if output.is_none() {
        skip(&test_name(), "prlimit cannot be run here");
    }
    output
}

/// Runs `haulage cp LINE` as an ordinary user in `dir`; as ourselves when we are one.
fn as_nobody(dir: impl AsRef<Path>, line: &str) -> Output {
    run_as_nobody(program_cp(&OPEN_HAULAGE.1, dir, line))
}

/// Runs `command` as [`as_nobody`] does.
fn run_as_nobody(mut command: Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = if is_root() { spawn_as_nobody(command) } else { command.spawn() };
    child.and_then(|child| child.wait_with_output()).expect("haulage runs")
}

/// [`dir_with`], which anybody may use.
fn open_dir_with(text: &str) -> TempDir {
    let dir = dir_with(text);
    set_permissions(dir.path(), Permissions::from_mode(0o777)).expect("mode set");
    dir
}

/// The names of temporary files, partial files and journals in `dir` and below, sorted.
fn leftovers(dir: impl AsRef<Path>) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("listed").map(|entry| entry.expect("an entry")) {
        found.push(entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().expect("looked at").is_dir() {
            found.extend(leftovers(entry.path()));
        }
    }
    found.retain(|name| name.contains(".haulage-"));
    found.sort();
    found
}
