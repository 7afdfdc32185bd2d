//! Builds `haulage-mpi` with the MPI library of this machine, and runs its tests: `cargo xtask mpi`.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use clap::Parser;

use crate::command::{cargo, step};
use crate::packages::{self, has_libclang};
use crate::skips::report_skip;

/// The feature with which cargo builds the program.
pub(crate) const FEATURE: &str = "haulage-mpi/mpi";

/// Build haulage-mpi with the MPI library of this machine, and run its tests.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask mpi")]
pub(crate) struct Args {
    /// Further arguments, for the tests
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// Runs the task.
///
/// # Errors
/// If a step fails. If Open MPI or libclang is missing and cannot be installed, it is skipped, loudly.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Err(why) = prepare() {
        report_skip(&why)?;
        return Ok(ExitCode::SUCCESS);
    }
    let package = ["--package", "haulage-mpi", "--features", FEATURE];
    let lints = ["--all-targets", "--", "-D", "warnings"];
    let checked = step(cargo().arg("clippy").args(package).args(lints))?;
    if checked != ExitCode::SUCCESS {
        return Ok(checked);
    }
    step(cargo().arg("test").args(package).args(["--test", "mpi", "--"]).args(&args.rest))
}

/// Installs Open MPI and libclang where they are missing.
///
/// # Errors
/// If one of them cannot be used then: the reason of a skip.
pub(crate) fn prepare() -> Result<(), String> {
    packages::install_mpi();
    find_tools().map_err(|why| {
        format!("haulage-mpi: {why:#}; Debian has libopenmpi-dev, openmpi-bin and libclang-dev")
    })
}

/// Looks for the compiler of MPI, mpirun of Open MPI, and libclang, by which the bindings are made.
///
/// # Errors
/// If one of them is missing.
pub(crate) fn find_tools() -> anyhow::Result<()> {
    let run = Command::new("mpirun").arg("--version").stderr(Stdio::null()).output();
    let version = String::from_utf8(run.context("mpirun")?.stdout)?;
    anyhow::ensure!(version.contains("Open MPI"), "mpirun is not that of Open MPI");
    let compiler = Command::new("mpicc").arg("--version").output().context("mpicc")?;
    anyhow::ensure!(compiler.status.success(), "mpicc: {}", compiler.status);
    anyhow::ensure!(has_libclang(), "there is no libclang.so");
    Ok(())
}
