//! The arguments of `haulage compare`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Report what changed between two runs of an experiment.
///
/// FIRST and SECOND are run directories of 'haulage bench', such as one from before and one from after
/// a change of the kernel, a mount option or haulage. The report has the differences between the two
/// machines, and for each cell and variant the ratio of the times, second over first, with its 95 %
/// interval. The runs were made at different times. The ratios include all other changes between them,
/// and the intervals do not. To compare two variants, run both in one experiment.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Exit status: 0; 1 if a run cannot be read; 2 for bad usage. With --fail-on slower \
        also 1 if a variant is slower by more than --delta, or if the runs have no cell in common.\n\n\
        Examples:\n  \
        haulage compare runs/20260131T120000Z-* runs/20260207T120000Z-*\n  \
        haulage compare before after --fail-on slower --delta 5"
)]
pub(crate) struct Args {
    /// The run directory of the earlier run
    #[arg(value_name = "FIRST")]
    pub(super) first: PathBuf,

    /// The run directory of the later run
    #[arg(value_name = "SECOND")]
    pub(super) second: PathBuf,

    /// Exit with status 1 if there is such a change
    #[arg(long, value_name = "CHANGE")]
    pub(super) fail_on: Option<FailOn>,

    /// The largest difference, in percent, that does not matter [default: that of the certificates in
    /// the runs, at least 2]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) delta: Option<f64>,

    /// Print the changes as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A change that makes the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// A variant is slower
    Slower,
}

/// Parses a percentage, and returns it as a fraction.
fn percent(text: &str) -> Result<f64, &'static str> {
    let percent = text.parse().ok().filter(|percent| (0.0..=1000.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or("it takes a number of percent from 0 to 1000")
}
