//! Commands of other programs that are steps of a task.

use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, bail};

/// The cargo that runs xtask.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command whose failure ends the task.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("{}: {status}", command.get_program().display());
    }
    Ok(())
}

/// Runs a check, and returns its exit code.
pub(crate) fn step(command: &mut Command) -> anyhow::Result<ExitCode> {
    Ok(exit_code(status(command)?))
}

fn status(command: &mut Command) -> anyhow::Result<ExitStatus> {
    command.status().with_context(|| command.get_program().display().to_string())
}

/// The exit code of a command. It is 1 if a signal killed the command.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
