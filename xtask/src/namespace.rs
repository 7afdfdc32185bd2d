//! A private mount namespace. The kernel removes its mounts with its last process, however this
//! program ends, and the loop devices with the mounts.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The first argument of a process that is in the namespace already.
const INSIDE: &str = "--inside-mount-namespace";

/// Whether this process is in the namespace already.
pub(crate) fn is_entered() -> bool {
    std::env::args_os().nth(1).is_some_and(|first| first == INSIDE)
}

/// The arguments of this process, without what only says that it is in the namespace.
#[must_use]
pub fn words() -> Vec<OsString> {
    std::env::args_os().skip(1 + usize::from(is_entered())).collect()
}

/// Executes this program again in a private mount namespace. Returns only on failure, with the reason.
pub(crate) fn enter() -> String {
    if !rustix::process::geteuid().is_root() {
        return "mounting requires root".to_owned();
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--"]);
        command
    };
    match unshare().arg("true").output() {
        Ok(trial) if trial.status.success() => {}
        Ok(trial) => return String::from_utf8_lossy(&trial.stderr).trim().to_owned(),
        Err(error) => return format!("unshare: {error}"),
    }
    match std::env::current_exe() {
        Ok(program) => {
            let error = unshare().arg(program).arg(INSIDE).args(words()).exec();
            format!("unshare: {error}")
        }
        Err(error) => format!("this program's own path: {error}"),
    }
}
