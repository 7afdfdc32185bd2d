//! What a user asks of `haulage compare`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
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
    name = "haulage compare",
    bin_name = "haulage compare",
    infer_long_args = true,
    after_help = "Exit status: 0, or with --fail-on slower 1 when something takes longer by more than \
        matters, or the runs have nothing in common; 1 when a run cannot be read; 2 for bad usage.\n\n\
        Examples:\n  \
        haulage compare runs/20260131T120000Z-host-engines runs/20260207T120000Z-host-engines\n  \
        haulage compare before after --fail-on slower --delta 5"
)]
struct Args {
    /// The run directory of the earlier run
    #[arg(value_name = "FIRST")]
    first: PathBuf,

    /// The run directory of the later one
    #[arg(value_name = "SECOND")]
    second: PathBuf,

    /// Exit with status 1 when there is such a change
    #[arg(long, value_name = "CHANGE")]
    fail_on: Option<FailOn>,

    /// Differences up to so many percent do not matter [default: what the certificates in the runs say,
    /// at least 2]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    delta: Option<f64>,

    /// Print what changed as JSON
    #[arg(long)]
    json: bool,
}

/// A change that is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Something takes longer.
    Slower,
}

/// What to compare, and how.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) first: PathBuf,
    pub(super) second: PathBuf,
    pub(super) fail_on_slower: bool,
    pub(super) delta: Option<f64>,
    pub(super) json: bool,
}

/// The request in `args`; otherwise what to exit with, after it has been said why.
pub(super) fn parse(args: Vec<OsString>) -> Result<Request, ExitCode> {
    let name = OsString::from("haulage compare");
    let args = Args::try_parse_from(std::iter::once(name).chain(args)).map_err(|error| {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // Nobody is left to be told when the help cannot be printed.
                let _ = error.print();
                ExitCode::SUCCESS
            }
            _ => {
                let words = crate::error_text::of_clap(&error, "haulage compare");
                eprintln!("haulage compare: {words}");
                ExitCode::from(2)
            }
        }
    })?;
    Ok(Request {
        first: args.first,
        second: args.second,
        fail_on_slower: args.fail_on == Some(FailOn::Slower),
        delta: args.delta.map(|percent| percent / 100.0),
        json: args.json,
    })
}

fn percent(text: &str) -> Result<f64, &'static str> {
    let percent = text.parse().ok().filter(|percent| (0.0..=1000.0).contains(percent));
    percent.ok_or("it takes a number of percent from 0 to 1000")
}
