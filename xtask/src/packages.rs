//! What the tests need besides Rust. Packages of other managers are installed here too, after
//! Debian's and each from a lock file in the repository.

use std::path::Path;
use std::process::Command;

/// Commands that tests and their set-up call, and the Debian packages that bring them.
const TOOLS: &[(&str, &str)] = &[
    ("mount", "mount"),
    ("unshare", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("setfattr", "attr"),
    ("setfacl", "acl"),
    ("fusermount3", "fuse3"),
    ("strace", "strace"),
];

/// Installs what is missing, or says what is and why it stays so: the tests that need it then skip
/// aloud. Nothing is asked of the network when nothing is missing.
pub(crate) fn install_missing() {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(tool, _)| !is_found(tool)).map(|&(_, package)| package).collect();
    if missing.is_empty() {
        return;
    }
    let names = missing.join(" ");
    if !rustix::process::geteuid().is_root() {
        eprintln!("xtask: missing: {names}; as root this command installs them");
        return;
    }
    eprintln!("xtask: installing {names}");
    let install = ["install", "--yes", "--no-install-recommends"];
    let result = apt_get(&["update"]).and_then(|()| apt_get(&[&install, &missing[..]].concat()));
    if let Err(why) = result {
        eprintln!("xtask: {names} cannot be installed: {why}");
    }
}

fn apt_get(args: &[&str]) -> Result<(), String> {
    let status = Command::new("apt-get")
        .arg("--quiet")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .map_err(|error| format!("apt-get: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("apt-get {}: {status}", args[0])) }
}

/// Whether `tool` is on the PATH, or where Debian keeps what only root uses.
fn is_found(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
        || ["/usr/sbin", "/sbin"].iter().any(|dir| Path::new(dir).join(tool).is_file())
}
