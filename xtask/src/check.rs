//! Runs every check that a change has to pass.

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::command::{cargo, exit_code};
use crate::{file_systems, mpi, skips};

/// The arguments of `cargo`, in order: the quickest checks come first.
const STEPS: &[&[&str]] = &[
    &["xtask", "layers"],
    &["xtask", "deny"],
    &["fmt", "--all", "--check"],
    // Without `--no-fail-fast` cargo stops after the first test program that fails.
    &["test", "--workspace", "--no-fail-fast"],
    &["xtask", "python"],
];

/// With these the steps compile the workspace by clippy, as `cargo clippy` does, and a warning is an error.
/// `cargo clippy` itself would make a library of each dependency that the tests cannot use.
const LINTS: [(&str, &str); 2] =
    [("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"), ("CLIPPY_ARGS", "-Dwarnings")];

/// Runs the steps up to the first that fails, and prints a summary.
pub(crate) fn everything() -> anyhow::Result<ExitCode> {
    let file_systems = file_systems::all_mounted()?;
    file_systems.announce();
    let skips = NamedTempFile::new().context("a file for the reported skips")?;
    let features = match mpi::prepare() {
        Ok(()) => vec!["--features", mpi::FEATURE],
        Err(why) => {
            skips::append(skips.path(), &format!("SKIPPED {why}"))?;
            Vec::new()
        }
    };
    let words = with_default_signals(cargo().get_program().to_owned());
    let mut times: Vec<(String, Duration)> = Vec::new();
    let mut status = ExitCode::SUCCESS;
    for args in STEPS.iter().map(|step| with_features(step, &features)) {
        let shown = format!("cargo {}", args.join(" "));
        eprintln!("xtask: {shown}");
        let begun = Instant::now();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(&args).envs(LINTS).envs(file_systems.environment());
        // An ext4 without a journal, as images of virtual machines often have, makes new files slowly for
        // some minutes after others were removed, as tests do (METHODOLOGY.md).
        command.envs(file_systems.dir("ext4").ok().map(|dir| ("TMPDIR", dir)));
        // The variants of a copy must not depend on the profile of this machine.
        command.env("HAULAGE_SKIPS", skips.path()).env("HAULAGE_PROFILE", "");
        status = exit_code(command.status().context(shown.clone())?);
        times.push((shown, begun.elapsed()));
        if status != ExitCode::SUCCESS {
            break;
        }
    }
    let skips = std::fs::read_to_string(skips.path()).context("the file of the reported skips")?;
    // The full list comes first, so that the summary is last on the screen.
    eprint!("\n{skips}");
    for (index, (step, elapsed)) in times.iter().enumerate() {
        let is_failed = status != ExitCode::SUCCESS && index + 1 == times.len();
        let outcome = if is_failed { "FAILED" } else { "passed" };
        eprintln!("xtask: {outcome} {:>6.1} s  {step}", elapsed.as_secs_f64());
    }
    file_systems.announce();
    let (skipped, left_out) = (skips.lines().count(), file_systems.left_out_count());
    if skipped + left_out > 0 {
        eprintln!("xtask: {skipped} SKIPS, listed above; {left_out} file systems LEFT OUT");
    } else {
        eprintln!("xtask: nothing was skipped");
    }
    Ok(status)
}

/// A step of its own for haulage-mpi would compile most crates again, with the features of one package.
fn with_features<'a>(step: &[&'a str], features: &[&'a str]) -> Vec<&'a str> {
    match step {
        [subcommand, "--workspace", rest @ ..] => {
            [&[*subcommand, "--workspace"], features, rest].concat()
        }
        _ => step.to_vec(),
    }
}

/// The command that runs `program` with the default actions of signals. A shell starts background
/// jobs with SIGINT ignored, and the processes that tests interrupt would inherit that.
fn with_default_signals(program: OsString) -> Vec<OsString> {
    let option = "--default-signal=HUP,INT,QUIT,PIPE";
    let trial = Command::new("env").args([option, "true"]).output();
    if trial.is_ok_and(|trial| trial.status.success()) {
        return vec!["env".into(), option.into(), program];
    }
    // Before coreutils 8.31.
    vec![program]
}
