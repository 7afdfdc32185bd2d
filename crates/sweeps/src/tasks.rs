//! The tasks, which get their names and what follows them.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::file_systems::{self, FileSystems};
use crate::{guest, matrix, mutants, sweep};

/// `cargo xtask sweep`.
///
/// # Errors
/// If a case cannot be tried.
pub fn sweep(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let args = sweep::Args::parse_from(words);
    if args.list {
        return Ok(sweep::list());
    }
    // A sweep within `cargo xtask test` or `with-fs` uses their file systems.
    let file_systems = match FileSystems::from_environment()? {
        Some(given) => given,
        None => file_systems::mounted(|| file_systems::mount_with_small(&args.fs))?,
    };
    sweep::run(&args, &file_systems)
}

/// `cargo xtask mutants`.
///
/// # Errors
/// If a fault cannot be planted, or a check fails without one.
pub fn mutants(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let args = mutants::Args::parse_from(words);
    if args.list {
        return mutants::list();
    }
    mutants::run(&args, &file_systems::all_mounted()?)
}

/// `cargo xtask guest`.
///
/// # Errors
/// If no guest can run here.
pub fn guest(words: &[OsString]) -> anyhow::Result<ExitCode> {
    guest::run(&guest::Args::parse_from(words))
}

/// `cargo xtask matrix`.
///
/// # Errors
/// If no guest can run here.
pub fn matrix(words: &[OsString]) -> anyhow::Result<ExitCode> {
    matrix::run(&matrix::Args::parse_from(words))
}
