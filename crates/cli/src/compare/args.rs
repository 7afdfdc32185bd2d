//! The arguments of `haulage compare`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Say what changed between two runs of an experiment.
///
/// FIRST and SECOND are run directories of 'haulage bench', such as one from before and one from after a
/// change of the kernel, a mount option or haulage itself. What else differs between the two machines is
/// told first, then for each cell and variant the ratio of the times, second over first, with its 95 %
/// interval. The two runs were made at different times: whatever else changed in between is in the
/// ratios, and not in the intervals. To compare two ways of copying, run both in one experiment.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Exit status: 0, or with --fail-on slower 1 when something takes longer by more than \
        matters, or the runs have nothing in common; 1 when a run cannot be read; 2 for bad usage.\n\n\
        Examples:\n  \
        haulage compare runs/20260131T120000Z-host-engines runs/20260207T120000Z-host-engines\n  \
        haulage compare before after --fail-on slower --delta 5"
)]
pub(super) struct Args {
    /// The run directory of the earlier run
    #[arg(value_name = "FIRST")]
    pub(super) first: PathBuf,

    /// The run directory of the later one
    #[arg(value_name = "SECOND")]
    pub(super) second: PathBuf,

    /// Exit with status 1 when there is such a change
    #[arg(long, value_name = "CHANGE")]
    pub(super) fail_on: Option<FailOn>,

    /// Differences up to so many percent do not matter [default: what the certificates in the runs say,
    /// at least 2]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) delta: Option<f64>,

    /// Print what changed as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A change that is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Something takes longer.
    Slower,
}

/// Parses a percentage, and returns it as a fraction.
fn percent(text: &str) -> Result<f64, &'static str> {
    let percent = text.parse().ok().filter(|percent| (0.0..=1000.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or("it takes a number of percent from 0 to 1000")
}
