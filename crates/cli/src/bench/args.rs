//! The arguments of `haulage bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::measured_dirs::MeasuredDirs;
use crate::terminal::command::{positive, random_seed, seconds};

/// Run a whole experiment, and keep every sample.
///
/// EXPERIMENT is the name of one that haulage brings along (see --list), or a TOML file of your own in
/// the same form. All variants run in shuffled, interleaved rounds, in sessions that are processes of
/// their own; the page cache is set and proved before each run, and each copy is compared with its
/// source. Samples go to a run directory as they come, so that an experiment that was interrupted can
/// be taken up again. Files are made only in one folder of ours in each --on directory, and removed in
/// the end.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage bench --list\n  \
        haulage bench engines --on /data --time 600\n  \
        haulage bench closson-2007 --on /ssd --on /backup --scale 0.1 --dry-run\n  \
        haulage bench --resume runs/20260131T120000Z-host-engines"
)]
pub(super) struct Args {
    /// The experiment
    #[arg(value_name = "EXPERIMENT", required_unless_present_any = ["list", "resume"])]
    pub(super) experiment: Option<String>,

    /// List the experiments that haulage brings along
    #[arg(long)]
    pub(super) list: bool,

    #[command(flatten)]
    pub(super) dirs: MeasuredDirs,

    /// Multiply the sizes and numbers of files that are made for it by F
    #[arg(long, value_name = "F", value_parser = factor, default_value = "1")]
    pub(super) scale: f64,

    /// Run exactly N rounds of each cell, however long they take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) rounds: Option<u32>,

    /// Time for everything together; with --resume, from now on [default: what the experiment says, or
    /// what is left of it]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) time: Option<Duration>,

    /// What the order of runs and the bytes of sources follow from [default: another one each time]
    #[arg(long, value_name = "N", default_value_t = random_seed(), hide_default_value = true)]
    pub(super) seed: u64,

    /// Where run directories are made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,

    /// Say what would be run, how long it would take and how much room it needs
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Print every table and analysis before the answer in short; they are in the run directory anyhow
    #[arg(long)]
    pub(super) details: bool,

    /// Take up an experiment that was interrupted, in its run directory
    #[arg(long, value_name = "RUN", conflicts_with_all = ["experiment", "on", "scale", "seed", "runs"])]
    pub(super) resume: Option<PathBuf>,
}

fn factor(text: &str) -> Result<f64, &'static str> {
    positive(text, 1e6).ok_or("it takes a number over 0, up to a million")
}
