//! The program under test, and what it may know of whoever runs the tests.

use std::ffi::OsStr;
use std::process::Command;

/// A command that starts `program`, which is haulage or starts it, and goes by no profile that somebody
/// has on this machine: which way a copy takes would depend on it.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("HAULAGE_PROFILE", "");
    command
}
