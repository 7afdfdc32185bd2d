//! Tells the program which commit it was built from, for the records of measurements.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Whoever builds from an archive has no repository, and packagers may not have git.
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return };
    println!("cargo::rustc-env=HAULAGE_COMMIT={commit}");
    // A commit moves the branch, and appends to its log.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|out| out.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
