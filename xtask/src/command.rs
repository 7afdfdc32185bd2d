//! Commands of other programs that are steps of a task.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, bail, ensure};

/// The root of the repository that this program was built from.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is in a folder")
}

/// The cargo that runs xtask.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command whose failure ends the task.
pub fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("{}: {status}", command.get_program().display());
    }
    Ok(())
}

/// The standard output of a command. Its failure is an error.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.stderr(Stdio::inherit()).output().context(program.clone())?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    String::from_utf8(output.stdout).context(program)
}

/// The standard output of `command`.
///
/// # Errors
/// What it wrote to standard error, on one line, if it fails.
pub fn quietly(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().display().to_string();
    // On Debian mkfs is in a directory that only root's PATH has.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = command.env("PATH", path).output().with_context(|| program.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().collect();
    ensure!(output.status.success(), "{program}: {}", said.join(" "));
    String::from_utf8(output.stdout).context(program)
}

/// Builds this tree's haulage with debug assertions and overflow checks.
pub fn build_haulage() -> anyhow::Result<PathBuf> {
    let build = ["build", "--quiet", "--package", "haulage-cli", "--bin", "haulage"];
    succeed(cargo().args(build))?;
    let own = std::env::current_exe().context("this program's own path")?;
    Ok(own.with_file_name("haulage"))
}

/// Runs a check, and returns its exit code.
pub fn step(command: &mut Command) -> anyhow::Result<ExitCode> {
    Ok(exit_code(status(command)?))
}

fn status(command: &mut Command) -> anyhow::Result<ExitStatus> {
    command.status().with_context(|| command.get_program().display().to_string())
}

/// The exit code of a command. It is 1 if a signal killed the command.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
