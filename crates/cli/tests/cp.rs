//! `haulage cp` and the commands beside the lab, as a user runs them. One program, which is linked once.

mod completions;
mod cp_atomic;
mod cp_attack;
mod cp_buffers;
mod cp_coarse_times;
mod cp_debug;
mod cp_differential;
mod cp_dry_run;
mod cp_durable;
mod cp_faults;
mod cp_filter;
mod cp_filter_rsync;
mod cp_identity;
mod cp_interrupt;
mod cp_lies;
mod cp_limits;
mod cp_memory;
mod cp_operands;
mod cp_prediction;
mod cp_process;
mod cp_profile;
mod cp_progress;
mod cp_receipt;
mod cp_resume;
mod cp_resume_stale;
mod cp_served;
mod cp_verify;
mod doctor;
mod documents;
mod full_disk;
mod man;
mod report;
mod terminals;
mod version;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

/// `haulage cp` with `args` in `dir`.
fn haulage_cp(dir: &Path, args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = testfs::command(env!("CARGO_BIN_EXE_haulage"));
    command.arg("cp").args(args).current_dir(dir).env("LC_ALL", "C");
    command
}

/// Runs [`haulage_cp`] to its end.
fn cp(dir: &Path, args: &[impl AsRef<OsStr>]) -> Output {
    haulage_cp(dir, args).output().expect("haulage runs")
}
