//! Every check that a change has to pass, one after another.

use std::ffi::OsString;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::file_systems::FileSystems;
use crate::layers;

/// What `cargo` is called with, in order.
const STEPS: &[&[&str]] = &[
    &["fmt", "--all", "--check"],
    &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    // Without `--no-fail-fast` the first failing program hides what the others would say.
    &["test", "--workspace", "--no-fail-fast"],
];

/// Runs the steps up to the first that fails, and sums up.
pub(crate) fn everything(file_systems: &FileSystems) -> anyhow::Result<ExitCode> {
    file_systems.announce();
    let skips = NamedTempFile::new().context("a file for the tests' skips")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = heeding_signals(cargo);
    // First, as it takes a second.
    let shown = "cargo xtask layers".to_owned();
    eprintln!("xtask: {shown}");
    let begun = Instant::now();
    let holds = layers::check_own()?;
    let mut times = vec![(shown, begun.elapsed())];
    if !holds {
        sum_up(&times, true, file_systems, skips.path())?;
        return Ok(ExitCode::FAILURE);
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
            // Which way a copy takes is not to depend on what somebody measured on this machine.
            .env("HAULAGE_PROFILE", "")
            .status()
            .context(shown.clone())?;
        times.push((shown, begun.elapsed()));
        if !status.success() {
            failed = Some(status);
            break;
        }
    }
    sum_up(&times, failed.is_some(), file_systems, skips.path())?;
    Ok(failed.map_or(ExitCode::SUCCESS, exit_code))
}

/// The same status for our caller. A command killed by a signal has none and counts as failed.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// What to call for `program` to heed signals: shells have what they start in the background ignore an
/// interrupt, and what ignores a signal hands that on to what the tests interrupt.
fn heeding_signals(program: OsString) -> Vec<OsString> {
    let heeding = "--default-signal=HUP,INT,QUIT,PIPE";
    let trial = Command::new("env").args([heeding, "true"]).output();
    if trial.is_ok_and(|trial| trial.status.success()) {
        return vec!["env".into(), heeding.into(), program];
    }
    // Before coreutils 8.31.
    vec![program]
}

fn sum_up(
    times: &[(String, Duration)],
    last_failed: bool,
    file_systems: &FileSystems,
    skips: &std::path::Path,
) -> anyhow::Result<()> {
    let skips = std::fs::read_to_string(skips).context("the file of the tests' skips")?;
    eprintln!();
    // The full list comes first, so that the last lines on the screen are the short ones.
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
