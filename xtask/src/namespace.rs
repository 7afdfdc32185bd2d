//! A mount namespace of our own: however this program ends, even killed, the kernel takes the
//! mounts back with the last process inside, and the loop devices with the mounts.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The first argument of a run that has the namespace already.
pub(crate) const INSIDE: &str = "--inside-mount-namespace";

/// Runs this program anew with `args` in a private mount namespace. Returns only when there can be
/// none, and then says why.
pub(crate) fn enter(args: &[OsString]) -> String {
    if !rustix::process::geteuid().is_root() {
        return "mounting takes root".to_owned();
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
            let error = unshare().arg(program).arg(INSIDE).args(args).exec();
            format!("unshare: {error}")
        }
        Err(error) => format!("this program's own path: {error}"),
    }
}
