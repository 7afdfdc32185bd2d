//! Runs every check that a change has to pass.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::command::{cargo, exit_code};
use crate::{file_systems, mpi, skips};

/// The arguments of `cargo`, in order: the quickest checks come first.
const FIRST: &[&[&str]] = &[
    &["xtask", "layers"],
    &["xtask", "deny"],
    &["fmt", "--all", "--check"],
    &["test", "--workspace", "--no-run"],
];

/// Steps that run one after another in each lane, and the lanes at the same time: a test program alone leaves a
/// processor idle while it waits for storage, for a browser or for its last test. Without `--no-fail-fast` cargo
/// stops after the first test program that fails.
const LANES: [&[&[&str]]; 3] = [
    &[&["test", "--workspace", "--no-fail-fast", "--test", "cp*"]],
    &[
        &["test", "--workspace", "--no-fail-fast", "--test", "[!cp-z]*", "--test", "c[!p]*"],
        &["test", "--workspace", "--no-fail-fast", "--doc"],
    ],
    &[
        &["test", "--workspace", "--no-fail-fast", "--test", "[p-z]*"],
        &["xtask", "python"],
        &["test", "--workspace", "--no-fail-fast", "--lib", "--bins"],
    ],
];

/// With these the steps compile the workspace by clippy, as `cargo clippy` does, and a warning is an error.
/// `cargo clippy` itself would make a library of each dependency that the tests cannot use.
const LINTS: [(&str, &str); 2] =
    [("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"), ("CLIPPY_ARGS", "-Dwarnings")];

/// A step, how long it took, and how it ended.
type Step = (String, Duration, ExitStatus);

/// Runs the first steps up to one that fails, then those of all lanes, and prints a summary.
pub(crate) fn everything() -> anyhow::Result<ExitCode> {
    let file_systems = file_systems::all_mounted()?;
    file_systems.announce();
    let memory = file_systems.dir("tmpfs").map_or_else(|_| std::env::temp_dir(), Path::to_owned);
    let skips = NamedTempFile::new_in(memory).context("a file for the reported skips")?;
    let mut features = Vec::new();
    match mpi::prepare() {
        Ok(()) => features.extend(["--features", mpi::FEATURE]),
        Err(why) => skips::append(skips.path(), &format!("SKIPPED {why}"))?,
    }
    let words = with_default_signals(cargo().get_program().to_owned());
    let lane = |steps: &[&[&str]], is_alone: bool| {
        run_lane(steps, is_alone, &features, || {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).envs(LINTS).envs(file_systems.environment());
            // An ext4 without a journal, as images of virtual machines often have, makes new files slowly for
            // some minutes after others were removed, as tests do (METHODOLOGY.md).
            command.envs(file_systems.dir("ext4").ok().map(|dir| ("TMPDIR", dir)));
            // The variants of a copy must not depend on the profile of this machine.
            command.env("HAULAGE_SKIPS", skips.path()).env("HAULAGE_PROFILE", "");
            command
        })
    };
    let mut steps = lane(FIRST, true)?;
    if steps.iter().all(|(.., status)| status.success()) {
        steps.extend(thread::scope(|scope| {
            let lanes = LANES.map(|steps| scope.spawn(|| lane(steps, false)));
            let ends = lanes.map(|lane| lane.join().expect("no step panics"));
            ends.into_iter().collect::<anyhow::Result<Vec<_>>>().map(|steps| steps.concat())
        })?);
    }
    let skips = std::fs::read_to_string(skips.path()).context("the file of the reported skips")?;
    // The full list comes first, so that the summary is last on the screen.
    eprint!("\n{skips}");
    for (step, elapsed, status) in &steps {
        let outcome = if status.success() { "passed" } else { "FAILED" };
        eprintln!("xtask: {outcome} {:>6.1} s  {step}", elapsed.as_secs_f64());
    }
    file_systems.announce();
    let (skipped, left_out) = (skips.lines().count(), file_systems.left_out_count());
    if skipped + left_out > 0 {
        eprintln!("xtask: {skipped} SKIPS, listed above; {left_out} file systems LEFT OUT");
    } else {
        eprintln!("xtask: nothing was skipped");
    }
    let failed = steps.iter().map(|(.., status)| *status).find(|status| !status.success());
    Ok(failed.map_or(ExitCode::SUCCESS, exit_code))
}

/// Runs `steps`, up to the first that fails if no other lane runs. Otherwise the text of each test program is printed
/// whole when it ends.
fn run_lane(
    steps: &[&[&str]],
    is_alone: bool,
    features: &[&str],
    cargo: impl Fn() -> Command,
) -> anyhow::Result<Vec<Step>> {
    let mut ended: Vec<Step> = Vec::new();
    for args in steps.iter().map(|step| of_workspace(step, features)) {
        let shown = format!("cargo {}", args.join(" "));
        eprintln!("xtask: {shown}");
        let begun = Instant::now();
        let mut command = cargo();
        command.args(&args);
        let status = if is_alone {
            command.status().context(shown.clone())?
        } else {
            print_by_program(command).context(shown.clone())?
        };
        ended.push((shown, begun.elapsed(), status));
        if is_alone && !status.success() {
            break;
        }
    }
    Ok(ended)
}

/// Runs `command`, and prints what it writes up to the result of each test program at once.
fn print_by_program(mut command: Command) -> io::Result<ExitStatus> {
    let (output, input) = io::pipe()?;
    let mut child = command.stdout(input.try_clone()?).stderr(input).spawn()?;
    // This process would keep the pipe open.
    drop(command);
    let mut text = Vec::new();
    let mut lines = BufReader::new(output);
    loop {
        let begin = text.len();
        let is_end = lines.read_until(b'\n', &mut text)? == 0;
        if is_end || text[begin..].starts_with(b"test result: ") {
            io::stderr().lock().write_all(&text)?;
            text.clear();
        }
        if is_end {
            return child.wait();
        }
    }
}

/// The arguments `step` with `features` after `--workspace`. A step of its own for the package that has them would
/// compile most crates again.
/// The extension module has no tests in Rust: `cargo xtask python` compiles it, with the lints, for its interpreter.
pub(crate) fn of_workspace<'a>(step: &[&'a str], features: &[&'a str]) -> Vec<&'a str> {
    match step {
        [subcommand, "--workspace", rest @ ..] => {
            let others = [*subcommand, "--workspace", "--exclude", "haulage-python"];
            [&others, features, rest].concat()
        }
        _ => step.to_vec(),
    }
}

/// The command that runs `program` with the default actions of signals. A shell starts background
/// jobs with SIGINT ignored, Python its children with SIGPIPE and SIGXFSZ, and the processes of tests would inherit
/// that.
fn with_default_signals(program: OsString) -> Vec<OsString> {
    let option = "--default-signal=HUP,INT,QUIT,PIPE,XFSZ";
    let trial = Command::new("env").args([option, "true"]).output();
    if trial.is_ok_and(|trial| trial.status.success()) {
        return vec!["env".into(), option.into(), program];
    }
    // Before coreutils 8.31.
    vec![program]
}
