//! Runs every check that a change has to pass.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::command::{cargo, exit_code};
use crate::file_systems::FileSystems;
use crate::{deny, layers};

/// The arguments of `cargo`, in order.
const STEPS: &[&[&str]] = &[
    &["fmt", "--all", "--check"],
    &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    // Without `--no-fail-fast` cargo stops after the first test program that fails.
    &["test", "--workspace", "--no-fail-fast"],
    &["xtask", "python"],
    &["xtask", "mpi"],
];

/// Runs the steps up to the first that fails, and prints a summary.
pub(crate) fn everything(file_systems: &FileSystems) -> anyhow::Result<ExitCode> {
    file_systems.announce();
    let skips = NamedTempFile::new().context("a file for the reported skips")?;
    let words = with_default_signals(cargo().get_program().to_owned());
    let mut times = Vec::new();
    // The quickest checks come first.
    for shown in ["cargo xtask layers", "cargo xtask deny"] {
        eprintln!("xtask: {shown}");
        let begun = Instant::now();
        let holds = match shown {
            "cargo xtask layers" => layers::check_own()?,
            _ => deny(skips.path())?,
        };
        times.push((shown.to_owned(), begun.elapsed()));
        if !holds {
            print_summary(&times, true, file_systems, skips.path())?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let mut failed = None;
    for args in STEPS {
        let shown = format!("cargo {}", args.join(" "));
        eprintln!("xtask: {shown}");
        let begun = Instant::now();
        let status = Command::new(&words[0])
            .args(&words[1..])
            .args(*args)
            .envs(file_systems.environment())
            .env("HAULAGE_SKIPS", skips.path())
            // The variants of a copy must not depend on the profile of this machine.
            .env("HAULAGE_PROFILE", "")
            .status()
            .context(shown.clone())?;
        times.push((shown, begun.elapsed()));
        if !status.success() {
            failed = Some(status);
            break;
        }
    }
    print_summary(&times, failed.is_some(), file_systems, skips.path())?;
    Ok(failed.map_or(ExitCode::SUCCESS, exit_code))
}

/// Whether the dependencies are as deny.toml demands. What could not be checked is added to `skips`.
fn deny(skips: &Path) -> anyhow::Result<bool> {
    let deny::Outcome { holds, skips: lines } = deny::check()?;
    let mut file = std::fs::File::options().append(true).open(skips)?;
    for line in lines {
        writeln!(file, "{line}").context("the file of the reported skips")?;
    }
    Ok(holds)
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

fn print_summary(
    times: &[(String, Duration)],
    last_failed: bool,
    file_systems: &FileSystems,
    skips: &Path,
) -> anyhow::Result<()> {
    let skips = std::fs::read_to_string(skips).context("the file of the reported skips")?;
    eprintln!();
    // The full list comes first, so that the summary is last on the screen.
    eprint!("{skips}");
    for (index, (step, elapsed)) in times.iter().enumerate() {
        let outcome = if last_failed && index + 1 == times.len() { "FAILED" } else { "passed" };
        eprintln!("xtask: {outcome} {:>6.1} s  {step}", elapsed.as_secs_f64());
    }
    file_systems.announce();
    let (skipped, left_out) = (skips.lines().count(), file_systems.left_out_count());
    if skipped + left_out > 0 {
        eprintln!("xtask: {skipped} SKIPS, listed above; {left_out} file systems LEFT OUT");
    } else {
        eprintln!("xtask: nothing was skipped");
    }
    Ok(())
}
