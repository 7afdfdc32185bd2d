//! The arguments of `haulage bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use lab::run_dir::ROUNDS_MAX;

use super::measured_dirs::MeasuredDirs;
use crate::terminal::command::{positive, random_seed, seconds};

/// Run an experiment, and keep every sample.
///
/// EXPERIMENT is the name of a built-in experiment (see --list), or a TOML file in the same form. All
/// variants run in shuffled, interleaved rounds. Each session is a process of its own. The state of the
/// page cache is set and verified before each run. Each copy is compared with its source. Each sample
/// is written to the run directory at once, so that an interrupted experiment can be resumed. In each
/// --on directory, files are made only in one scratch directory, which is removed at the end.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage bench --list\n  \
        haulage bench engines --on /data --time 600\n  \
        haulage bench engines --on /data --part cold\n  \
        haulage bench --claim one-byte-calls --on /data\n  \
        haulage bench closson-2007 --on /ssd --on /backup --scale 0.1 --dry-run\n  \
        haulage bench --resume runs/20260131T120000Z-host-engines"
)]
pub(crate) struct Args {
    /// A built-in experiment, or a file
    #[arg(value_name = "EXPERIMENT", required_unless_present_any = ["list", "resume", "claim"])]
    pub(super) experiment: Option<String>,

    /// List the built-in experiments, or the published claims that they test
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "experiments")]
    pub(super) list: Option<Listed>,

    #[command(flatten)]
    pub(super) dirs: MeasuredDirs,

    /// Measure only PART of the experiment; --dry-run names the parts; can be given several times
    #[arg(long = "part", value_name = "PART")]
    pub(super) parts: Vec<String>,

    /// Measure only what tests CLAIM, of EXPERIMENT or of any built-in one
    #[arg(long, value_name = "CLAIM", conflicts_with = "parts")]
    pub(super) claim: Option<String>,

    /// Multiply the sizes and numbers of the files that are made by F
    #[arg(long, value_name = "F", value_parser = factor, default_value = "1")]
    pub(super) scale: f64,

    /// Run N rounds of each cell, without a time limit unless --time is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(ROUNDS_MAX)))]
    pub(super) rounds: Option<u32>,

    /// The time for the whole experiment; with --resume, from now on [default: the time in the
    /// experiment; with --resume, the rest of it]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) time: Option<Duration>,

    /// The seed of the random order and contents [default: a random number]
    #[arg(long, value_name = "N", default_value_t = random_seed(), hide_default_value = true,
          value_parser = clap::value_parser!(u64).range(..1 << 63))]
    pub(super) seed: u64,

    /// The directory in which the run directory is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,

    /// Print what would be run, and the time and space that it would take
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Print all tables and analyses before the summary; verdict.txt in the run directory always has
    /// them
    #[arg(long)]
    pub(super) details: bool,

    /// Continue the interrupted experiment whose run directory is RUN
    #[arg(long, value_name = "RUN", conflicts_with_all = ["experiment", "on", "parts", "claim", "scale", "seed", "runs"])]
    pub(super) resume: Option<PathBuf>,
}

/// What `--list` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Listed {
    Experiments,
    Claims,
}

fn factor(text: &str) -> Result<f64, &'static str> {
    positive(text, 1e6).ok_or("it takes a number over 0, up to a million")
}
