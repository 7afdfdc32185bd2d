//! Runs every check that a change has to pass.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::command::{cargo, exit_code};
use crate::file_systems::FileSystems;
use crate::{deny, file_systems, layers, mpi, skips};

/// The arguments of `cargo`, in order.
const STEPS: &[&[&str]] = &[
    &["fmt", "--all", "--check"],
    &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    // Without `--no-fail-fast` cargo stops after the first test program that fails.
    &["test", "--workspace", "--no-fail-fast"],
    &["xtask", "python"],
];

/// What the steps did so far.
#[derive(Debug, Default)]
struct Summary {
    /// The steps, with their times.
    steps: Vec<(String, Duration)>,
    /// The last step failed.
    failed: bool,
}

/// Runs the steps up to the first that fails, and prints a summary.
pub(crate) fn everything() -> anyhow::Result<ExitCode> {
    let file_systems = &file_systems::all_mounted()?;
    file_systems.announce();
    let skips = NamedTempFile::new().context("a file for the reported skips")?;
    let mut summary = Summary::default();
    let status = run_steps(file_systems, skips.path(), &mut summary)?;
    summary.failed = status != ExitCode::SUCCESS;
    summary.print(file_systems, skips.path())?;
    Ok(status)
}

/// The exit code of the last step that ran.
fn run_steps(
    file_systems: &FileSystems,
    skips: &Path,
    summary: &mut Summary,
) -> anyhow::Result<ExitCode> {
    let words = with_default_signals(cargo().get_program().to_owned());
    // The quickest checks come first.
    for shown in ["cargo xtask layers", "cargo xtask deny"] {
        eprintln!("xtask: {shown}");
        let begun = Instant::now();
        let holds = match shown {
            "cargo xtask layers" => layers::check_own()?,
            _ => deny(skips)?,
        };
        summary.steps.push((shown.to_owned(), begun.elapsed()));
        if !holds {
            return Ok(ExitCode::FAILURE);
        }
    }
    // An ext4 without a journal, as images of virtual machines often have, makes new files slowly for
    // some minutes after others were removed, as tests do (METHODOLOGY.md).
    let temporary = file_systems.dir("ext4").ok();
    let command = || {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .envs(file_systems.environment())
            .env("HAULAGE_SKIPS", skips)
            // The variants of a copy must not depend on the profile of this machine.
            .env("HAULAGE_PROFILE", "")
            .envs(temporary.map(|dir| ("TMPDIR", dir)));
        command
    };
    for args in steps(skips)? {
        let shown = format!("cargo {}", args.join(" "));
        eprintln!("xtask: {shown}");
        let begun = Instant::now();
        let status = command().args(&args).status().context(shown.clone())?;
        summary.steps.push((shown, begun.elapsed()));
        if !status.success() {
            return Ok(exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the dependencies are as deny.toml demands. What could not be checked is added to `skips`.
fn deny(skips: &Path) -> anyhow::Result<bool> {
    let deny::Outcome { holds, skips: lines } = deny::check()?;
    lines.iter().try_for_each(|line| skips::append(skips, line))?;
    Ok(holds)
}

/// The steps, with haulage-mpi where MPI can be used. Otherwise that is added to `skips`.
///
/// A step of its own for haulage-mpi would compile most crates again, with the features of one package.
fn steps(skips: &Path) -> anyhow::Result<Vec<Vec<&'static str>>> {
    let features = match mpi::prepare() {
        Ok(()) => vec!["--features", mpi::FEATURE],
        Err(why) => {
            skips::append(skips, &format!("SKIPPED {why}"))?;
            Vec::new()
        }
    };
    let steps = STEPS.iter().map(|step| match step {
        [subcommand, "--workspace", rest @ ..] => {
            [&[*subcommand, "--workspace"], &features[..], rest].concat()
        }
        _ => step.to_vec(),
    });
    Ok(steps.collect())
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

impl Summary {
    fn print(&self, file_systems: &FileSystems, skips: &Path) -> anyhow::Result<()> {
        let skips = std::fs::read_to_string(skips).context("the file of the reported skips")?;
        eprintln!();
        // The full list comes first, so that the summary is last on the screen.
        eprint!("{skips}");
        for (index, (step, elapsed)) in self.steps.iter().enumerate() {
            let is_last = index + 1 == self.steps.len();
            let outcome = if self.failed && is_last { "FAILED" } else { "passed" };
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
}
