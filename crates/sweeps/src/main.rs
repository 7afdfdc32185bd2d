//! What is tried by the thousand, or on other kernels, because a test would take too long: the tasks `sweep`,
//! `guest`, `matrix`, `mutants` and `fuzz` of `cargo xtask`, which starts this program.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use xtask::file_systems::{self, FileSystems};

mod fuzz;
mod guest;
mod matrix;
mod mutants;
mod sweep;

/// Runs the task with the name that comes first.
fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    match words.first().and_then(|name| name.to_str()) {
        Some("sweep") => sweep(sweep::Args::parse_from(words)),
        Some("guest") => guest::run(&guest::Args::parse_from(words)),
        Some("matrix") => matrix::run(&matrix::Args::parse_from(words)),
        Some("mutants") => mutants(&mutants::Args::parse_from(words)),
        Some("fuzz") => fuzz::run(&fuzz::Args::parse_from(words)),
        _ => anyhow::bail!("no task of this program: {words:?}"),
    }
}

fn sweep(args: sweep::Args) -> anyhow::Result<ExitCode> {
    if args.list {
        return Ok(sweep::list());
    }
    // A sweep within `cargo xtask test` or `with-fs` uses their file systems.
    let file_systems = match FileSystems::from_environment()? {
        Some(given) => given,
        None => file_systems::mounted(|| file_systems::mount_with_small(&args.settings.fs))?,
    };
    sweep::run(args, file_systems)
}

fn mutants(args: &mutants::Args) -> anyhow::Result<ExitCode> {
    if args.list {
        return mutants::list();
    }
    mutants::run(args, &file_systems::all_mounted()?)
}

fn main() -> ExitCode {
    run(&xtask::words()).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
