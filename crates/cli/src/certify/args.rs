//! The arguments of `haulage certify`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::bench::measured_dirs::MeasuredDirs;
use crate::terminal::command::{random_seed, seconds};

/// Find out whether what is measured on this machine can be believed.
///
/// The protocol of 'haulage bench' is run on comparisons whose truth is known: a variant against
/// itself, against itself made 2, 5 or 10 % slower, against itself slow in a tenth of its runs, and small
/// buffers against large ones. What it says of them is counted: how often it sees a difference where
/// there is none, how often it finds one that is there, how small a one it can find. The page cache is
/// made cold and warm, and others than the prover are asked whether it is. The certificate is kept, and
/// 'haulage bench' says of every later result on this machine and these file systems whether it was
/// certified. Differences smaller than those between equal arms count as none from then on.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Exit status: 0 when all that is asked is so, 1 when not, 2 for bad usage.\n\n\
        Examples:\n  \
        haulage certify --on /data\n  \
        haulage certify --on /ssd --on /backup --time 1800"
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) dirs: MeasuredDirs,

    /// Time for everything together; more of it finds smaller differences
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "600")]
    pub(super) time: Duration,

    /// What the order of runs and the bytes of sources follow from [default: another one each time]
    #[arg(long, value_name = "N", default_value_t = random_seed(), hide_default_value = true)]
    pub(super) seed: u64,

    /// Print the certificate as JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Where the run directory with all samples is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,

    /// Use no file larger than this
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64M")]
    pub(super) max_size: u64,

    /// Measure at most N cells of each kind: less time, and less sure
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cells: Option<u16>,
}

/// At least the smallest size that is measured.
fn size(text: &str) -> Result<u64, &'static str> {
    let size = text.parse::<engines::Bytes>().ok().filter(|bytes| bytes.0 >= 4096);
    size.map(|bytes| bytes.0).ok_or("it takes a size of at least 4K, as 512K or 8M")
}
